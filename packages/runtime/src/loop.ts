import {
  type Admission,
  ALREADY_HANDLED,
  admit,
  attemptsAllowed,
  breakerPhase,
  classify,
  type CoreEvent,
  type Decision,
  type Delivery,
  decide,
  type FailureCycle,
  type Guards,
  isPlain,
  isRedriveError,
  learnHandled,
  NO_EVENTS,
  type Pause,
  type Policy,
  pausedUntil,
  type Random,
  RedriveError,
  SETTLE,
  startGuards,
} from '@redrive/core'
import { Attempt, Deadlines } from './attempt.ts'
import type { Call } from './call.ts'
import type { Clock } from './clock.ts'
import type { Dependency } from './dependency.ts'
import { hasListeners, type PauseReason, publish } from './events.ts'
import { HandOff } from './handoff.ts'
import { type Awaitable, type Enactment, type Receiver, SETTLED, type Transport } from './ports.ts'

export interface LoopParts<D extends Delivery> {
  readonly transport: Transport<D>
  readonly call: Call
  readonly policy: Policy
  readonly handlerName: string
  readonly dependency: Dependency
  readonly clock: Clock
  readonly random: Random
}

/** A delivery that waits for its turn. `failures` is ahead of the delivery's own cycle after an inline retry. */
interface Work<D extends Delivery> {
  readonly delivery: D
  readonly failures: FailureCycle
  readonly admission: Admission | undefined
  /** Not to run before this moment, wherever it goes. */
  readonly dueAt: number
}

/**
 * The loop around decide: receive → admit → run → decide → enact. It owns every wait and every
 * count; it knows no rule and no broker.
 */
export class Loop<D extends Delivery> implements Receiver<D> {
  readonly #parts: LoopParts<D>
  readonly #transport: Transport<D>
  readonly #call: Call
  readonly #deadlines: Deadlines<D>
  readonly #handOff: HandOff<D>
  readonly #waiting: Work<D>[] = []
  /** Inline retries waiting for their time, and what cancels each wait. */
  readonly #held = new Map<Work<D>, () => void>()
  readonly #forgetDependency: () => void
  #guards: Guards
  /** Attempts that may run now; 0 is a pause. Derived from guards and pauses by `#refresh`. */
  #allowed = 0
  /** Nothing has failed lately: a success needs no thought. Derived too. */
  #isCalm = true
  #running = 0
  #inTrial = false
  /** Successes the guards have not been told about yet. */
  #untold = 0
  #lastHandledAt = 0
  #handledCount = 0
  #failedCount = 0
  #isReceiving = false
  /** When the last pause took effect. */
  #paused: Awaitable<void> = undefined
  #isStopping = false
  #isAskedToPause = false
  #floodUntil = 0
  #cancelWake: (() => void) | undefined
  #onIdle: (() => void) | undefined

