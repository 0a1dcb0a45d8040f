import {
  type Decision,
  type Delivery,
  type FailureCycle,
  isRedriveError,
  type Pause,
  type RedriveError,
  SETTLE,
} from '@redrive/core'
import { type Admission, ALREADY_HANDLED, admit, isPlain } from '@redrive/core/internal'
import { Attempt, Deadlines } from './attempt.ts'
import { Capacity } from './capacity.ts'
import { hasListeners, publish } from './events.ts'
import { type AttemptTiming, GuardState, type GuardStateDeps } from './guard-state.ts'
import { HandOff } from './handoff.ts'
import { InlineRetries, isInlineRetry } from './inline.ts'
import type { Call } from './invoke.ts'
import { LostDeliveries } from './lost-deliveries.ts'
import {
  newPendingDelivery,
  type PendingDelivery,
  pauseDecision,
  returnDecision,
  splitDelay,
} from './pending-delivery.ts'
import type { Awaitable } from './awaitable.ts'
import { type Enactment, type Receiver, SETTLED, type Transport } from './ports/transport.ts'
import { Trial } from './trial.ts'

export interface LoopDeps<D extends Delivery> extends Omit<GuardStateDeps, 'source'> {
  readonly transport: Transport<D>
  readonly call: Call
}

/**
 * Processes deliveries. Each one has these steps: receive → admit → run → decide → enact. The rules are in
 * core, and the code for a broker is in its transport. The files next to this one wait and count:
 * `capacity.ts`, `trial.ts`, `inline.ts`, `handoff.ts`, `attempt.ts` (deadlines) and `shutdown.ts`.
 */
export class Loop<D extends Delivery> implements Receiver<D> {
  readonly deps: LoopDeps<D>
  readonly guardState: GuardState
  readonly deadlines: Deadlines<D>
  readonly handOff: HandOff<D>
  readonly inline: InlineRetries<D>
  readonly trial: Trial<D>
  readonly capacity: Capacity<D>
  readonly waiting: PendingDelivery<D>[] = []
  failedCount = 0
  readonly #transport: Transport<D>
  readonly #call: Call
  readonly #lost = new LostDeliveries()

  constructor(deps: LoopDeps<D>) {
    const { transport, policy, clock } = deps
    this.deps = deps
    this.#transport = transport
    this.#call = deps.call
    const guardState = new GuardState({ ...deps, source: transport.source })
    const handOff = new HandOff(transport, clock, () => this.capacity.refresh())
    const inline = new InlineRetries<D>(clock)
    const trial = new Trial<D>()
    const onChange = () => this.#runWaiting()
    this.guardState = guardState
    this.handOff = handOff
    this.inline = inline
    this.trial = trial
    this.capacity = new Capacity({ ...deps, guardState, handOff, inline, trial, onChange })
    this.deadlines = new Deadlines(
      clock,
      policy.timeoutMs,
      () => this.capacity.recordSuccesses(),
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
    if (delivery.headerProblems.length > 0) this.#reportHeaders(delivery)
    const { capacity } = this
    const hasRoom = capacity.hasRoom && this.waiting.length === 0
    if (hasRoom && !capacity.isGivingUp && !this.trial.isSerial && isPlain(delivery)) {
      this.#run(delivery, delivery.cycle, false)
      return
    }
    this.waiting.push(newPendingDelivery(delivery))
    this.#runWaiting()
  }

  #reportHeaders({ id: deliveryId, source, headerProblems: problems }: D): void {
    const at = this.deps.clock.now()
    publish({ type: 'headers_unreadable', at, source, deliveryId, problems })
  }

  // ---- 2. admit -------------------------------------------------------------------------------

