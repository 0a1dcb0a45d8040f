/**
 * Tells a sick dependency from a bad message: when many messages fail together it is the
 * dependency; when one fails while others pass it is the message. The breaker catches a dependency
 * that is gone; this window catches one that answers only some of the time, and keeps the proof that
 * others passed.
 */
export interface OutagePolicy {
  readonly ratio: number
  readonly failures: number
  readonly windowMs: number
}

/** Two halves of the window: the older one keeps counting until the newer one is full. */
export interface OutageState {
  readonly from: number
  readonly now: OutageHalf
  readonly before: OutageHalf
  /** When the dependency last served anyone, as far as this process knows. */
  readonly handledAt: number
}

export interface OutageHalf {
  readonly handled: number
  /** Failures that are certainly about the dependency. */
  readonly unreachable: number
  /** Distinct messages whose failure may be their own. Bounded. */
  readonly suspects: readonly string[]
}

/** 256 distinct messages: far above any threshold, and a failure costs one look at each. */
const SUSPECT_BOUND = 256

const EMPTY: OutageHalf = Object.freeze({
  handled: 0,
  unreachable: 0,
  suspects: Object.freeze([]),
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

export function outageUnreachable(
  policy: OutagePolicy,
  state: OutageState,
  now: number,
): OutageState {
  const current = turned(policy, state, now)
  return { ...current, now: { ...current.now, unreachable: current.now.unreachable + 1 } }
}

export function outageUnexplained(
  policy: OutagePolicy,
  state: OutageState,
  messageId: string,
  now: number,
): OutageState {
  const current = turned(policy, state, now)
  const { suspects, unreachable } = current.now
  if (suspects.includes(messageId)) return current
  if (suspects.length >= SUSPECT_BOUND) {
    // So many different messages cannot all be bad: from here on they only count.
    return { ...current, now: { ...current.now, unreachable: unreachable + 1 } }
  }
  return { ...current, now: { ...current.now, suspects: [...suspects, messageId] } }
}

export function isSick(policy: OutagePolicy, state: OutageState, now: number): boolean {
  const { now: newer, before: older } = turned(policy, state, now)
  const suspects = new Set([...newer.suspects, ...older.suspects]).size
  const failing = suspects + newer.unreachable + older.unreachable
  const handled = newer.handled + older.handled
  return failing >= policy.failures && failing >= (failing + handled) * policy.ratio
}

/**
 * Whether the dependency served someone while this message waited for its retry. Without that proof
 * nobody can tell the message from the dependency: in a fleet of thousands, five attempts of one
 * message may meet five processes that each see their first failure. The wait is measured on this
 * process's clock alone, so skew between processes cannot fake a proof.
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
