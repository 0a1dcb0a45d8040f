import type { ConsumerOptions } from '../harness/consumer-options.ts'

/** Additional options of a NATS consumer. */
export interface NatsConsumerOptions extends ConsumerOptions {
  readonly servers: readonly string[]
  /** Copies of each message in the streams. */
  readonly replicas: number
  readonly lease: '5s' | '15s'
  readonly failpoint?: Failpoint
}

/** A point in a hand-off at which the process kills itself. */
export type Point =
  | 'publish.before'
  /** The server has the copy; the transport has not received the response. */
  | 'publish.written'
  | 'publish.confirmed'
  | 'ack.before'
  /** The server has the acknowledgement; the transport has not received the response. */
  | 'ack.written'
  | 'ack.confirmed'
  /** Settling sends an acknowledgement without a response. */
  | 'respond.before'
  | 'respond.written'
  | 'declare.before'
  | 'declare.after'

export interface Failpoint {
  readonly point: Point
  /** End of the subject of the selected copy. Without it, the first point counts. */
  readonly subject?: string
}
