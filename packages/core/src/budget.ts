import type { Random } from './backoff.ts'

/**
 * Retry budget: retries are a share of successes plus a floor, and never more than a rate. Each
 * process keeps to its own share, so a fleet of any size keeps to the same share without talking.
 * What is over budget returns in stages, a batch per interval, spread inside the interval.
 */
export interface BudgetPolicy {
  readonly ratio: number
  readonly floorPerSecond: number
  readonly burst: number
  readonly ratePerSecond: number
  readonly whenOver: 'delay' | 'deadLetter' | 'drop'
  readonly release: { readonly batch: number; readonly intervalMs: number }
}

export interface BudgetState {
  /** Retries the ratio and floor still allow. */
  readonly tokens: number
  /** Retries the rate still allows. */
  readonly rateTokens: number
  readonly at: number
  /** The release stage being filled, and how many are in it. */
  readonly stageAt: number
  readonly staged: number
}

export interface BudgetAnswer {
  readonly state: BudgetState
  /** When the retry may run at the earliest: now when within budget, else its stage. */
  readonly releaseAt: number
  readonly granted: boolean
}

export function startBudget(policy: BudgetPolicy, now: number): BudgetState {
  return {
    tokens: policy.burst,
    rateTokens: policy.ratePerSecond,
    at: now,
    stageAt: now,
    staged: 0,
  }
}

export function depositSuccesses(
  policy: BudgetPolicy,
  state: BudgetState,
  count: number,
): BudgetState {
  if (state.tokens >= policy.burst) return state
  return { ...state, tokens: Math.min(policy.burst, state.tokens + count * policy.ratio) }
}

/** Take one retry from the budget, or the next free place in the staged release. */
export function takeRetry(
  policy: BudgetPolicy,
  state: BudgetState,
  now: number,
  random: Random,
): BudgetAnswer {
  const filled = refill(policy, state, now)
  if (filled.tokens >= 1 && filled.rateTokens >= 1) {
    return {
      state: { ...filled, tokens: filled.tokens - 1, rateTokens: filled.rateTokens - 1 },
      releaseAt: now,
      granted: true,
    }
  }
  // Only what will run again takes a place in the stages.
  if (policy.whenOver !== 'delay') return { state: filled, releaseAt: now, granted: false }
  return stage(policy, filled, now, random)
}

function refill(policy: BudgetPolicy, state: BudgetState, now: number): BudgetState {
  const seconds = Math.max(0, now - state.at) / 1_000
  return {
    ...state,
    at: Math.max(state.at, now),
    tokens: Math.min(policy.burst, state.tokens + seconds * policy.floorPerSecond),
    rateTokens: Math.min(policy.ratePerSecond, state.rateTokens + seconds * policy.ratePerSecond),
  }
}

function stage(
  { release }: BudgetPolicy,
  state: BudgetState,
  now: number,
  random: Random,
): BudgetAnswer {
  const isPast = state.stageAt <= now
  const isFull = state.staged >= release.batch
  const stageAt = isPast
    ? now + release.intervalMs
    : isFull
      ? state.stageAt + release.intervalMs
      : state.stageAt
  const staged = stageAt === state.stageAt ? state.staged + 1 : 1
  return {
    // Charged in advance: what is staged fits in the budget of the time it is released in.
    state: { ...state, tokens: state.tokens - 1, stageAt, staged },
    releaseAt: stageAt + Math.floor(random() * release.intervalMs),
    granted: false,
  }
}
