import type { ConsumerOptions } from '../consumer-options.ts'

/** What a consumer of a RabbitMQ queue is told on top. */
export interface RabbitConsumerOptions extends ConsumerOptions {
  readonly urls: readonly string[]
  readonly topology?: 'declare' | 'verify'
  readonly failpoint?: Failpoint
}

/** A moment in the life of a hand-off at which the process kills itself. */
export type Point =
  | 'publish.before'
  /** The copy has left the process; the confirm has not been read. */
  | 'publish.written'
  /** The confirm is there; the transport has not been told. */
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
  /** Ends the name of the queue whose copy is meant; without it, whatever comes first. */
  readonly queue?: string
}
