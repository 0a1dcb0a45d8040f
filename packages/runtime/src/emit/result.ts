import {
  type BreakerPhase,
  type Failure,
  type FailureCycle,
  FIRST_CYCLE,
  RedriveError,
} from '@redrive/core'
import { messageOf } from '../log/text.ts'
import type { StoredDeadLetter, StoredReason } from '../ports/dead-letter-store.ts'
import type { OutboundEvent } from '../ports/sink.ts'

/** The result of an event at one sink. */
export type SinkResult =
  | { readonly kind: 'delivered' }
  /** Waits in the queue; only in a non-failing scope, which does not wait for delivery. */
  | { readonly kind: 'queued' }
  /** Not delivered; stored, so it can be replayed. */
  | { readonly kind: 'stored'; readonly reason: StoredReason }
  /** Not delivered and not kept, because of the filter, the rate limit or the queue. */
  | { readonly kind: 'dropped'; readonly reason: DropReason }
  /** Not delivered, and the store did not save it. */
  | { readonly kind: 'lost'; readonly error: unknown }

export type DropReason = StoredReason | 'filtered'

/** A result of an event that was not delivered. */
export type FailedResult = Extract<SinkResult, { kind: 'stored' | 'dropped' | 'lost' }>

export const DELIVERED: SinkResult = Object.freeze({ kind: 'delivered' })
export const QUEUED: SinkResult = Object.freeze({ kind: 'queued' })

/** The results of an event, for each sink. */
export interface EmitResult {
  readonly id: string
  readonly sinks: Readonly<Record<string, SinkResult>>
}

export interface SinkStats {
  /** Events in flight: queued, waiting for a retry or being sent. */
  readonly inFlight: number
  readonly delivered: number
  readonly stored: number
  readonly dropped: number
  readonly lost: number
  readonly breaker: BreakerPhase
}

/** Counts of undelivered events of a job. */
export interface JobStats {
  readonly stored: number
  readonly dropped: number
  readonly lost: number
}

export interface EmitterStats {
  readonly sinks: Readonly<Record<string, SinkStats>>
  /** Counts by job name. Only the first thousand names are separate; the others are counted together as `…`. */
  readonly jobs: Readonly<Record<string, JobStats>>
  /** Events over the rate limit. */
  readonly limited: number
}

/** An event for one sink. */
export interface QueuedEvent {
  readonly event: OutboundEvent
  readonly job: string | undefined
  /**
   * Why the event is in the store already. It stays there until it is delivered. `'replay'`: it comes from the
   * store, and the entry is left unchanged. `'pending'`: the entry has no failure yet.
   */
  readonly stored: 'replay' | 'pending' | undefined
  /** The requested replay that this event is, and its cycle. Absent: none. */
  readonly requested?: Pick<StoredDeadLetter, 'replayId'> & { readonly cycleNumber: number }
  /** Time at which it stops waiting for its sink. */
  readonly deadline: number
  /** Called when the queue has room, instead of sending it: it is stored first. Default: it is sent. */
  readonly onRoom?: () => void
  readonly onEnd: (result: SinkResult) => void
}

/** Why an event did not reach its sink. */
export interface Undelivered {
  readonly reason: StoredReason
  readonly failure: Failure
  readonly cycle: FailureCycle
}

/** Creates a failure without an attempt: nothing was sent. */
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

const beforeAnyAttempt = (reason: StoredReason, message: string): Undelivered => ({
  reason,
  failure: unsent(reason.toUpperCase(), message),
  cycle: FIRST_CYCLE,
})

export const RATE_LIMITED: Undelivered = beforeAnyAttempt(
  'rate_limited',
  'the event exceeded the rate limit',
)
export const QUEUE_FULL: Undelivered = beforeAnyAttempt(
  'queue_full',
  'the queue of the sink was full',
)
export const OVERDUE: Undelivered = beforeAnyAttempt(
  'overdue',
  'the sink did not accept the event within maxWait',
)
export const BEFORE_SEND: Undelivered = beforeAnyAttempt(
  'before_send',
  'the event was stored before it was sent, and the process ended before the sink accepted it',
)
export const REPLAY_REQUESTED: Undelivered = beforeAnyAttempt(
  'replay_requested',
  'a replay was requested, and no emitter has sent the event yet',
)
export const CLOSED: Undelivered = beforeAnyAttempt(
  'closed',
  'the emitter was closed before the sink accepted the event',
)

/** Creates the reason for invalid data. A replay fails again until a user fixes the data. */
export const invalid = (error: unknown): Undelivered => {
  const why = beforeAnyAttempt('invalid', messageOf(error))
  return { ...why, failure: { ...why.failure, class: 'schema' } }
}

/** Ends an attempt at the deadline of one of its events. */
export const ABORTED: RedriveError = new RedriveError(
  'ATTEMPT_TIMEOUT',
  'An event of this batch was not accepted within maxWait. Increase maxWait, or use a faster sink.',
)
