import { SLOW_AFTER_MS } from './defaults.ts'

/**
 * Adaptive concurrency (AIMD). With K attempts in flight, timeout T and a dependency of capacity μ,
 * K > μ·T makes every call late. The overload then continues after its cause has ended. The limit
 * finds a safe K without knowing μ: it grows while attempts finish in time and shrinks when they fail
 * or finish late.
 */
export interface LimitPolicy {
  readonly start: number
  readonly min: number
  /** The policy's concurrency. */
  readonly max: number
  /** Factor applied on overload. */
  readonly decrease: number
}

export interface LimitState {
  readonly limit: number
  /** Successes since the limit last grew; `limit` of them increase it by one (additive increase). */
  readonly credit: number
  /** Below it every success increases the limit by one (slow start). */
  readonly threshold: number
  /** Attempts that began up to this time have already reduced the limit. */
  readonly shrunkAt: number
  /** Since when every success was late: 0 from the start, absent after a success in time. */
  readonly lateSince?: number
  /** When the limit last grew although every success was late. */
  readonly grewLateAt?: number
}

export function startLimit(policy: LimitPolicy): LimitState {
  return {
    limit: Math.min(Math.max(policy.start, policy.min), policy.max),
    credit: 0,
    threshold: policy.max,
    shrunkAt: 0,
    lateSince: 0,
  }
}

/** Grows the limit after `count` attempts finished in time while the limit prevented more. */
export function growLimit(policy: LimitPolicy, state: LimitState, count: number): LimitState {
  if (state.limit >= policy.max) return state
  if (state.limit < state.threshold) {
    return { ...state, limit: Math.min(policy.max, state.threshold, state.limit + count) }
  }
  const credit = state.credit + count
  if (credit < state.limit) return { ...state, credit }
  return { ...state, limit: state.limit + 1, credit: credit - state.limit }
}

/**
 * Records a success that took more than its share of the timeout. It is a sign of overload, also at the minimum:
 * other processes may send too much. If every success was late from the start, or for an hour, the handler itself
 * is slow. Then the limit grows as usual.
 */
export function lateLimit(
  policy: LimitPolicy,
  state: LimitState,
  seen: { count: number; saturated: boolean; startedAt: number; inFlight: number; now: number },
): LimitState {
  const { lateSince = seen.now } = state
  const late = { ...state, lateSince }
  if (seen.now - lateSince < SLOW_AFTER_MS) return shrinkLimit(policy, late, seen)
  if (!seen.saturated) return late
  const grown = growLimit(policy, late, seen.count)
  return grown.limit > late.limit ? { ...grown, grewLateAt: seen.now } : grown
}

/**
 * Records a failure. If the attempt began right after the limit grew although every success was late, that growth was
 * too much: the handler is not slow, its dependency is busy. The limit then does not grow for another hour.
 */
export function failedLimit(
  policy: LimitPolicy,
  state: LimitState,
  failed: { startedAt: number; inFlight: number; now: number },
): LimitState {
  const { startedAt, now } = failed
  const sinceGrowth = startedAt - (state.grewLateAt ?? Number.POSITIVE_INFINITY)
  const isTooMuch = sinceGrowth >= 0 && sinceGrowth <= now - startedAt
  return shrinkLimit(policy, isTooMuch ? { ...state, lateSince: now } : state, failed)
}

/** Records successes in time: the handler is not slow. */
export function quickLimit(
  policy: LimitPolicy,
  { lateSince: _, ...state }: LimitState,
  { count, saturated }: { count: number; saturated: boolean },
): LimitState {
  return saturated ? growLimit(policy, state, count) : state
}

/** Shrinks the limit after an attempt that began at `startedAt` failed or was late, with `inFlight` running. */
export function shrinkLimit(
  policy: LimitPolicy,
  state: LimitState,
  { startedAt, inFlight, now }: { startedAt: number; inFlight: number; now: number },
): LimitState {
  if (startedAt <= state.shrunkAt) return state
  const used = Math.min(state.limit, inFlight)
  const limit = Math.max(policy.min, Math.floor(used * policy.decrease))
  return { ...state, limit, credit: 0, threshold: limit, shrunkAt: now }
}

/** Restarts after an outage: from the minimum, quickly up to half of the last good limit, slowly from there. */
export function restartLimit(policy: LimitPolicy, state: LimitState, now: number): LimitState {
  const threshold = Math.max(policy.min, Math.floor(state.limit / 2))
  return { ...state, limit: policy.min, credit: 0, threshold, shrunkAt: now }
}
