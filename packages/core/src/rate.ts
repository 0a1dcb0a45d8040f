/** A rate: so many a second, and a burst that may be saved up. */
export interface RatePolicy {
  readonly perSecond: number
  readonly burst: number
}

export interface RateState {
  readonly tokens: number
  readonly at: number
}

export interface RateAnswer {
  readonly state: RateState
  readonly granted: boolean
}

export const startRate = ({ burst }: RatePolicy, now: number): RateState => ({
  tokens: burst,
  at: now,
})

/** Takes one, if there is one. */
export function takeOne(policy: RatePolicy, state: RateState, now: number): RateAnswer {
  const seconds = Math.max(0, now - state.at) / 1_000
  const tokens = Math.min(policy.burst, state.tokens + seconds * policy.perSecond)
  const granted = tokens >= 1
  return { granted, state: { tokens: granted ? tokens - 1 : tokens, at: Math.max(state.at, now) } }
}
