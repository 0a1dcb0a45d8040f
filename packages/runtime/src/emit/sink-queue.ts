import {
  type BreakerPhase,
  type Decision,
  type Delivery,
  type Policy,
  type Random,
  RedriveError,
} from '@redrive/core'
import { LATE_SHARE } from '@redrive/core/internal'
import type { Clock } from '../clock.ts'
import { Dependency } from '../dependency.ts'
import { GuardState } from '../guard-state.ts'
import type { Sink } from '../ports/sink.ts'
import { type Batch, Batches, halves } from './batches.ts'
import { deliveryOf } from './event.ts'
import { EventsInFlight } from './events-in-flight.ts'
import { CLOSED, DELIVERED, type Undelivered, type QueuedEvent } from './result.ts'
import { callSink } from './sink-call.ts'

export interface SinkQueueOptions {
  readonly name: string
  readonly sink: Sink
  readonly policy: Policy
  readonly clock: Clock
  readonly random: Random
  /** Maximum events in flight. */
  readonly maxEvents: number
  /** Called when an event does not reach the sink. `mayDrop`: the policy prefers to drop it. */
  readonly onGivenUp: (queuedEvent: QueuedEvent, why: Undelivered, mayDrop: boolean) => void
}

/**
 * The queue of one sink: batches, attempts with a timeout, and the same decisions and guards as a
 * consumer. A batch is one attempt. When one event makes a batch fail, halving the batch finds it.
 * The queue has no access to the store or to other queues.
 */
export class SinkQueue {
  readonly name: string
  readonly dependency: Dependency
  readonly inFlight: EventsInFlight
  readonly #options: SinkQueueOptions
  readonly #guardState: GuardState
  readonly #batches: Batches
  readonly #running = new Map<Batch, AbortController>()
  /** The health check in progress. */
  #checking: AbortController | undefined
  #isPumping = false
  #pausedUntil = 0
  #cancelWake: (() => void) | undefined
  #isStopped = false
  #delivered = 0

