import type { Duration } from '@redrive/core'
import type { ConsumerOptions } from '../consumer-options.ts'

/** What a consumer of the outbox is told on top. */
export interface PostgresConsumerOptions extends ConsumerOptions {
  readonly lease: Duration
  /** Where the harness keeps its own books, when the way of the transport is broken. */
  readonly booksUrl?: string
  readonly failpoint?: Failpoint
  readonly clock?: WrongClock
}

/** A wall clock that is wrong from the start, and jumps. */
export interface WrongClock {
  readonly aheadMs: number
  /** It jumps by as much, back and forth. */
  readonly jumpMs: number
  readonly everyMs: number
}

/** A query of the consumer at which something happens to the process: before it is sent, or when it was answered. */
export interface Failpoint {
  readonly query: string
  readonly when: 'before' | 'after'
  /** Once it stands still, somebody else makes it go on. Default `die`. */
  readonly what?: 'die' | 'stop'
}
