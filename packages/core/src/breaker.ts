import type { Random } from './backoff.ts'
import { BREAKER_OPEN_JITTER } from './defaults.ts'

/**
 * Circuit breaker of one dependency.
 *
 * ```
 *  closed ──trip──▶ open ──until passes──▶ half-open ──successes──▶ closed
 *                    ▲                        │ one failure
 *                    └────────────────────────┘            isolate / restore: by hand, any time
 * ```
 * Half-open is not stored: it is an open breaker whose `until` has passed.
 */
export interface BreakerPolicy {
  readonly trip:
    | { readonly kind: 'consecutive'; readonly failures: number }
    | {
        readonly kind: 'ratio'
        readonly ratio: number
        readonly windowMs: number
        readonly minimum: number
      }
  /** Shortest and longest time to stay open, ±20 %; between them, `openShare` of the outage so far. */
  readonly minOpenMs: number
  readonly maxOpenMs: number
  readonly openShare: number
  /** Attempts let through at a time while half-open. */
  readonly probes: number
  /** Successes in a row that close it. */
  readonly successes: number
}

export type BreakerState =
  | {
      readonly phase: 'closed'
      /** Failures in a row (consecutive) or in the window (ratio). */
      readonly failures: number
      /** Messages whose failure may be their own fault and is therefore counted once. Bounded. */
      readonly suspects: readonly string[]
      /** Ratio only: when the window began and what succeeded in it. */
      readonly windowFrom: number
      readonly handled: number
    }
  | {
      readonly phase: 'open'
      /** When this outage began. */
      readonly since: number
      /** When the next probe may go. */
      readonly until: number
      /** Successful probes in a row. */
      readonly successes: number
      /** Messages whose unexplained failure kept it open; a second one of theirs is no news. Bounded. */
      readonly suspects: readonly string[]
    }
  | { readonly phase: 'isolated' }

export type BreakerPhase = 'closed' | 'open' | 'halfOpen' | 'isolated'

/** What an attempt says about the dependency. */
export type BreakerInput =
  | { readonly kind: 'handled'; readonly count: number }
  /** Certainly about the dependency: refused, reset, timed out. Every one counts. It may say how long to stay away. */
  | { readonly kind: 'unreachable'; readonly retryAfterMs: number }
  /** Could be the dependency or this message: one message counts once. */
  | { readonly kind: 'unexplained'; readonly messageId: string }

export const CLOSED: BreakerState = Object.freeze({
  phase: 'closed',
  failures: 0,
  suspects: Object.freeze([]),
  windowFrom: 0,
  handled: 0,
})

/** 256 messages: far above any sensible threshold, and a failure costs one look at each. */
const COUNTED_BOUND = 256

/** 16 probes: with more messages than that on the source, the same one does not come up again soon. */
const SUSPECT_BOUND = 16

export const ISOLATED: BreakerState = Object.freeze({ phase: 'isolated' })

export function breakerPhase(state: BreakerState, now: number): BreakerPhase {
  if (state.phase !== 'open') return state.phase
  return now >= state.until ? 'halfOpen' : 'open'
}

/** The state after one more thing was learned about the dependency. */
export function nextBreaker(
  policy: BreakerPolicy,
  state: BreakerState,
  input: BreakerInput,
  now: number,
  random: Random,
): BreakerState {
  if (state.phase === 'isolated') return state
  if (state.phase === 'open') return whileOpen(policy, state, input, now, random)
  if (input.kind === 'handled') return afterHandled(policy, state, input.count, now)
  const counted = countFailure(policy, state, input, now)
  if (!trips(policy, counted)) return counted
  return openAgain(policy, { since: now, suspects: [] }, input, now, random)
}

type Closed = Extract<BreakerState, { phase: 'closed' }>
type Open = Extract<BreakerState, { phase: 'open' }>
type FailedInput = Exclude<BreakerInput, { kind: 'handled' }>

function afterHandled(
  policy: BreakerPolicy,
  state: Closed,
  count: number,
  now: number,
): BreakerState {
  if (policy.trip.kind === 'ratio') {
    const current = inWindow(policy.trip.windowMs, state, now)
    return { ...current, handled: current.handled + count }
  }
  // The common case: nothing has failed, so there is nothing to forget and nothing to allocate.
  return state.failures === 0 ? state : CLOSED
}

function whileOpen(
  policy: BreakerPolicy,
  state: Open,
  input: BreakerInput,
  now: number,
  random: Random,
): BreakerState {
  // What was already in flight when the breaker opened says nothing new about the dependency.
  if (now < state.until) return state
  if (input.kind === 'unreachable') return openAgain(policy, state, input, now, random)
  if (input.kind === 'unexplained') return afterUnexplained(policy, state, input, now, random)
  const successes = state.successes + input.count
  return successes >= policy.successes ? CLOSED : { ...state, successes }
}

/**
 * A probe failed and nobody knows why. From another message than before that is news about the
 * dependency; from the same one it is not, or a single bad message on a quiet source would keep the
 * breaker open for good.
 */
function afterUnexplained(
  policy: BreakerPolicy,
  state: Open,
  input: Extract<BreakerInput, { kind: 'unexplained' }>,
  now: number,
  random: Random,
): BreakerState {
  if (state.suspects.includes(input.messageId)) return state
  const suspects = [...state.suspects, input.messageId].slice(-SUSPECT_BOUND)
  return openAgain(policy, { since: state.since, suspects }, input, now, random)
}

function openAgain(
  policy: BreakerPolicy,
  { since, suspects }: Pick<Open, 'since' | 'suspects'>,
  input: FailedInput,
  now: number,
  random: Random,
): Open {
  const share = (now - since) * policy.openShare
  const plainMs = Math.min(policy.maxOpenMs, Math.max(policy.minOpenMs, share))
  const openMs = plainMs * (1 + BREAKER_OPEN_JITTER * (2 * random() - 1))
  const askedMs = input.kind === 'unreachable' ? input.retryAfterMs : 0
  const until = now + Math.round(Math.max(openMs, askedMs))
  return { phase: 'open', since, until, successes: 0, suspects }
}

function countFailure(
  policy: BreakerPolicy,
  state: Closed,
  input: FailedInput,
  now: number,
): Closed {
  const current = policy.trip.kind === 'ratio' ? inWindow(policy.trip.windowMs, state, now) : state
  if (input.kind === 'unreachable') return { ...current, failures: current.failures + 1 }
  if (current.suspects.includes(input.messageId)) return current
  // Past the bound a message may count twice; by then there is no doubt left to keep.
  const suspects = [...current.suspects, input.messageId].slice(-COUNTED_BOUND)
  return {
    ...current,
    failures: current.failures + 1,
    suspects,
  }
}

function inWindow(windowMs: number, state: Closed, now: number): Closed {
  return now - state.windowFrom < windowMs
    ? state
    : { phase: 'closed', failures: 0, suspects: [], windowFrom: now, handled: 0 }
}

function trips({ trip }: BreakerPolicy, state: Closed): boolean {
  if (trip.kind === 'consecutive') return state.failures >= trip.failures
  const seen = state.failures + state.handled
  return seen >= trip.minimum && state.failures >= seen * trip.ratio
}
