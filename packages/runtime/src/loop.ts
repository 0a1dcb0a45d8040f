import {
  type DecideResult,
  type Decision,
  type Delivery,
  type FailureCycle,
  isRedriveError,
  type RedriveError,
  SETTLE,
} from '@redrive/core'
import { ALREADY_HANDLED, isPlain } from '@redrive/core/internal'
import { Attempt, Deadlines } from './attempt.ts'
import { promiseOf } from './awaitable.ts'
import { Capacity } from './capacity.ts'
import { reportHeaderProblems } from './header-problems.ts'
import { GuardState } from './guard-state.ts'
import { Enacting } from './enacting.ts'
import { HandOff } from './handoff.ts'
import { InlineRetries, isInlineRetry } from './inline.ts'
import type { LoopDeps } from './loop-deps.ts'
import { LostDeliveries } from './lost-deliveries.ts'
import { forgetLost } from './forget-lost.ts'
import { newPendingDelivery, type PendingDelivery } from './pending-delivery.ts'
import type { Receiver, Transport } from './ports/transport.ts'
import { type MessageState, runGroupOf } from './run-group.ts'
import { runWaiting } from './run-waiting.ts'
import { SlowedDeadLetters } from './slowed-dead-letters.ts'
import { Trial } from './trial.ts'
import { type HeldDelivery, UnendedRuns } from './unended-runs.ts'

/**
 * Processes deliveries. Each one has these steps: receive → admit → run → decide → enact. The rules are in
 * core, and the code for a broker is in its transport. The files next to this one wait and count:
 * `run-waiting.ts`, `capacity.ts`, `trial.ts`, `inline.ts`, `handoff.ts`, `attempt.ts` (deadlines),
 * `unended-runs.ts` and `shutdown.ts`.
 */
export class Loop<D extends Delivery> implements Receiver<D> {
  readonly deps: LoopDeps<D>
  readonly guardState: GuardState
  readonly deadlines: Deadlines<D>
  readonly handOff: HandOff<D>
  readonly inline: InlineRetries<D>
  readonly slowed: SlowedDeadLetters<D>
  readonly trial: Trial<D> = new Trial()
  readonly unended: UnendedRuns<D>
  readonly capacity: Capacity<D>
  readonly enacting: Enacting<D>
  readonly waiting: PendingDelivery<D>[] = []
  failedCount = 0
  readonly #transport: Transport<D>
  readonly losses: LostDeliveries<D> = new LostDeliveries((lost) => forgetLost(this, lost))

  constructor(deps: LoopDeps<D>) {
    const { transport, policy, clock } = deps
    this.deps = deps
    this.#transport = transport
    const guardState = new GuardState({ ...deps, source: transport.source })
    const handOff = new HandOff(deps, this.losses, () => this.capacity.refresh())
    const inline = new InlineRetries<D>(clock)
    this.guardState = guardState
    this.handOff = handOff
    this.inline = inline
    const unended = new UnendedRuns<D>({
      clock,
      graceMs: policy.graceMs,
      group: runGroupOf(transport),
      isRunning: (messageId) => this.deadlines.isRunning(messageId),
      onHung: (attempt, held) => this.#decideWithout(attempt, held),
      onOther: (state, held) => this.#continueAfterOther(state, held),
    })
    this.unended = unended
    this.slowed = new SlowedDeadLetters<D>(clock, this)
    this.capacity = new Capacity({
      ...deps,
      guardState,
      handOff,
      inline,
      slowed: this.slowed,
      trial: this.trial,
      unended,
      onChange: () => runWaiting(this),
    })
    this.enacting = new Enacting(deps, handOff, this.slowed, this.capacity.idle)
    this.deadlines = new Deadlines(
      clock,
      policy.timeoutMs,
      () => this.capacity.recordSuccesses(),
      (count) => this.capacity.addLongRuns(count),
      (attempt, error) => this.interrupt(attempt, error),
    )
  }

  async start(): Promise<void> {
    // Before the first delivery: the dependency may already be marked as down.
    this.capacity.refresh()
    await this.#transport.receive(this)
  }

