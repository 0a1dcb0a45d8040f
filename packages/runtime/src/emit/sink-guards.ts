import type { BreakerPhase, Policy } from '@redrive/core'
import type { Clock } from '../clock.ts'
import type { GuardState } from '../guard-state.ts'

interface SinkGuardsOptions {
  readonly policy: Policy
  readonly clock: Clock
}

/** The breaker and the retry budget of one sink, for the code that sends stored events again. */
export class SinkGuards {
  readonly #options: SinkGuardsOptions
  readonly #guardState: GuardState

  constructor(options: SinkGuardsOptions, guardState: GuardState) {
    this.#options = options
    this.#guardState = guardState
  }

  phase(): BreakerPhase {
    this.#guardState.current()
    return this.#guardState.breakerPhase(this.#options.clock.now())
  }

  /** Time of the next probe; undefined unless the breaker is open. */
  get probeAt(): number | undefined {
    this.#guardState.current()
    return this.#guardState.pausedUntil(this.#options.clock.now())
  }

  /** Minimum time between two replays, so that no second exceeds the rate of the budget. */
  get replayEveryMs(): number {
    const { retryBudget } = this.#options.policy
    return retryBudget === undefined ? 0 : 1_000 / retryBudget.ratePerSecond
  }

  /** Takes a retry for a replay from the budget, when one is available. */
  takeReplayToken(): boolean {
    return this.#guardState.takeRetryToken()
  }
}
