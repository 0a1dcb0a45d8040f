/**
 * Distinguishes an unhealthy dependency from a bad message. When many messages fail together, the
 * dependency is the cause; when one fails while others pass, the message is. The breaker detects a
 * dependency that is down. This window detects one that responds only sometimes, and records that
 * others passed.
 */
export interface OutagePolicy {
  readonly ratio: number
  readonly failures: number
  readonly windowMs: number
}

/** Two halves of the window. The older one keeps counting until the newer one is full. */
export interface OutageState {
  readonly from: number
  readonly now: OutageHalf
  readonly before: OutageHalf
  /** When the dependency last handled any message, as observed by this process. */
  readonly handledAt: number
}

export interface OutageHalf {
  readonly handled: number
  /** Distinct messages that failed: one message that fails again and again is no outage. Bounded. */
  readonly failed: readonly string[]
  /** Failures beyond the bound. That many messages cannot all be bad, so each failure counts. */
  readonly surplus: number
}

/** 256 distinct messages: far above any threshold. A failure compares with each of them. */
const FAILED_BOUND = 256

const EMPTY: OutageHalf = Object.freeze({
  handled: 0,
  failed: Object.freeze([]),
  surplus: 0,
})

export const NO_OUTAGE: OutageState = Object.freeze({
  from: 0,
  now: EMPTY,
  before: EMPTY,
  handledAt: 0,
})

export function outageHandled(
  policy: OutagePolicy,
  state: OutageState,
  { count, at }: { readonly count: number; readonly at: number },
  now: number,
): OutageState {
  const current = turned(policy, state, now)
  return {
    ...current,
    now: { ...current.now, handled: current.now.handled + count },
    handledAt: Math.max(current.handledAt, at),
  }
}

export function outageFailed(
  policy: OutagePolicy,
  state: OutageState,
  messageId: string,
  now: number,
): OutageState {
  const current = turned(policy, state, now)
  const { failed, surplus } = current.now
  if (failed.includes(messageId)) return current
  const half =
    failed.length < FAILED_BOUND
      ? { ...current.now, failed: [...failed, messageId] }
      : { ...current.now, surplus: surplus + 1 }
  return { ...current, now: half }
}

export function isSick(policy: OutagePolicy, state: OutageState, now: number): boolean {
  const { now: newer, before: older } = turned(policy, state, now)
  const distinct = new Set([...newer.failed, ...older.failed]).size
  const failing = distinct + newer.surplus + older.surplus
  const handled = newer.handled + older.handled
  return failing >= policy.failures && failing >= (failing + handled) * policy.ratio
}

/**
 * Returns true when the dependency handled another message while this one waited for its retry. Without
 * that proof the cause is unknown: in a fleet of thousands, five attempts of one message may reach five
 * processes that each see their first failure. The wait is measured only on this process's clock, so
 * differences between the clocks of processes have no effect.
 */
export function hasServedOthers(state: OutageState, waitedMs: number, now: number): boolean {
  return state.handledAt > now - waitedMs && state.handledAt <= now
}

function turned(policy: OutagePolicy, state: OutageState, now: number): OutageState {
  const age = now - state.from
  const half = policy.windowMs / 2
  if (age >= 0 && age < half) return state
  const isRecent = age >= half && age < policy.windowMs
  return { ...state, from: now, now: EMPTY, before: isRecent ? state.now : EMPTY }
}
