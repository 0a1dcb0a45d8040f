import type { Delivery, Pause, Policy } from '@redrive/core'
import type { Attempt } from './attempt.ts'
import type { Clock } from './clock.ts'
import type { Dependency } from './dependency.ts'
import type { PauseReason } from './events.ts'
import type { GuardState } from './guard-state.ts'
import type { HandOff } from './handoff.ts'
import { Idle } from './idle.ts'
import type { InlineRetries } from './inline.ts'
import { Intake } from './intake.ts'
import type { PendingDelivery } from './pending-delivery.ts'
import type { Transport } from './ports/transport.ts'
import type { SlowedDeadLetters } from './slowed-dead-letters.ts'
import type { Trial } from './trial.ts'
import type { UnendedRuns } from './unended-runs.ts'

export interface CapacityDeps<D extends Delivery> {
  readonly transport: Transport<D>
  readonly policy: Policy
  readonly dependency: Dependency
  readonly clock: Clock
  readonly guardState: GuardState
  readonly handOff: HandOff<D>
  readonly inline: InlineRetries<D>
  readonly slowed: SlowedDeadLetters<D>
  readonly trial: Trial<D>
  readonly unended: UnendedRuns<D>
  /** Called after each change: more attempts may run, or waiting deliveries must be returned. */
  readonly onChange: () => void
}

/**
 * How many attempts run and may run. Everything that changes the number calls `refresh`: guards, pauses,
 * trials, hand-offs and the shutdown.
 */
export class Capacity<D extends Delivery> {
  readonly #deps: CapacityDeps<D>
  readonly #unsubscribe: () => void
  readonly intake: Intake<D>
  readonly idle: Idle
  /** Attempts that may run now; 0 means paused. */
  allowed = 0
  running = 0
  /** Running attempts that are long: they count against the concurrency only. */
  longRuns = 0
  /** The concurrency without the hung handlers. */
  #slots: number
  /** True when the breaker is open and the policy does not wait. */
  isGivingUp = false
  isStopping = false
  isPauseRequested = false
  /** Maximum probes of all consumers of the dependency; no limit unless the breaker is half-open. */
  #maxProbes = Number.POSITIVE_INFINITY

  constructor(deps: CapacityDeps<D>) {
    this.#deps = deps
    this.#slots = deps.policy.concurrency
    this.intake = new Intake(deps.transport, deps.clock, () => this.refresh())
    this.idle = new Idle(deps.clock, () => this.#isBusy())
    this.#unsubscribe = deps.dependency.onChange(() => this.refresh())
  }

  get hasRoom(): boolean {
    return (
      this.running - this.longRuns < this.allowed &&
      this.running < this.#slots &&
      this.#deps.dependency.probesInFlight < this.#maxProbes
    )
  }

  /** Counts attempts that have become long: a job must not stop the others when the guards allow only few attempts. */
  addLongRuns(count: number): void {
    this.longRuns += count
    this.refresh()
  }

  /** Frees the slot of an attempt. */
  leave(attempt: Attempt<D>): void {
    this.running -= 1
    if (attempt.isLong) this.longRuns -= 1
  }

  /** True when the guards may allow more attempts than now. */
  get canGrow(): boolean {
    const { policy } = this.#deps
    return policy.adaptiveConcurrency !== undefined && this.allowed < policy.concurrency
  }

  pause(): void {
    this.isPauseRequested = true
    this.refresh()
  }

  resume(): void {
    this.isPauseRequested = false
    this.refresh()
  }

  stop(): void {
    this.isStopping = true
    this.refresh()
  }

  prepareTrial(suspect: PendingDelivery<D>): void {
    this.#deps.trial.prepare(suspect)
    this.refresh()
  }

  endTrial(): void {
    this.#deps.trial.end()
    this.refresh()
  }

  /** Ends the single mode: this delivery is not suspect, so the guards set the limit from the next one on. */
  endSerial(): void {
    this.#deps.trial.isSerial = false
    queueMicrotask(() => this.refresh())
  }

  /** Records successes in the guards: immediately when it matters, otherwise once per tick. */
  recordSuccesses(...now: Parameters<GuardState['flushSuccesses']>): void {
    if (this.#deps.guardState.flushSuccesses(...now)) this.refresh()
  }

  /** Derives how many attempts may run, and opens or closes the intake accordingly. */
  refresh(): void {
    const { clock, guardState, policy, inline, slowed, handOff, unended, onChange } = this.#deps
    const now = clock.now()
    guardState.current()
    const phase = guardState.breakerPhase(now)
    this.isGivingUp = phase === 'open' && policy.onBreakerOpen === 'deadLetter'
    this.#maxProbes =
      phase === 'halfOpen' ? (policy.breaker?.probes ?? 1) : Number.POSITIVE_INFINITY
    const reason = this.#pauseReason(now)
    this.#slots = policy.concurrency - unended.hung
    const until = reason === 'flood' ? slowed.fullUntil : guardState.pausedUntil(now)
    if (reason === undefined) {
      this.allowed = this.#howMany(now)
      // Deliveries that only wait here must not take the slots of those that could run.
      // In lane order, the next message of a lane waits for this one anyway.
      const handedOff = policy.order === 'lane' ? handOff.stuck : handOff.roomFor(this.allowed)
      const apart = inline.size + slowed.roomFor(policy.concurrency) + handedOff
      this.intake.open(Math.min(this.allowed + this.longRuns, this.#slots) + apart, until)
    } else {
      this.allowed = 0
      this.intake.close(reason, until)
    }
    onChange()
    this.idle.check()
  }

  #howMany(now: number): number {
    const { handOff, trial, policy, guardState } = this.#deps
    // One at a time while hand-offs fail: the broker may reject only one of them, and the rest must continue.
    if (handOff.isFailing || trial.isSerial) return 1
    const allowed = this.isGivingUp ? policy.concurrency : guardState.allowed(now)
    return Math.min(allowed, this.#slots)
  }

  #pauseReason(now: number): PauseReason | undefined {
    const { handOff, trial, policy, guardState, slowed, unended } = this.#deps
    if (this.isStopping || this.isPauseRequested) return 'requested'
    if (trial.phase !== 'none') return 'trial'
    if (unended.hung >= policy.concurrency) return 'handlers_hung'
    if (handOff.stuck >= policy.concurrency) return 'hand_off_failing'
    if (slowed.isFull) return 'flood'
    const phase = guardState.breakerPhase(now)
    const isShut = phase === 'isolated' || (phase === 'open' && !this.isGivingUp)
    return isShut ? 'dependency_unhealthy' : undefined
  }

  #isBusy(): boolean {
    const { handOff, trial } = this.#deps
    return this.running > 0 || handOff.pending > 0 || trial.phase === 'preparing'
  }

  /** True when no delivery may stay in this process. */
  get mustReturnAll(): boolean {
    return this.isStopping || this.#deps.trial.phase !== 'none'
  }

  /** Returns why waiting deliveries go back to their source. */
  returnReason(): Pause['reason'] {
    if (this.isStopping) return 'stopping'
    return this.#pauseReason(this.#deps.clock.now()) ?? 'requested'
  }

  /** Ends the next check and the subscription of the dependency. */
  release(): void {
    this.#unsubscribe()
    this.intake.stop()
  }
}
