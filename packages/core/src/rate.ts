/** A rate per second, and the maximum number of unused tokens that are kept. */
export interface RatePolicy {
  readonly perSecond: number
  readonly burst: number
}

export interface RateState {
  readonly tokens: number
  readonly at: number
}

export interface RateResult {
  readonly state: RateState
  readonly granted: boolean
}

export const startRate = ({ burst }: RatePolicy, now: number): RateState => ({
  tokens: burst,
  at: now,
})

/** Takes one token when one is available. */
export function takeOne(policy: RatePolicy, state: RateState, now: number): RateResult {
  const seconds = Math.max(0, now - state.at) / 1_000
  const tokens = Math.min(policy.burst, state.tokens + seconds * policy.perSecond)
  const granted = tokens >= 1
  return { granted, state: { tokens: granted ? tokens - 1 : tokens, at: Math.max(state.at, now) } }
}
