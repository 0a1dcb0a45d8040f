import { type BreakerPhase, type Failure, type FailureCycle, FIRST_CYCLE } from '@redrive/core'
import type { OutboundEvent, StoredReason } from '../ports.ts'

/** What became of an event at one sink. */
export type SinkResult =
  | { readonly kind: 'delivered' }
  /** Waits for its turn; only in a non-failing scope, which does not wait for it. */
  | { readonly kind: 'queued' }
  /** Not delivered; safe in the store, from where it can be replayed. */
  | { readonly kind: 'stored'; readonly reason: StoredReason }
  /** Not delivered and not kept, because the filter, the rate limit or the queue says so. */
  | { readonly kind: 'dropped'; readonly reason: DropReason }
  /** Not delivered, and the store did not take it either. */
  | { readonly kind: 'lost'; readonly error: unknown }

export type DropReason = StoredReason | 'filtered'

/** It did not arrive. */
export type FailedResult = Extract<SinkResult, { kind: 'stored' | 'dropped' | 'lost' }>

export const DELIVERED: SinkResult = Object.freeze({ kind: 'delivered' })
export const QUEUED: SinkResult = Object.freeze({ kind: 'queued' })

/** What became of an event, for each sink. */
export interface EmitResult {
  readonly id: string
  readonly sinks: Readonly<Record<string, SinkResult>>
}

export interface SinkStats {
  /** In hand: queued, waiting for a retry or under way. */
  readonly inHand: number
  readonly delivered: number
  readonly stored: number
  readonly dropped: number
  readonly lost: number
  readonly breaker: BreakerPhase
}

/** What did not arrive of what a job emitted. */
export interface JobStats {
  readonly stored: number
  readonly dropped: number
  readonly lost: number
}

export interface EmitterStats {
  readonly sinks: Readonly<Record<string, SinkStats>>
  /** By name of the job. Of many names the first thousand; the others are counted together as `…`. */
  readonly jobs: Readonly<Record<string, JobStats>>
  /** Events over the rate limit. */
  readonly limited: number
}

/** An event on its way to one sink. */
export interface Parcel {
  readonly event: OutboundEvent
  readonly job: string | undefined
  /** Comes from the store: it stays there until it is delivered. */
  readonly isReplay: boolean
  readonly onEnd: (result: SinkResult) => void
}

/** Why a parcel does not reach its sink. */
export interface GivenUp {
  readonly reason: StoredReason
  readonly failure: Failure
  readonly cycle: FailureCycle
}

/** A failure that is no attempt's: nothing was sent. */
const unsent = (code: string, message: string): Failure => ({
  class: 'transient',
  signature: code.toLowerCase().replaceAll('_', '-'),
  type: 'NotSent',
  code,
  message,
  retryAfterMs: undefined,
  timedOut: false,
  stack: undefined,
})

const beforeAnyAttempt = (reason: StoredReason, message: string): GivenUp => ({
  reason,
  failure: unsent(reason.toUpperCase(), message),
  cycle: FIRST_CYCLE,
})

export const RATE_LIMITED: GivenUp = beforeAnyAttempt(
  'rate_limited',
  'more events than the rate limit allows',
)
export const QUEUE_FULL: GivenUp = beforeAnyAttempt(
  'queue_full',
  'the queue of the sink had no room',
)
export const CLOSED: GivenUp = beforeAnyAttempt(
  'closed',
  'the emitter was closed before the sink had it',
)

/** Its data are not what they must be: no replay helps before somebody has looked at them. */
export const invalid = (error: unknown): GivenUp => {
  const message = error instanceof Error ? error.message : String(error)
  const why = beforeAnyAttempt('invalid', message)
  return { ...why, failure: { ...why.failure, class: 'schema' } }
}