  constructor(parts: LoopParts<D>) {
    const { transport, policy, clock, dependency } = parts
    this.#parts = parts
    this.#transport = transport
    this.#call = parts.call
    this.#guards = { ...startGuards(policy, clock.now()), ...shared(dependency) }
    this.#deadlines = new Deadlines(
      clock,
      policy.timeoutMs,
      () => this.#tellHandled(),
      (attempt, error) => {
        attempt.abort(error)
        this.#failed(attempt, error)
      },
    )
    this.#handOff = new HandOff(transport, clock, () => this.#refresh())
    this.#forgetDependency = dependency.onChange(() => {
      this.#guards = { ...this.#guards, ...shared(dependency) }
      this.#refresh()
    })
  }

  async start(): Promise<void> {
    this.#isReceiving = true
    this.#allowed = attemptsAllowed(this.#parts.policy, this.#guards, this.#parts.clock.now())
    this.#transport.limit(Math.max(1, this.#allowed))
    // Before the first delivery: what the handler calls may be known to be down already.
    this.#refresh()
    await this.#transport.receive(this)
  }

  // ---- receiving ------------------------------------------------------------------------------

  deliver(delivery: D): void {
    if (delivery.headerProblems.length > 0) this.#reportHeaders(delivery)
    if (this.#running < this.#allowed && this.#waiting.length === 0 && isPlain(delivery)) {
      this.#start(delivery, delivery.cycle, false)
      return
    }
    this.#waiting.push({ delivery, failures: delivery.cycle, admission: undefined, dueAt: 0 })
    this.#pump()
  }

  lost(delivery: D): void {
    const index = this.#waiting.findIndex((work) => work.delivery === delivery)
    if (index >= 0) this.#waiting.splice(index, 1)
    for (const [work, cancel] of this.#held) {
      if (work.delivery !== delivery) continue
      this.#release(work, cancel)
      if (work.admission?.kind === 'runAlone') this.#endTrial()
    }
  }

  /** Starts what may start; gives back what may not. */
  #pump(): void {
    while (this.#waiting.length > 0 && this.#running < this.#allowed) {
      const work = this.#waiting[0] as Work<D>
      const admission = work.admission ?? this.#admit(work.delivery)
      if (admission.kind === 'runAlone' && this.#running > 0) return
      this.#waiting.shift()
      if (admission.kind === 'refused') this.#carryOut(work, admission.decision)
      else if (admission.kind === 'runAlone') this.#prepareTrial(work)
      else this.#start(work.delivery, work.failures, false)
    }
    if (this.#allowed === 0) this.#giveBackWaiting()
  }

  #admit(delivery: D): Admission {
    return admit({ policy: this.#parts.policy, delivery, now: this.#parts.clock.now() })
  }

  /**
   * Nothing else may be in our hands, nor on its way to us, when a suspect runs: whatever is would
   * share the blame if it kills us.
   */
  #prepareTrial(work: Work<D>): void {
    this.#inTrial = true
    this.#refresh()
    this.#giveBackHeld('trial')
    Promise.resolve(this.#paused)
      .then(() => this.#handOff.whenIdle())
      .then(() => this.#beginTrial(work))
      .catch((error: unknown) => this.#reportUserCode('transport.pause', error))
  }

  #beginTrial(work: Work<D>): void {
    if (!this.#isStopping) {
      this.#start(work.delivery, work.failures, true)
      return
    }
    this.#giveBack(work, this.#returned('stopping'))
  }

  /** The suspect has left our hands, or proven harmless. */
  #endTrial(): void {
    this.#inTrial = false
    this.#refresh()
  }

  // ---- running --------------------------------------------------------------------------------

  #start(delivery: D, failures: FailureCycle, alone: boolean): void {
    const attempt = new Attempt(delivery, failures, alone)
    this.#running += 1
    this.#deadlines.add(attempt)
    let result: unknown
    try {
      result = this.#call(attempt)
    } catch (error) {
      result = Promise.reject(error)
    }
    // Through a promise even when the handler was synchronous: a long queue must not become a deep stack.
    const settled = result instanceof Promise ? result : Promise.resolve(result)
    settled.then(
      () => this.#succeeded(attempt),
      (error: unknown) => this.#failed(attempt, error),
    )
  }

  #succeeded(attempt: Attempt<D>): void {
    if (attempt.isOver) return
    const wasFull = this.#running >= this.#allowed
    this.#over(attempt)
    this.#untold += 1
    this.#lastHandledAt = this.#deadlines.tickAt
    const isLate = this.#deadlines.isLate(attempt)
    if (!this.#isCalm || isLate || (wasFull && this.#canGrow())) {
      this.#tellHandled(attempt, isLate, wasFull)
    }
    this.#settle(attempt)
    if (attempt.alone) this.#endTrial()
    else if (this.#waiting.length > 0) this.#pump()
  }

  #settle({ delivery, alreadyHandled }: Attempt<D>): void {
    const decision = alreadyHandled ? ALREADY_HANDLED : SETTLE
    let enactment: Awaitable<Enactment>
    try {
      enactment = this.#transport.enact(delivery, decision)
    } catch (error) {
      this.#reportUserCode('transport.enact', error)
      return
    }
    // The common case: acknowledged, nobody listening, nobody waiting for us to be idle.
    if (enactment === SETTLED && !hasListeners()) {
      if (this.#onIdle !== undefined) this.#checkIdle()
      return
    }
    this.#enact(delivery, decision, enactment)
  }

  #failed(attempt: Attempt<D>, error: unknown): void {
    if (attempt.isOver) return
    this.#over(attempt)
    const work = {
      delivery: attempt.delivery,
      failures: attempt.failures,
      admission: undefined,
      dueAt: 0,
    }
    if (this.#isStopping && isRedriveError(error, 'STOPPING')) {
      this.#giveBack(work, this.#returned('stopping'))
      return
    }
    this.#failedCount += 1
    this.#tellHandled()
    const { policy, clock, random, handlerName } = this.#parts
    const now = clock.now()
    const failure = classify(error, {
      rules: policy.rules,
      handler: handlerName,
      includeStack: policy.deadLetter.stack,
      now,
    })
    const { decision, guards, events } = decide({
      policy,
      delivery: attempt.delivery,
      outcome: {
        kind: 'failure',
        failure,
        startedAt: this.#deadlines.startedAt(attempt),
        inFlight: this.#running + 1,
      },
      cycle: attempt.failures,
      guards: this.#guards,
      now,
      random,
    })
    if (decision.kind === 'pause') {
      this.#learn(guards, events)
      this.#carryOut(work, decision, attempt.alone)
    } else {
      // First the message, then the guards: what they let start next must find it in its place.
      this.#carryOut(work, decision, attempt.alone)
      this.#learn(guards, events)
    }
    this.#refresh()
  }

  #over(attempt: Attempt<D>): void {
    attempt.isOver = true
    this.#running -= 1
    this.#deadlines.remove(attempt)
  }

  // ---- guards ---------------------------------------------------------------------------------

  #canGrow(): boolean {
    return this.#parts.policy.limit !== undefined && this.#allowed < this.#parts.policy.concurrency
  }

  /** Tells the guards about successes: now when it matters, else in bulk, once a tick. */
  #tellHandled(attempt?: Attempt<D>, late = false, saturated = false): void {
    if (this.#untold === 0) return
    const { policy, clock, random, transport } = this.#parts
    const count = this.#untold
    this.#untold = 0
    this.#handledCount += count
    const seen = {
      count,
      // Told at once, the moment is exact; told in bulk, it is the tick before.
      at: attempt === undefined ? this.#lastHandledAt : clock.now(),
      late,
      saturated,
      startedAt: attempt === undefined ? 0 : this.#deadlines.startedAt(attempt),
      inFlight: this.#running + 1,
    }
    const { guards, events } = learnHandled(policy, this.#guards, seen, {
      source: transport.source,
      now: clock.now(),
      random,
    })
    const isNews = guards.breaker !== this.#guards.breaker || guards.limit !== this.#guards.limit
    this.#learn(guards, events)
    if (isNews) this.#refresh()
  }

  #learn(guards: Guards, events: readonly CoreEvent[] = NO_EVENTS): void {
    this.#guards = guards
    this.#parts.dependency.learn(guards.breaker, guards.outage)
    for (const event of events) publish(event)
  }

  /** Derives how many attempts may run, and pauses or resumes the transport when that changed. */
  #refresh(): void {
    const { policy, clock } = this.#parts
    const now = clock.now()
    const { breaker } = this.#guards
    const before = this.#allowed
    const reason = this.#pauseReason(now)
    this.#isCalm = breaker.phase === 'closed' && breaker.failures === 0
    this.#allowed = reason === undefined ? attemptsAllowed(policy, this.#guards, now) : 0
    this.#cancelWake?.()
    this.#cancelWake = undefined
    if (reason === undefined) this.#flow(before, now)
    else this.#hold(reason, before, now)
    this.#pump()
    this.#checkIdle()
  }

  #pauseReason(now: number): PauseReason | undefined {
    if (this.#isStopping || this.#isAskedToPause) return 'asked'
    if (this.#inTrial) return 'trial'
    if (this.#handOff.isFailing) return 'hand_off_failing'
    if (this.#floodUntil > now) return 'flood'
    const phase = breakerPhase(this.#guards.breaker, now)
    return phase === 'open' || phase === 'isolated' ? 'dependency_sick' : undefined
  }

  #flow(before: number, now: number): void {
    const { transport } = this.#parts
    if (this.#allowed !== before) transport.limit(this.#allowed + this.#held.size)
    if (this.#isReceiving) return
    this.#isReceiving = true
    transport.resume()
    publish({ type: 'consumer_resumed', at: now, source: transport.source })
  }

  #hold(reason: PauseReason, before: number, now: number): void {
    const { transport, clock } = this.#parts
    const until = reason === 'flood' ? this.#floodUntil : pausedUntil(this.#guards, now)
    if (until !== undefined) this.#cancelWake = clock.after(until - now, () => this.#refresh())
    if (!this.#isReceiving && before === 0) return
    this.#isReceiving = false
    this.#paused = transport.pause()
    publish({ type: 'consumer_paused', at: now, source: transport.source, reason, until })
  }

  // ---- enacting -------------------------------------------------------------------------------

  #carryOut(work: Work<D>, decision: Decision, alone = false): void {
    if (decision.kind === 'retryAt' && this.#isInline(decision.delayMs)) {
      const later = { ...work, failures: decision.cycle, dueAt: decision.dueAt }
      if (this.#isStopping) this.#giveBack(later, this.#returned('stopping'))
      else this.#retryInline(later, decision.delayMs, alone)
      return
    }
    if (alone) this.#inTrial = false
    if (decision.kind === 'pause') {
      if (decision.reason === 'flood') this.#floodUntil = Math.max(this.#floodUntil, decision.until)
      // The intake closes first, or what is given back comes straight back to us.
      this.#refresh()
      this.#giveBack(work, decision)
      return
    }
    this.#enact(work.delivery, this.#withinLongestDelay(decision))
  }

  /** A delay longer than the broker's longest is taken in legs: the message remembers when it is really due. */
  #withinLongestDelay(decision: Decision): Decision {
    const { delay } = this.#transport.capabilities
    if (decision.kind !== 'retryAt' || delay.kind === 'none') return decision
    const overMs = decision.delayMs - delay.longestMs
    if (overMs <= 0) return decision
    const cycle = { ...decision.cycle, notBefore: decision.dueAt }
    return { ...decision, cycle, dueAt: decision.dueAt - overMs, delayMs: delay.longestMs }
  }

  /** In order, a message never leaves its place; otherwise only waits too short for a hand-off stay here. */
  #isInline(delayMs: number): boolean {
    const { policy } = this.#parts
    return policy.order === 'lane' || (delayMs > 0 && delayMs < policy.retry.inlineBelowMs)
  }

  #retryInline(later: Work<D>, delayMs: number, alone: boolean): void {
    const { delivery } = later
    const work: Work<D> = { ...later, admission: { kind: alone ? 'runAlone' : 'run' } }
    const at = this.#parts.clock.now()
    publish({ type: 'inline_retry', at, source: delivery.source, deliveryId: delivery.id, delayMs })
    const cancel = this.#parts.clock.after(delayMs, () => {
      this.#held.delete(work)
      if (alone) return this.#start(work.delivery, work.failures, true)
      this.#waiting.unshift(work)
      this.#pump()
    })
    this.#held.set(work, cancel)
  }

  #release(work: Work<D>, cancel: () => void): void {
    cancel()
    this.#held.delete(work)
  }

  #giveBackWaiting(): void {
    const reason = this.#isStopping ? 'stopping' : this.#inTrial ? 'trial' : 'dependency_sick'
    for (const work of this.#waiting.splice(0)) this.#giveBack(work, this.#returned(reason))
  }

  #giveBackHeld(reason: Pause['reason']): void {
    for (const [work, cancel] of [...this.#held]) {
      this.#release(work, cancel)
      this.#giveBack(work, this.#returned(reason))
    }
  }

  #returned(reason: Pause['reason']): Pause {
    return { kind: 'pause', reason, until: this.#parts.clock.now(), failure: undefined }
  }

  /** Back to the source unharmed; attempts that only this process knows of are handed off instead, so that they count. */
  #giveBack({ delivery, failures, dueAt: ownDueAt }: Work<D>, pause: Pause): void {
    if (failures === delivery.cycle || this.#parts.policy.order === 'lane') {
      this.#enact(delivery, pause)
      return
    }
    const now = this.#parts.clock.now()
    const dueAt = Math.max(now, pause.until, ownDueAt)
    this.#enact(delivery, {
      kind: 'retryAt',
      reason: 'held_back',
      dueAt,
      delayMs: dueAt - now,
      cycle: failures,
      failure: pause.failure,
    })
  }

  #enact(delivery: D, decision: Decision, begun?: ReturnType<Transport<D>['enact']>): void {
    this.#handOff.enact(delivery, decision, begun).then(
      () => this.#checkIdle(),
      (error: unknown) => this.#reportUserCode('transport.enact', error),
    )
  }

  // ---- stopping and reporting -----------------------------------------------------------------

  pause(): void {
    this.#isAskedToPause = true
    this.#refresh()
  }

  resume(): void {
    this.#isAskedToPause = false
    this.#refresh()
  }

  /** Finishes what runs within `drainMs`, gives back the rest, and lets go of the transport. */
  async stop(drainMs: number): Promise<void> {
    const { clock, transport } = this.#parts
    const endsAt = clock.now() + drainMs
    this.#isStopping = true
    this.#refresh()
    this.#giveBackHeld('stopping')
    await this.#idle(drainMs)
    const stopping = new RedriveError('STOPPING', 'The consumer is stopping.')
    for (const attempt of this.#deadlines.all()) {
      attempt.abort(stopping)
      this.#failed(attempt, stopping)
    }
    const remainingMs = Math.max(0, endsAt - clock.now())
    await this.#idle(remainingMs)
    this.#tellHandled()
    this.#handOff.abandon()
    this.#forgetDependency()
    this.#cancelWake?.()
    this.#deadlines.stop()
    await transport.close({ drainMs: remainingMs })
  }

  /** Resolves when nothing runs and nothing is being handed off, or when the time is over. */
  #idle(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.after(withinMs, () => this.#onIdle?.())
      this.#onIdle = () => {
        this.#onIdle = undefined
        cancel()
        resolve()
      }
      this.#checkIdle()
    })
  }

  #checkIdle(): void {
    if (this.#running === 0 && this.#handOff.pending === 0) this.#onIdle?.()
  }

  stats(): LoopStats {
    return {
      running: this.#running,
      waiting: this.#waiting.length + this.#held.size,
      allowed: this.#allowed,
      handled: this.#handledCount + this.#untold,
      failed: this.#failedCount,
      breaker: breakerPhase(this.#guards.breaker, this.#parts.clock.now()),
      isPaused: !this.#isReceiving,
    }
  }

  #reportHeaders(delivery: D): void {
    publish({
      type: 'headers_unreadable',
      at: this.#parts.clock.now(),
      source: delivery.source,
      deliveryId: delivery.id,
      problems: delivery.headerProblems,
    })
  }

  #reportUserCode(where: string, error: unknown): void {
    const { clock, transport } = this.#parts
    publish({ type: 'user_code_failed', at: clock.now(), source: transport.source, where, error })
  }
}

export interface LoopStats {
  readonly running: number
  readonly waiting: number
  readonly allowed: number
  readonly handled: number
  readonly failed: number
  readonly breaker: 'closed' | 'open' | 'halfOpen' | 'isolated'
  readonly isPaused: boolean
}

const shared = ({ breaker, outage }: Dependency) => ({ breaker, outage })
