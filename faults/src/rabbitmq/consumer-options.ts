import type { ConsumerOptions } from '../harness/consumer-options.ts'

/** Additional options of a RabbitMQ consumer. */
export interface RabbitConsumerOptions extends ConsumerOptions {
  readonly urls: readonly string[]
  readonly topology?: 'declare' | 'verify' | 'adopt'
  /** Queues that are classic queues; the others are quorum queues. */
  readonly classicQueues?: readonly string[]
  /** Whether to consume in lane order: the lane is the key in the id of the message. */
  readonly order?: 'none' | 'lane'
  readonly failpoint?: Failpoint
}

/** A point in a hand-off at which the process kills itself. */
export type Point =
  | 'publish.before'
  /** The copy was sent; the confirm has not been read. */
  | 'publish.written'
  /** The confirm arrived; the transport has not received it. */
  | 'confirm.arrived'
  | 'confirm.seen'
  | 'ack.before'
  | 'ack.written'
  | 'declare.before'
  | 'declare.after'
  | 'consume.before'
  | 'consume.after'
  | 'cancel.before'
  | 'cancel.after'

export interface Failpoint {
  readonly point: Point
  /** End of the queue name of the selected copy. Without it, the first one counts. */
  readonly queue?: string
}
