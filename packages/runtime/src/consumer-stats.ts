import type { BreakerPhase, Delivery } from '@redrive/core'
import type { Loop } from './loop.ts'

export interface ConsumerStats {
  readonly running: number
  /** Handlers that still run after their timeout and the grace period. */
  readonly hung: number
  readonly waiting: number
  /** Decided deliveries without a result of the broker: acknowledgements, hand-offs and slowed dead letters. */
  readonly settling: number
  readonly concurrencyLimit: number
  readonly handled: number
  readonly failed: number
  readonly breaker: BreakerPhase
  readonly isPaused: boolean
}

export function statsOf<D extends Delivery>(loop: Loop<D>): ConsumerStats {
  const { capacity, waiting, inline, unended, trial, handOff, slowed, guardState } = loop
  const suspects = trial.suspect === undefined ? 0 : 1
  return {
    running: capacity.running,
    hung: unended.hung,
    waiting: waiting.length + inline.size + unended.held + suspects,
    settling: handOff.pending + slowed.size,
    concurrencyLimit: capacity.allowed,
    handled: guardState.handledCount,
    failed: loop.failedCount,
    breaker: guardState.breakerPhase(loop.deps.clock.now()),
    isPaused: !capacity.intake.isOpen,
  }
}
