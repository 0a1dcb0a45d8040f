/**
 * Adaptive concurrency (AIMD). With K attempts in flight, timeout T and a dependency of capacity μ,
 * K > μ·T makes every call late and the trouble sustains itself after its cause is gone. The limit
 * finds a K on the safe side without knowing μ: it grows while attempts come back in time and
 * shrinks when they fail or come back late.
 */
export interface LimitPolicy {
  readonly start: number
  readonly min: number
  /** The policy's concurrency. */
  readonly max: number
  /** Factor on trouble. */
  readonly decrease: number
}

export interface LimitState {
  readonly limit: number
  /** Successes since the limit last grew; `limit` of them earn one more (additive increase). */
  readonly credit: number
  /** Below it every success earns one more (slow start). */
  readonly threshold: number
  /** Attempts that began up to this moment have already been answered for. */
  readonly shrunkAt: number
  /** Even alone an attempt takes long: being late is then the handler's nature and no sign of overload. */
  readonly isSlow?: true
}

export function startLimit(policy: LimitPolicy): LimitState {
  return {
    limit: Math.min(Math.max(policy.start, policy.min), policy.max),
    credit: 0,
    threshold: policy.max,
    shrunkAt: 0,
  }
}

/** `count` attempts came back in time while the limit was what held more back. */
export function growLimit(policy: LimitPolicy, state: LimitState, count: number): LimitState {
  if (state.limit >= policy.max) return state
  if (state.limit < state.threshold) {
    return { ...state, limit: Math.min(policy.max, state.threshold, state.limit + count) }
  }
  const credit = state.credit + count
  if (credit < state.limit) return { ...state, credit }
  return { ...state, limit: state.limit + 1, credit: credit - state.limit }
}

/** A success that took more than its share of the timeout: overload, unless the handler is slow by nature. */
export function lateLimit(
  policy: LimitPolicy,
  state: LimitState,
  seen: { count: number; saturated: boolean; startedAt: number; inFlight: number; now: number },
): LimitState {
  if (state.isSlow === undefined && state.limit > policy.min)
    return shrinkLimit(policy, state, seen)
  const slow: LimitState = { ...state, isSlow: true }
  return seen.saturated ? growLimit(policy, slow, seen.count) : slow
}

/** Successes in time: the handler is quick after all. */
export function quickLimit(
  policy: LimitPolicy,
  { isSlow: _, ...state }: LimitState,
  { count, saturated }: { count: number; saturated: boolean },
): LimitState {
  return saturated ? growLimit(policy, state, count) : state
}

/** An attempt that began at `startedAt` failed or was late, with `inFlight` running beside it. */
export function shrinkLimit(
  policy: LimitPolicy,
  state: LimitState,
  { startedAt, inFlight, now }: { startedAt: number; inFlight: number; now: number },
): LimitState {
  if (startedAt <= state.shrunkAt) return state
  const used = Math.min(state.limit, inFlight)
  const limit = Math.max(policy.min, Math.floor(used * policy.decrease))
  return { limit, credit: 0, threshold: limit, shrunkAt: now }
}

/** After an outage: from the bottom, quickly up to half of what worked before, carefully from there. */
export function restartLimit(policy: LimitPolicy, state: LimitState, now: number): LimitState {
  const threshold = Math.max(policy.min, Math.floor(state.limit / 2))
  return { limit: policy.min, credit: 0, threshold, shrunkAt: now }
}