  /** Runs waiting deliveries while there is room. Returns all of them when none may run. */
  #runWaiting(): void {
    const { capacity, waiting } = this
    while (waiting.length > 0 && capacity.hasRoom) {
      const pending = waiting[0] as PendingDelivery<D>
      const admission = pending.admission ?? this.#admit(pending.delivery)
      if (admission.kind === 'runAlone' && capacity.running > 0) return
      waiting.shift()
      if (admission.kind === 'run' && this.trial.isSerial) capacity.endSerial()
      if (admission.kind === 'refused') this.#carryOut(pending, admission.decision, false)
      else if (admission.kind === 'runAlone') this.#prepareTrial(pending)
      else this.#run(pending.delivery, pending.failures, false)
    }
    if (capacity.allowed === 0) this.returnAll(waiting.splice(0), capacity.returnReason())
  }

  /** Checks breaker, due time and crashes, in this order. */
  #admit(delivery: D): Admission {
    const { policy, clock } = this.deps
    const now = clock.now()
    if (this.capacity.isGivingUp) {
      return { kind: 'refused', decision: this.guardState.giveUp(delivery) }
    }
    const deliveryCount = Math.max(1, delivery.deliveryCount - this.#lost.count(delivery.id))
    return admit({ policy, delivery: { cycle: delivery.cycle, deliveryCount }, now })
  }

  /** Runs a suspect when no other delivery is in flight or arriving. */
  #prepareTrial(pending: PendingDelivery<D>): void {
    this.capacity.prepareTrial(pending)
    this.returnAll(this.inline.takeAll(), 'trial')
    void this.capacity.intake.closed
      .then(() => this.handOff.whenIdle())
      .then(() => this.#beginTrial(pending))
  }

  #beginTrial(pending: PendingDelivery<D>): void {
    if (!this.trial.begin(pending)) return
    if (this.capacity.isStopping) this.returnAll([pending], 'stopping')
    else this.#run(pending.delivery, pending.failures, true)
  }

  // ---- 3. run ---------------------------------------------------------------------------------

  /** Starts one attempt. `call` decodes the body, checks schema and inbox, and runs the handler. */
  #run(delivery: D, failures: FailureCycle, alone: boolean): void {
    const attempt = new Attempt(delivery, failures, alone)
    this.capacity.running += 1
    this.deadlines.add(attempt)
    let result: unknown
    try {
      result = this.#call(attempt)
    } catch (error) {
      result = Promise.reject(error)
    }
    // Always through a promise, also for a synchronous handler: a long queue must not become a deep stack.
    const settled = result instanceof Promise ? result : Promise.resolve(result)
    settled.then(
      () => this.#succeeded(attempt),
      (error: unknown) => this.#failed(attempt, error),
    )
  }

  #end(attempt: Attempt<D>): void {
    attempt.isOver = true
    this.capacity.running -= 1
    this.deadlines.remove(attempt)
  }

  #timing(attempt: Attempt<D>): AttemptTiming {
    const inFlight = this.capacity.running + 1
    return { startedAt: this.deadlines.startedAt(attempt), inFlight }
  }

  // ---- 4. decide ------------------------------------------------------------------------------

  #succeeded(attempt: Attempt<D>): void {
    if (attempt.isOver) return
    const { capacity, guardState, deadlines } = this
    const wasFull = !capacity.hasRoom
    this.#end(attempt)
    guardState.count(deadlines.tickAt)
    const isLate = deadlines.isLate(attempt)
    if (!guardState.isCalm || isLate || (wasFull && capacity.canGrow)) {
      capacity.recordSuccesses({ ...this.#timing(attempt), late: isLate, saturated: wasFull })
    }
    this.#settle(attempt.delivery, attempt.alreadyHandled ? ALREADY_HANDLED : SETTLE)
    if (attempt.alone) capacity.endTrial()
    else if (this.waiting.length > 0) this.#runWaiting()
  }

  #failed(attempt: Attempt<D>, error: unknown): void {
    if (attempt.isOver) return
    const { capacity, guardState } = this
    this.#end(attempt)
    const pending = newPendingDelivery(attempt.delivery, attempt.failures)
    if (capacity.isStopping && isRedriveError(error, 'STOPPING')) {
      this.returnAll([pending], 'stopping')
      return
    }
    this.failedCount += 1
    capacity.recordSuccesses()
    const { decision, guards, events } = guardState.decide(attempt, error, this.#timing(attempt))
    guardState.report(events)
    // First the message, then the guards: a delivery that they start must find this one in its position.
    // A pause has the opposite order: the saved guards close the intake.
    const isPause = decision.kind === 'pause'
    if (isPause) guardState.save(guards)
    this.#carryOut(pending, decision, attempt.alone)
    if (!isPause) guardState.save(guards)
    capacity.refresh()
  }

  /** Ends an attempt whose handler still runs: it is too slow, or the consumer stops. */
  interrupt(attempt: Attempt<D>, error: RedriveError): void {
    attempt.abort(error)
    this.#failed(attempt, error)
  }

  // ---- 5. enact, and report the result ---------------------------------------------------------

  /** Settles a success. The common case creates no event and no promise, because this is the hot path. */
  #settle(delivery: D, decision: Decision): void {
    let enactment: Awaitable<Enactment>
    try {
      enactment = this.#transport.enact(delivery, decision)
    } catch (error) {
      enactment = { kind: 'unknown', error }
    }
    const { idle } = this.capacity
    if (enactment === SETTLED && !hasListeners()) idle.check()
    else if (!(enactment instanceof Promise)) this.#enact(delivery, decision, enactment)
    else this.handOff.settle(delivery, decision, enactment, idle.check)
  }

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
      this.capacity.pauseFor(decision)
      this.#returnToSource(pending, decision)
    } else {
      this.#enact(pending.delivery, splitDelay(decision, capabilities))
    }
  }

  #retryInline(pending: PendingDelivery<D>, delayMs: number, alone: boolean): void {
    if (this.capacity.isStopping) return this.returnAll([pending], 'stopping')
    this.inline.hold(pending, delayMs, alone, (due) => {
      if (alone) return this.#run(due.delivery, due.failures, true)
      this.waiting.unshift(due)
      this.capacity.refresh()
    })
  }

  returnAll(all: readonly PendingDelivery<D>[], reason: Pause['reason']): void {
    const { clock } = this.deps
    for (const pending of all) this.#returnToSource(pending, pauseDecision(reason, clock.now()))
  }

  #returnToSource(pending: PendingDelivery<D>, pause: Pause): void {
    const { policy, clock, transport } = this.deps
    const returned = returnDecision(pending, pause, policy.order, clock.now())
    this.#enact(pending.delivery, splitDelay(returned, transport.capabilities))
  }

  #enact(delivery: D, decision: Decision, begun?: Awaitable<Enactment>): void {
    void this.handOff.enact(delivery, decision, begun).then(this.capacity.idle.check)
  }

  // ---- at any time ----------------------------------------------------------------------------

  /** Called by the transport when the broker has taken the delivery back. */
  lost(delivery: D): void {
    const index = this.waiting.findIndex((pending) => pending.delivery === delivery)
    if (index >= 0) this.waiting.splice(index, 1)
    const isRunning = this.deadlines.all().some((attempt) => attempt.delivery === delivery)
    if (isRunning) this.#lost.add(delivery.id)
    const held = this.inline.take(delivery)
    // A trial whose handler runs continues. It is still alone here, even when another process owns the message now.
    const isSuspect = this.trial.suspect?.delivery === delivery
    if (isSuspect || held?.admission?.kind === 'runAlone') this.capacity.endTrial()
  }
}