  // ---- 1. receive -----------------------------------------------------------------------------

  /** Called by the transport, which has read the headers. */
  deliver(delivery: D): void {
    this.losses.handle()
    reportHeaderProblems(delivery, this.deps.clock)
    const { capacity } = this
    const hasRoom = capacity.hasRoom && this.waiting.length === 0 && this.unended.isQuiet
    if (hasRoom && !capacity.isGivingUp && !this.trial.isSerial && isPlain(delivery)) {
      this.#run(delivery, delivery.cycle, false)
      return
    }
    this.waiting.push(newPendingDelivery(delivery))
    runWaiting(this)
  }

  // ---- 2. admit -------------------------------------------------------------------------------

  /** Called for a waiting delivery that may not run. */
  refuse(pending: PendingDelivery<D>, decision: Decision): void {
    this.#carryOut(pending, decision, false)
  }

  // ---- 3. run ---------------------------------------------------------------------------------

  /** Starts an attempt, unless an earlier run of the same message is alive in this process. */
  begin(pending: PendingDelivery<D>, alone: boolean): void {
    const { delivery, failures } = pending
    const earlier = this.unended.isQuiet ? 'ended' : this.unended.stateOf(delivery.id)
    if (earlier === 'ended') this.#run(delivery, failures, alone)
    else if (earlier === 'hung') this.#waitForEarlierRun({ pending, alone })
    else this.unended.hold({ pending, alone })
  }