  constructor(options: SinkQueueOptions) {
    const { name, policy, clock, random } = options
    this.#options = options
    this.name = name
    this.dependency = new Dependency(name)
    this.inFlight = new EventsInFlight(options.maxEvents)
    this.#guardState = new GuardState({
      source: name,
      policy,
      handlerName: name,
      dependency: this.dependency,
      clock,
      random,
    })
    this.#batches = new Batches(clock, options.sink.batch, () => this.#pump())
    this.dependency.onChange(() => this.#pump())
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  get delivered(): number {
    return this.#delivered
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

  add(queuedEvent: QueuedEvent): void {
    this.inFlight.count += 1
    this.#batches.add(queuedEvent)
    this.#scheduleSend()
  }

  /** Sends after the current task, so that events emitted together are sent together. */
  #scheduleSend(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    queueMicrotask(() => this.#pump())
  }

  #pump(): void {
    this.#isPumping = false
    if (this.#isStopped) return
    const now = this.#options.clock.now()
    this.#guardState.current()
    if (now < this.#pausedUntil) return this.#wakeAt(now)
    if (this.#guardState.allowed(now) === 0) {
      return this.#options.policy.onBreakerOpen === 'pause' ? this.#wakeAt(now) : this.#giveUpAll()
    }
    while (this.#running.size < this.#guardState.allowed(now)) {
      const batch = this.#batches.next(this.#running.size > 0)
      if (batch === undefined) return
      this.#attempt(batch)
    }
  }

  #wakeAt(now: number): void {
    const until = Math.max(this.#pausedUntil, this.#guardState.pausedUntil(now) ?? 0)
    if (until <= now || this.#cancelWake !== undefined) return
    this.#cancelWake = this.#options.clock.after(until - now, () => {
      this.#cancelWake = undefined
      this.#pump()
    })
  }

  // ---- attempts -------------------------------------------------------------------------------

  #attempt(batch: Batch): void {
    const { sink, clock } = this.#options
    const controller = new AbortController()
    const startedAt = clock.now()
    this.#running.set(batch, controller)
    const events = batch.queuedEvents.map(({ event }) => event)
    this.#call(controller, () => sink.send(events, { signal: controller.signal })).then(
      () => this.#succeeded(batch, startedAt),
      (error: unknown) => this.#failed(batch, startedAt, error),
    )
  }

  #call(controller: AbortController, work: () => Promise<void>): Promise<void> {
    const { name, clock, policy } = this.#options
    return callSink({ name, clock, timeoutMs: policy.timeoutMs }, controller, work)
  }

  #succeeded(batch: Batch, startedAt: number): void {
    this.#learnSuccess(startedAt)
    this.#running.delete(batch)
    this.#delivered += batch.queuedEvents.length
    for (const queuedEvent of batch.queuedEvents) queuedEvent.onEnd(DELIVERED)
    this.#leave(batch.queuedEvents.length)
  }

  #learnSuccess(startedAt: number): void {
    const { clock, policy } = this.#options
    const now = clock.now()
    this.#guardState.count(now)
    this.#guardState.flushSuccesses({
      late: now - startedAt >= policy.timeoutMs * LATE_SHARE,
      saturated: this.#running.size >= this.#guardState.allowed(now),
      startedAt,
      inFlight: Math.max(1, this.#running.size),
    })
  }

  #failed(batch: Batch, startedAt: number, error: unknown): void {
    const inFlight = Math.max(1, this.#running.size)
    this.#running.delete(batch)
    if (this.#isStopped) return this.#closeBatch(batch)
    const tried = { delivery: this.#deliveryOf(batch), failures: batch.cycle }
    const { decision, guards, events } = this.#guardState.decide(tried, error, {
      startedAt,
      inFlight,
    })
    this.#guardState.report(events)
    this.#guardState.save(guards)
    this.#enact(batch, decision)
    this.#scheduleSend()
  }

  /** Returns the batch as a delivery for `decide`; its first event represents it. */
  #deliveryOf({ queuedEvents, cycle }: Batch): Delivery {
    const { event } = queuedEvents[0] as QueuedEvent
    return deliveryOf(event, this.name, cycle)
  }

  // ---- enacting decisions ---------------------------------------------------------------------

  #enact(batch: Batch, decision: Decision): void {
    switch (decision.kind) {
      case 'retryAt':
        return this.#batches.later({ ...batch, cycle: decision.cycle }, decision.delayMs)
      case 'pause':
        this.#pausedUntil = Math.max(this.#pausedUntil, decision.until)
        return this.#batches.first(batch)
      case 'deadLetter':
      case 'quarantine':
        // Rejected permanently, because of one event or its size. The halves will show which.
        return decision.reason === 'terminal' && batch.queuedEvents.length > 1
          ? this.#batches.first(...halves(batch))
          : this.#giveUp(batch, decision, false)
      case 'drop':
        return this.#giveUp(batch, { ...decision, reason: 'over_budget' }, true)
      case 'settle':
        return
    }
  }

  #giveUp({ queuedEvents }: Pick<Batch, 'queuedEvents'>, why: Undelivered, mayDrop: boolean): void {
    for (const queuedEvent of queuedEvents) this.#options.onGivenUp(queuedEvent, why, mayDrop)
    this.#leave(queuedEvents.length)
  }

  /** Gives up all events: the breaker is open, and the policy does not wait. */
  #giveUpAll(): void {
    for (const batch of this.#batches.takeAll()) {
      const decision = this.#guardState.giveUp(this.#deliveryOf(batch))
      if (decision.kind === 'deadLetter') this.#giveUp(batch, decision, false)
      else this.#enact(batch, decision)
    }
  }

  #leave(count: number): void {
    this.inFlight.remove(count)
    this.#scheduleSend()
  }

  // ---- health and stopping --------------------------------------------------------------------

  /** Runs a health check instead of sending an event; only while the breaker waits for a probe. */
  async checkHealth(): Promise<void> {
    const { sink, clock } = this.#options
    if (this.phase() !== 'halfOpen' || this.#running.size > 0 || this.#isStopped) return
    const controller = new AbortController()
    const startedAt = clock.now()
    this.#checking = controller
    try {
      await this.#call(controller, () => sink.healthCheck({ signal: controller.signal }))
      this.#learnSuccess(startedAt)
    } catch (cause) {
      // Every failure of a health check is a failure of the sink.
      const error = new RedriveError(
        'UNREACHABLE',
        `The health check of sink "${this.name}" failed. Its breaker opens again, and Redrive repeats the check.`,
        { cause },
      )
      this.#guardState.recordFailedCheck(error, { startedAt, inFlight: 1 })
    }
    this.#checking = undefined
    this.#scheduleSend()
  }

  /** Gives up all events in flight. */
  stop(): void {
    this.#isStopped = true
    this.#cancelWake?.()
    for (const batch of this.#batches.takeAll()) this.#closeBatch(batch)
    for (const controller of this.#running.values()) controller.abort(stopping(this.name))
    this.#checking?.abort(stopping(this.name))
    this.inFlight.stopWaiting()
  }

  #closeBatch(batch: Batch): void {
    this.#giveUp(batch, { ...CLOSED, cycle: batch.cycle }, false)
  }
}

const stopping = (name: string) =>
  new RedriveError('STOPPING', `The emitter was closed before sink "${name}" accepted the event.`)
