import type { Duration } from '@redrive/core'
import type { ConsumerOptions } from '../harness/consumer-options.ts'

/** Additional options of an outbox consumer. */
export interface PostgresConsumerOptions extends ConsumerOptions {
  readonly lease: Duration
  /** Database of the harness's own records, used when the transport's connection is broken. */
  readonly booksUrl?: string
  readonly failpoint?: Failpoint
}

/** A query at which the process dies or stops: before it is sent, or after its response. */
export interface Failpoint {
  readonly query: string
  readonly when: 'before' | 'after'
  /** `stop`: the process is stopped until another process continues it. Default `die`. */
  readonly what?: 'die' | 'stop'
}