  /** Starts one attempt. `call` decodes the body, checks schema and inbox, and runs the handler. */
  #run(delivery: D, failures: FailureCycle, alone: boolean): void {
    const attempt = new Attempt(delivery, failures, alone)
    this.capacity.running += 1
    this.deadlines.add(attempt)
    // Always through a promise, also for a synchronous handler: a long queue must not become a deep stack.
    let settled: Promise<unknown>
    try {
      const result = this.deps.call(attempt)
      settled = promiseOf(result)
    } catch (error) {
      settled = Promise.reject(error)
    }
    settled.then(
      () => this.#succeeded(attempt),
      (error: unknown) => this.#failed(attempt, error),
    )
  }

  /**
   * Ends a run whose handler ended. Returns false when the message does not depend on it any more: it was
   * decided without this run, or another consumer owns it.
   */
  #end(attempt: Attempt<D>): boolean {
    this.losses.handle()
    const { capacity } = this
    if (attempt.interruptedBy === undefined) {
      capacity.leave(attempt)
      this.deadlines.remove(attempt)
      this.unended.finish(attempt.delivery.id)
      return true
    }
    const { wasHung, held } = this.unended.end(attempt)
    if (!wasHung) capacity.leave(attempt)
    this.#release(held)
    if (!wasHung && !attempt.isLost) return true
    if (!wasHung && attempt.alone) this.trial.end()
    capacity.refresh()
    return false
  }

  /** Lets deliveries run that waited for an earlier run of their message. */
  #release(held: readonly HeldDelivery<D>[]): void {
    for (const { pending, alone } of held) {
      if (alone) this.begin(pending, true)
      else this.waiting.unshift(pending)
    }
  }

  // ---- 4. decide ------------------------------------------------------------------------------

  #succeeded(attempt: Attempt<D>): void {
    const { capacity, guardState, deadlines } = this
    const wasFull = !capacity.hasRoom
    if (!this.#end(attempt)) return
    if (attempt.alreadyHandled || attempt.isSkipped) guardState.countWithoutCall()
    else guardState.count(deadlines.tickAt)
    if (attempt.failures.runs > 0) guardState.unproven.passed(attempt.delivery.id)
    const isLate = deadlines.isLate(attempt)
    if (!guardState.isCalm || isLate || (wasFull && capacity.canGrow)) {
      const timing = deadlines.timingOf(attempt, capacity.running - capacity.longRuns)
      capacity.recordSuccesses({ ...timing, late: isLate, saturated: wasFull })
    }
    this.enacting.settle(attempt.delivery, attempt.alreadyHandled ? ALREADY_HANDLED : SETTLE)
    if (attempt.alone) capacity.endTrial()
    else if (this.waiting.length > 0) runWaiting(this)
  }

  #failed(attempt: Attempt<D>, error: unknown): void {
    if (!this.#end(attempt)) return
    this.#decideFailure(attempt, attempt.interruptedBy ?? error)
  }

  #decideFailure(attempt: Attempt<D>, error: unknown): void {
    const { capacity, guardState, deadlines } = this
    const pending = newPendingDelivery(attempt.delivery, attempt.failures)
    if (capacity.isStopping && isRedriveError(error, 'STOPPING')) {
      this.enacting.returnAll([pending], 'stopping')
      return
    }
    this.failedCount += 1
    capacity.recordSuccesses()
    const timing = deadlines.timingOf(attempt, capacity.running - capacity.longRuns)
    this.#apply(pending, attempt.alone, guardState.decide(attempt, error, timing))
  }

  #waitForEarlierRun({ pending, alone }: HeldDelivery<D>): void {
    this.#apply(pending, alone, this.guardState.waitForEarlierRun(pending))
  }

  #apply(pending: PendingDelivery<D>, alone: boolean, result: DecideResult): void {
    const { guardState } = this
    const { decision, guards, events } = result
    guardState.report(events)
    // First the message, then the guards: a delivery that they start must find this one in its position.
    // A pause has the opposite order: the saved guards close the intake.
    const isPause = decision.kind === 'pause'
    if (isPause) guardState.save(guards)
    this.#carryOut(pending, decision, alone)
    if (!isPause) guardState.save(guards)
    this.capacity.refresh()
  }

  /** Tells a handler to end: it is too slow, the consumer stops, or the broker took its delivery back. */
  interrupt(attempt: Attempt<D>, error: RedriveError): void {
    attempt.interruptedBy = error
    this.deadlines.remove(attempt)
    this.unended.add(attempt)
    attempt.abort(error)
  }

  /** Decides a message whose handler does not end. The deliveries that waited for it fail as well. */
  #decideWithout(attempt: Attempt<D>, held: readonly HeldDelivery<D>[]): void {
    this.capacity.leave(attempt)
    if (!attempt.isLost) this.#decideFailure(attempt, attempt.interruptedBy)
    else if (attempt.alone) this.trial.end()
    for (const one of held) this.#waitForEarlierRun(one)
    this.capacity.refresh()
  }

  /** Called when the deliveries waited for a run of another consumer, which ended or is hung. */
  #continueAfterOther(state: MessageState, held: readonly HeldDelivery<D>[]): void {
    if (state === 'ended') this.#release(held)
    else for (const one of held) this.#waitForEarlierRun(one)
    this.capacity.refresh()
  }

  // ---- 5. enact, and report the result ---------------------------------------------------------

  #carryOut(pending: PendingDelivery<D>, decision: Decision, alone: boolean): void {
    const { policy, transport } = this.deps
    const { capabilities } = transport
    if (decision.kind === 'retryAt' && isInlineRetry(decision.delayMs, policy, capabilities)) {
      const { cycle: failures, dueAt, delayMs } = decision
      this.#retryInline({ ...pending, failures, dueAt }, delayMs, alone)
      return
    }
    if (alone) this.trial.end()
    if (decision.kind === 'pause') {
      // The intake closes first, or the returned delivery would come back immediately.
      this.capacity.refresh()
      this.enacting.returnToSource(pending, decision)
    } else {
      this.enacting.carryOut(pending.delivery, decision)
    }
  }

  #retryInline(pending: PendingDelivery<D>, delayMs: number, alone: boolean): void {
    if (this.capacity.isStopping) return this.enacting.returnAll([pending], 'stopping')
    if (this.trial.isOn && !alone) return this.enacting.returnAll([pending], 'trial')
    this.inline.hold(pending, delayMs, alone, (due) => {
      if (alone) return this.begin(due, true)
      this.waiting.unshift(due)
      this.capacity.refresh()
    })
  }

  // ---- at any time ----------------------------------------------------------------------------

  /** Called by the transport when the broker has taken the delivery back. */
  lost(delivery: D): void {
    this.losses.collect(delivery)
  }
}
