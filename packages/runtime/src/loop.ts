import {
  type Admission,
  ALREADY_HANDLED,
  admit,
  type BreakerPhase,
  type Decision,
  type Delivery,
  type FailureCycle,
  isPlain,
  isRedriveError,
  type Pause,
  type Policy,
  type Random,
  RedriveError,
  SETTLE,
} from '@redrive/core'
import { Attempt, Deadlines } from './attempt.ts'
import type { Call } from './call.ts'
import type { Clock } from './clock.ts'
import type { Dependency } from './dependency.ts'
import { hasListeners, type PauseReason, publish } from './events.ts'
import { HandOff } from './handoff.ts'
import { InlineRetries } from './inline.ts'
import { Intake } from './intake.ts'
import { type Ended, GuardKeeper } from './keeper.ts'
import { type Awaitable, type Enactment, type Receiver, SETTLED, type Transport } from './ports.ts'
import { givingBack, inLegs, newWork, type Work } from './work.ts'

export interface LoopParts<D extends Delivery> {
  readonly transport: Transport<D>
  readonly call: Call
  readonly policy: Policy
  readonly handlerName: string
  readonly dependency: Dependency
  readonly clock: Clock
  readonly random: Random
}

export interface LoopStats {
  readonly running: number
  readonly waiting: number
  /** Decided, and the broker has not answered yet: acknowledgements and hand-offs. */
  readonly enacting: number
  readonly allowed: number
  readonly handled: number
  readonly failed: number
  readonly breaker: BreakerPhase
  readonly isPaused: boolean
}

/**
 * The loop around decide: receive → admit → run → decide → enact. It owns every wait and every
 * count; it knows no rule and no broker.
 */
export class Loop<D extends Delivery> implements Receiver<D> {
  readonly #parts: LoopParts<D>
  readonly #transport: Transport<D>
  readonly #call: Call
  readonly #keeper: GuardKeeper
  readonly #deadlines: Deadlines<D>
  readonly #handOff: HandOff<D>
  readonly #intake: Intake<D>
  readonly #inline: InlineRetries<D>
  readonly #waiting: Work<D>[] = []
  readonly #forgetDependency: () => void
  /** Attempts that may run now; 0 is a pause. Derived from guards and pauses by `#refresh`. */
  #allowed = 0
  /** The breaker is open, and the policy says not to wait for it. Derived too. */
  #isGivingUp = false
  #running = 0
  /** A suspect is about to run alone, or does. */
  #trial: 'none' | 'preparing' | 'running' = 'none'
  /** The suspect whose trial is being prepared. */
  #suspect: Work<D> | undefined
  /**
   * The last one that came in was a suspect: one at a time until one is not. What was in hand when a
   * process died comes back together, and giving all of it back for each trial would take for ever.
   */
  #isWary = false
  /** Deliveries lost while their handler ran and we lived: no death of ours, so they do not count as one. */
  readonly #forgiven = new Map<string, number>()
  #failedCount = 0
  #isStopping = false
  #isAskedToPause = false
  #floodUntil = 0
  #onIdle: (() => void) | undefined
  readonly #onSettled = () => {
    if (this.#onIdle !== undefined) this.#checkIdle()
  }

