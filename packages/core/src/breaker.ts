import type { Random } from './backoff.ts'
import { BREAKER_OPEN_JITTER } from './defaults.ts'

/**
 * Circuit breaker of one dependency.
 *
 * ```
 *  closed ──trip──▶ open ──until passes──▶ half-open ──successes──▶ closed
 *                    ▲                        │ one failure
 *                    └────────────────────────┘            isolate / restore: manual, any time
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
  /** Shortest and longest time to stay open, ±20 %. Between them: `openShare` of the outage so far. */
  readonly minOpenMs: number
  readonly maxOpenMs: number
  readonly openShare: number
  /** Concurrent attempts allowed while half-open. */
  readonly probes: number
  /** Consecutive successes that close it. */
  readonly successes: number
}

export type BreakerState =
  | {
      readonly phase: 'closed'
      /** Consecutive failures (consecutive) or failures in the window (ratio). */
      readonly failures: number
      /** Messages that failed; each counts once. Bounded. */
      readonly suspects: readonly string[]
      /** Ratio only: start of the window and the successes in it. */
      readonly windowFrom: number
      readonly handled: number
    }
  | {
      readonly phase: 'open'
      /** When this outage began. */
      readonly since: number
      /** Time of the next probe. */
      readonly until: number
      /** Consecutive successful probes. */
      readonly successes: number
      /** Messages that opened it or kept it open. Bounded. */
      readonly suspects: readonly string[]
      /** When a message last failed that is not one of these: others fail too. */
      readonly freshAt: number
    }
  | { readonly phase: 'isolated' }

export type BreakerPhase =
  /** Attempts run. */
  | 'closed'
  /** No attempts run until the next probe. */
  | 'open'
  /** Only probes run. */
  | 'halfOpen'
  /** No attempts run until `restore`, because `isolate` was called. */
  | 'isolated'

/** Evidence about the dependency from the result of an attempt. */
export type BreakerInput =
  | { readonly kind: 'handled'; readonly count: number }
  /** The dependency was not reached: refused, reset, timed out. One message counts once. A wait time counts up to `maxOpenMs`. */
  | { readonly kind: 'unreachable'; readonly messageId: string; readonly retryAfterMs: number }
  /** Caused by the dependency or by this message: one message counts once. */
  | { readonly kind: 'unexplained'; readonly messageId: string }

export const CLOSED: BreakerState = Object.freeze({
  phase: 'closed',
  failures: 0,
  suspects: Object.freeze([]),
  windowFrom: 0,
  handled: 0,
})

/** 256 messages: far above any sensible threshold. A failure compares with each of them. */
const SUSPECT_BOUND = 256

export const ISOLATED: BreakerState = Object.freeze({ phase: 'isolated' })

export function breakerPhase(state: BreakerState, now: number): BreakerPhase {
  if (state.phase !== 'open') return state.phase
  return now >= state.until ? 'halfOpen' : 'open'
}

/** Returns the state after one more result of the dependency. */
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
  const opened = { since: now, suspects: counted.suspects, freshAt: now }
  return openAgain(policy, opened, input, now, random)
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
  // The common case: nothing has failed, so there is nothing to reset and nothing to allocate.
  return state.failures === 0 ? state : CLOSED
}

function whileOpen(
  policy: BreakerPolicy,
  state: Open,
  input: BreakerInput,
  now: number,
  random: Random,
): BreakerState {
  // An attempt that was in flight when the breaker opened adds no information.
  if (now < state.until) return state
  if (input.kind !== 'handled') return afterFailedProbe(policy, state, input, now, random)
  const successes = state.successes + input.count
  return successes >= policy.successes ? CLOSED : { ...state, successes }
}

/**
 * Handles a probe that failed. When the dependency was not reached, the breaker stays open. Two failures
 * of a message that failed before show nothing about the dependency: one for an unknown reason, because one
 * bad message on a quiet source would keep the breaker open forever, and one after another probe passed.
 */
function afterFailedProbe(
  policy: BreakerPolicy,
  state: Open,
  input: FailedInput,
  now: number,
  random: Random,
): BreakerState {
  const isKnown = state.suspects.includes(input.messageId)
  if (isKnown && (input.kind === 'unexplained' || state.successes > 0)) return state
  const suspects = isKnown ? state.suspects : addSuspect(state.suspects, input)
  const freshAt = isKnown ? state.freshAt : now
  return openAgain(policy, { since: state.since, suspects, freshAt }, input, now, random)
}

/** Adds a message. Past the bound it may count twice; with that many failed messages the cause is clear. */
function addSuspect(suspects: readonly string[], { messageId }: FailedInput): readonly string[] {
  return [...suspects, messageId].slice(-SUSPECT_BOUND)
}

function openAgain(
  policy: BreakerPolicy,
  kept: Pick<Open, 'since' | 'suspects' | 'freshAt'>,
  input: FailedInput,
  now: number,
  random: Random,
): Open {
  const share = (now - kept.since) * policy.openShare
  const plainMs = Math.min(policy.maxOpenMs, Math.max(policy.minOpenMs, share))
  const openMs = plainMs * (1 + BREAKER_OPEN_JITTER * (2 * random() - 1))
  // One message may ask for a day, such as one customer whose quota is used up. Others need not wait for it.
  const askedMs = input.kind === 'unreachable' ? Math.min(input.retryAfterMs, policy.maxOpenMs) : 0
  const until = now + Math.round(Math.max(openMs, askedMs))
  return { phase: 'open', ...kept, until, successes: 0 }
}

function countFailure(
  policy: BreakerPolicy,
  state: Closed,
  input: FailedInput,
  now: number,
): Closed {
  const current = policy.trip.kind === 'ratio' ? inWindow(policy.trip.windowMs, state, now) : state
  if (current.suspects.includes(input.messageId)) return current
  const suspects = addSuspect(current.suspects, input)
  return { ...current, failures: current.failures + 1, suspects }
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
