import type { ConsumerOptions } from '../harness/consumer-options.ts'

/** Additional options of a consumer of SQS. */
export interface SqsConsumerOptions extends ConsumerOptions {
  readonly endpoint: string
  readonly lease: '5s' | '15s'
  readonly failpoint?: Failpoint
  /** Every such message is delivered twice, as Amazon does now and then. Default: none. */
  readonly twiceEvery?: number
}

/** A point in a hand-off at which the process kills itself. */
export type Point =
  | 'send.before'
  /** SQS has the copy; the transport has not received the response. */
  | 'send.done'
  | 'delete.before'
  /** SQS has deleted the message; the transport has not received the response. */
  | 'delete.done'
  | 'declare.before'
  | 'declare.done'

/** The purpose of a copy. */
export type CopyKind = 'retry' | 'return' | 'dead' | 'quarantine'

export interface Failpoint {
  readonly point: Point
  /** The selected copy. Without it, the first point counts. */
  readonly copy?: CopyKind
}
