import type { ConsumerOptions } from '../consumer-options.ts'
import type { RequestName } from './requests.ts'

/** What a consumer of a topic is told on top. */
export interface KafkaConsumerOptions extends ConsumerOptions {
  readonly brokers: readonly string[]
  readonly sessionMs: number
  readonly drainMs: number
  readonly confirmMs: number
  readonly order?: 'none' | 'lane'
  readonly handOff?: 'atLeastOnce' | 'transactional'
  readonly failpoint?: Failpoint
  readonly produceFaults?: ProduceFaults
}

/** A request at which the process kills itself. */
export interface Failpoint {
  readonly request: RequestName
  readonly when: When
  /** Is part of the names of the topics that the copy goes to; without it, whatever comes first. */
  readonly topic?: string
}

export type When =
  /** It is not sent. */
  | 'before'
  /** It has left the process; the answer has not been read. */
  | 'written'
  /** The answer is there; the transport has not been told. */
  | 'answered'
  /** The transport has been told, and has not gone on. */
  | 'told'

/** What becomes of copies on their way to the brokers: of a hundred requests, so many each. */
export interface ProduceFaults {
  /** The same faults again. */
  readonly seed: number
  /** Refused with an error of the protocol; nothing is stored. */
  readonly refused: number
  /** Stored, and answered with an error. */
  readonly misreported: number
  /** Never answered, and not stored. */
  readonly swallowed: number
  /** Stored, and never answered. */
  readonly unanswered: number
}
