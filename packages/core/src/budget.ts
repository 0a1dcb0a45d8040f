import type { Random } from './backoff.ts'

/**
 * Retry budget: retries are a share of successes plus a minimum, and never exceed a rate. Each
 * process limits only its own share. A fleet of any size then keeps the same share without coordination.
 * Retries over budget return in stages: one batch per interval, spread within the interval.
 */
export interface BudgetPolicy {
  readonly ratio: number
  readonly floorPerSecond: number
  readonly burst: number
  readonly ratePerSecond: number
  readonly onExceeded: 'delay' | 'deadLetter' | 'drop'
  readonly release: { readonly batch: number; readonly intervalMs: number }
}

export interface BudgetState {
  /** Retries that the ratio and the minimum still allow. */
  readonly tokens: number
  /** Retries the rate still allows. */
  readonly rateTokens: number
  readonly at: number
  /** The release stage that is being filled, and how many retries it contains. */
  readonly stageAt: number
  readonly staged: number
}

export interface BudgetResult {
  readonly state: BudgetState
  /** Earliest time of the retry: now when within budget, otherwise the time of its stage. */
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

/** Takes one retry from the budget, or the next free slot in the staged release. */
export function takeRetry(
  policy: BudgetPolicy,
  state: BudgetState,
  now: number,
  random: Random,
): BudgetResult {
  const filled = refill(policy, state, now)
  if (filled.tokens >= 1 && filled.rateTokens >= 1) {
    return {
      state: { ...filled, tokens: filled.tokens - 1, rateTokens: filled.rateTokens - 1 },
      releaseAt: now,
      granted: true,
    }
  }
  // Only a retry that will run takes a slot in the stages.
  if (policy.onExceeded !== 'delay') return { state: filled, releaseAt: now, granted: false }
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
): BudgetResult {
  const isPast = state.stageAt <= now
  const isFull = state.staged >= release.batch
  const stageAt = isPast
    ? now + release.intervalMs
    : isFull
      ? state.stageAt + release.intervalMs
      : state.stageAt
  const staged = stageAt === state.stageAt ? state.staged + 1 : 1
  return {
    // Charged in advance: a staged retry uses the budget of the interval in which it is released.
    state: { ...state, tokens: state.tokens - 1, stageAt, staged },
    releaseAt: stageAt + Math.floor(random() * release.intervalMs),
    granted: false,
  }
}