  constructor(parts: LoopParts<D>) {
    const { transport, policy, clock, dependency } = parts
    this.#parts = parts
    this.#transport = transport
    this.#call = parts.call
    this.#keeper = new GuardKeeper({ ...parts, source: transport.source })
    this.#deadlines = new Deadlines(
      clock,
      policy.timeoutMs,
      () => this.#tell(),
      (attempt, error) => {
        attempt.abort(error)
        this.#failed(attempt, error)
      },
    )
    this.#handOff = new HandOff(transport, clock, () => this.#refresh())
    this.#intake = new Intake(transport, clock, () => this.#refresh())
    this.#inline = new InlineRetries(clock)
    this.#forgetDependency = dependency.onChange(() => this.#refresh())
  }

  async start(): Promise<void> {
    // Before the first delivery: what the handler calls may be known to be down already.
    this.#refresh()
    await this.#transport.receive(this)
  }

  // ---- receiving ------------------------------------------------------------------------------

  deliver(delivery: D): void {
    if (delivery.headerProblems.length > 0) this.#reportHeaders(delivery)
    const hasRoom = this.#running < this.#allowed && this.#waiting.length === 0
    if (hasRoom && !this.#isGivingUp && !this.#isWary && isPlain(delivery)) {
      this.#start(delivery, delivery.cycle, false)
      return
    }
    this.#waiting.push(newWork(delivery))
    this.#pump()
  }

  lost(delivery: D): void {
    const index = this.#waiting.findIndex((work) => work.delivery === delivery)
    if (index >= 0) this.#waiting.splice(index, 1)
    if (this.#deadlines.all().some((attempt) => attempt.delivery === delivery)) {
      this.#forgive(delivery.id)
    }
    const held = this.#inline.take(delivery)
    // A trial whose handler runs goes on: it is still alone with us, whoever owns the message now.
    const wasWaiting = held?.admission?.kind === 'runAlone' || this.#suspect?.delivery === delivery
    if (wasWaiting) this.#endTrial()
  }

  /** Starts what may start; gives back what may not. */
  #pump(): void {
    while (this.#waiting.length > 0 && this.#running < this.#allowed) {
      const work = this.#waiting[0] as Work<D>
      const admission = work.admission ?? this.#admit(work.delivery)
      if (admission.kind === 'runAlone' && this.#running > 0) return
      this.#waiting.shift()
      if (admission.kind === 'run' && this.#isWary) this.#relax()
      if (admission.kind === 'refused') this.#refuse(work, admission.decision)
      else if (admission.kind === 'runAlone') this.#prepareTrial(work)
      else this.#start(work.delivery, work.failures, false)
    }
    if (this.#allowed === 0) this.#giveBackAll(this.#waiting.splice(0), this.#whyNotNow())
  }

  #admit(delivery: D): Admission {
    const now = this.#parts.clock.now()
    if (this.#isGivingUp) return this.#giveUpUnrun(delivery)
    const deliveryCount = Math.max(
      1,
      delivery.deliveryCount - (this.#forgiven.get(delivery.id) ?? 0),
    )
    const { cycle } = delivery
    return admit({ policy: this.#parts.policy, delivery: { cycle, deliveryCount }, now })
  }

  #forgive(id: string): void {
    const times = (this.#forgiven.get(id) ?? 0) + 1
    this.#forgiven.delete(id)
    this.#forgiven.set(id, times)
    const [oldest] = this.#forgiven.keys()
    if (this.#forgiven.size > FORGIVEN_BOUND && oldest !== undefined) this.#forgiven.delete(oldest)
  }

  #giveUpUnrun(delivery: D): Admission {
    const { decision, guards, events } = this.#keeper.giveUp(delivery)
    this.#keeper.report(events)
    this.#keeper.learn(guards)
    return { kind: 'refused', decision }
  }

  #refuse(work: Work<D>, decision: Decision): void {
    if (decision.kind === 'pause') this.#pauseFor(work, decision, false)
    else this.#carryOut(work, decision)
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
    this.#keeper.count(this.#deadlines.tickAt)
    const isLate = this.#deadlines.isLate(attempt)
    if (!this.#keeper.isCalm || isLate || (wasFull && this.#canGrow())) {
      this.#tell({ ...this.#ended(attempt), late: isLate, saturated: wasFull })
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
      enactment = { kind: 'unknown', error }
    }
    // The common case: acknowledged, nobody listening, nobody waiting for us to be idle.
    if (enactment === SETTLED && !hasListeners()) {
      if (this.#onIdle !== undefined) this.#checkIdle()
      return
    }
    if (!(enactment instanceof Promise)) return this.#enact(delivery, decision, enactment)
    this.#handOff.settle(delivery, decision, enactment, this.#onSettled)
  }

  #failed(attempt: Attempt<D>, error: unknown): void {
    if (attempt.isOver) return
    this.#over(attempt)
    const work = newWork(attempt.delivery, attempt.failures)
    if (this.#isStopping && isRedriveError(error, 'STOPPING')) {
      this.#giveBack(work, this.#returned('stopping'))
      return
    }
    this.#failedCount += 1
    this.#tell()
    const { decision, guards, events } = this.#keeper.decide(attempt, error, this.#ended(attempt))
    this.#keeper.report(events)
    // First the message, then the guards: what they let start next must find it in its place. A
    // pause is the other way round: the intake closes first, or what is given back comes straight
    // back to us.
    if (decision.kind !== 'pause') this.#carryOut(work, decision, attempt.alone)
    this.#keeper.learn(guards)
    if (decision.kind === 'pause') this.#pauseFor(work, decision, attempt.alone)
    this.#refresh()
  }

  #ended(attempt: Attempt<D>): Ended {
    return { startedAt: this.#deadlines.startedAt(attempt), inFlight: this.#running + 1 }
  }

  #over(attempt: Attempt<D>): void {
    attempt.isOver = true
    this.#running -= 1
    this.#deadlines.remove(attempt)
  }

  // ---- trials ---------------------------------------------------------------------------------

  /**
   * Nothing else may be in our hands, nor on its way to us, when a suspect runs: whatever is would
   * share the blame if it kills us.
   */
  #prepareTrial(work: Work<D>): void {
    this.#trial = 'preparing'
    this.#suspect = work
    this.#isWary = true
    this.#refresh()
    this.#giveBackAll(this.#inline.takeAll(), 'trial')
    void this.#intake.closed.then(() => this.#handOff.whenIdle()).then(() => this.#beginTrial(work))
  }

  #beginTrial(work: Work<D>): void {
    // The broker may have taken it back meanwhile.
    if (this.#suspect !== work) return
    this.#suspect = undefined
    this.#trial = 'running'
    if (this.#isStopping) this.#giveBack(work, this.#returned('stopping'))
    else this.#start(work.delivery, work.failures, true)
  }

  /** This one is no suspect: as many as the guards allow, from the next on. */
  #relax(): void {
    this.#isWary = false
    queueMicrotask(() => this.#refresh())
  }

  /** The suspect has left our hands, or proven harmless. */
  #endTrial(): void {
    this.#trial = 'none'
    this.#suspect = undefined
    this.#refresh()
  }

  // ---- how much may run ---------------------------------------------------------------------------------

  #canGrow(): boolean {
    return this.#parts.policy.limit !== undefined && this.#allowed < this.#parts.policy.concurrency
  }

  /** Tells the guards about successes: now when it matters, else in bulk, once a tick. */
  #tell(...now: Parameters<GuardKeeper['tell']>): void {
    if (this.#keeper.tell(...now)) this.#refresh()
  }

  /** Derives how many attempts may run, and opens or closes the intake accordingly. */
  #refresh(): void {
    const now = this.#parts.clock.now()
    this.#keeper.look()
    const phase = this.#keeper.breakerPhase(now)
    this.#isGivingUp = phase === 'open' && this.#parts.policy.whenOpen === 'deadLetter'
    const reason = this.#pauseReason(now)
    const until = reason === 'flood' ? this.#floodUntil : this.#keeper.pausedUntil(now)
    if (reason === undefined) {
      this.#allowed = this.#howMany(now)
      // What waits here for its retry, or for the broker, must not take the place of what could run.
      this.#intake.open(this.#allowed + this.#inline.size + this.#handOff.stuck, until)
    } else {
      this.#allowed = 0
      this.#intake.close(reason, until)
    }
    this.#pump()
    this.#checkIdle()
  }

  #howMany(now: number): number {
    // One at a time while hand-offs fail: the broker may refuse just one of them, and the rest must go on.
    if (this.#handOff.isFailing || this.#isWary) return 1
    return this.#isGivingUp ? this.#parts.policy.concurrency : this.#keeper.allowed(now)
  }

  #pauseReason(now: number): PauseReason | undefined {
    if (this.#isStopping || this.#isAskedToPause) return 'asked'
    if (this.#trial !== 'none') return 'trial'
    if (this.#handOff.stuck >= this.#parts.policy.concurrency) return 'hand_off_failing'
    if (this.#floodUntil > now) return 'flood'
    const phase = this.#keeper.breakerPhase(now)
    const isShut = phase === 'isolated' || (phase === 'open' && !this.#isGivingUp)
    return isShut ? 'dependency_sick' : undefined
  }

  // ---- enacting -------------------------------------------------------------------------------

  #carryOut(work: Work<D>, decision: Decision, alone = false): void {
    if (decision.kind === 'retryAt' && this.#isInline(decision.delayMs)) {
      this.#retryInline(
        { ...work, failures: decision.cycle, dueAt: decision.dueAt },
        decision.delayMs,
        alone,
      )
      return
    }
    if (alone) this.#trial = 'none'
    this.#enact(work.delivery, inLegs(decision, this.#transport.capabilities))
  }

  #pauseFor(work: Work<D>, pause: Pause, alone: boolean): void {
    if (alone) this.#trial = 'none'
    if (pause.reason === 'flood') this.#floodUntil = Math.max(this.#floodUntil, pause.until)
    this.#refresh()
    this.#giveBack(work, pause)
  }

  /**
   * In order, a message never leaves its place, and a broker without delays cannot hold it; otherwise
   * only waits too short for a hand-off stay here.
   */
  #isInline(delayMs: number): boolean {
    const { policy, transport } = this.#parts
    if (policy.order === 'lane' || transport.capabilities.delay.kind === 'none') return true
    return delayMs > 0 && delayMs < policy.retry.inlineBelowMs
  }

  #retryInline(later: Work<D>, delayMs: number, alone: boolean): void {
    if (this.#isStopping) return this.#giveBack(later, this.#returned('stopping'))
    const { id: deliveryId, source } = later.delivery
    const at = this.#parts.clock.now()
    publish({ type: 'inline_retry', at, source, deliveryId, delayMs })
    const work: Work<D> = { ...later, admission: { kind: alone ? 'runAlone' : 'run' } }
    this.#inline.hold(work, delayMs, () => {
      if (alone) return this.#start(work.delivery, work.failures, true)
      this.#waiting.unshift(work)
      this.#refresh()
    })
  }

  #giveBackAll(works: readonly Work<D>[], reason: Pause['reason']): void {
    for (const work of works) this.#giveBack(work, this.#returned(reason))
  }

  #giveBack(work: Work<D>, pause: Pause): void {
    const { policy, clock } = this.#parts
    const decision = givingBack(work, pause, policy.order, clock.now())
    this.#enact(work.delivery, inLegs(decision, this.#transport.capabilities))
  }

  #returned(reason: Pause['reason']): Pause {
    return { kind: 'pause', reason, until: this.#parts.clock.now(), failure: undefined }
  }

  #whyNotNow(): Pause['reason'] {
    if (this.#isStopping) return 'stopping'
    return this.#pauseReason(this.#parts.clock.now()) ?? 'asked'
  }

  #enact(delivery: D, decision: Decision, begun?: Awaitable<Enactment>): void {
    void this.#handOff.enact(delivery, decision, begun).then(() => this.#checkIdle())
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

  /** The start failed: nothing may hold on to us. */
  forget(): void {
    this.#forgetDependency()
    this.#intake.stop()
    this.#deadlines.stop()
  }

  /** Finishes what runs within `drainMs`, gives back the rest, and lets go of the transport. */
  async stop(drainMs: number): Promise<void> {
    const { clock, transport } = this.#parts
    const endsAt = clock.now() + drainMs
    this.#isStopping = true
    this.#refresh()
    this.#giveBackAll(this.#inline.takeAll(), 'stopping')
    await this.#idle(drainMs * (1 - HAND_OFF_SHARE))
    const stopping = new RedriveError('STOPPING', 'The consumer is stopping.')
    for (const attempt of this.#deadlines.all()) {
      attempt.abort(stopping)
      this.#failed(attempt, stopping)
    }
    const remainingMs = Math.max(0, endsAt - clock.now())
    await this.#idle(remainingMs)
    this.#tell()
    this.#handOff.abandon()
    this.forget()
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
    const isBusy = this.#running > 0 || this.#handOff.pending > 0 || this.#trial === 'preparing'
    if (!isBusy) this.#onIdle?.()
  }

  stats(): LoopStats {
    const suspects = this.#suspect === undefined ? 0 : 1
    return {
      running: this.#running,
      waiting: this.#waiting.length + this.#inline.size + suspects,
      enacting: this.#handOff.pending,
      allowed: this.#allowed,
      handled: this.#keeper.handledCount,
      failed: this.#failedCount,
      breaker: this.#keeper.breakerPhase(this.#parts.clock.now()),
      isPaused: !this.#intake.isOpen,
    }
  }

  #reportHeaders({ id: deliveryId, source, headerProblems: problems }: D): void {
    const at = this.#parts.clock.now()
    publish({ type: 'headers_unreadable', at, source, deliveryId, problems })
  }
}

/** 1,000 messages: more than any prefetch that comes back after a lost connection. */
const FORGIVEN_BOUND = 1_000

/** A fifth of the drain time is kept for handing off what handlers did not finish. */
const HAND_OFF_SHARE = 0.2
