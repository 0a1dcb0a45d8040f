import type { ConsumerOptions } from '../harness/consumer-options.ts'
import type { RequestName } from './requests.ts'

/** Additional options of a consumer of a topic. */
export interface KafkaConsumerOptions extends ConsumerOptions {
  readonly brokers: readonly string[]
  /** The group. Default: a separate one for each topic. */
  readonly group?: string
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
  /** Part of the names of the topics that receive the copy. Without it, the first request counts. */
  readonly topic?: string
}

export type When =
  /** The request is not sent. */
  | 'before'
  /** The request was sent; the response has not been read. */
  | 'written'
  /** The response arrived; the transport has not received it. */
  | 'answered'
  /** The transport has received the response and not continued. */
  | 'received'

/** Faults for copies to the brokers: the number of each in a hundred requests. */
export interface ProduceFaults {
  /** Seed; the same seed produces the same faults. */
  readonly seed: number
  /** Rejected with a protocol error; nothing is stored. */
  readonly refused: number
  /** Stored, and an error is returned. */
  readonly misreported: number
  /** No response, and not stored. */
  readonly swallowed: number
  /** Stored, and no response. */
  readonly unanswered: number
}
