import { type Decision, type Delivery, type RetryAt } from '@redrive/core'
import { Dependency } from '../dependency.ts'
import { GuardState } from '../guard-state.ts'
import { type Batch, Batches, halves, split } from './batches.ts'
import { Deadlines } from './deadlines.ts'
import { deliveryOf } from './event.ts'
import { EventsInFlight } from './events-in-flight.ts'
import {
  ABORTED,
  CLOSED,
  DELIVERED,
  OVERDUE,
  type Undelivered,
  type QueuedEvent,
} from './result.ts'
import { SinkAttempts } from './sink-attempts.ts'
import { SinkGuards } from './sink-guards.ts'
import type { SinkQueueOptions } from './sink-queue-options.ts'

/**
 * The queue of one sink: batches, attempts with a timeout, and the same decisions and guards as a
 * consumer. A batch is one attempt. When one event makes a batch fail, halving the batch finds it.
 * The queue has no access to the store or to other queues.
 */
export class SinkQueue {
  readonly name: string
  readonly dependency: Dependency
  readonly inFlight: EventsInFlight
  readonly guards: SinkGuards
  readonly #options: SinkQueueOptions
  readonly #guardState: GuardState
  readonly #batches: Batches
  readonly #deadlines: Deadlines
  readonly #attempts: SinkAttempts
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
    this.guards = new SinkGuards(options, this.#guardState)
    this.#attempts = new SinkAttempts(options, this.#guardState)
    this.#batches = new Batches(clock, options.sink.batch, () => this.#pump())
    this.#deadlines = new Deadlines(clock, () => this.#giveUpOverdue())
    this.dependency.onChange(() => this.#pump())
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  get delivered(): number {
    return this.#delivered
  }

  get hasHealthCheck(): boolean {
    return this.#options.sink.healthCheck !== undefined
  }

  add(queuedEvent: QueuedEvent): void {
    this.inFlight.count += 1
    this.#enter(queuedEvent)
  }

  /** Adds the event as soon as the queue has room. */
  addLater(queuedEvent: QueuedEvent): void {
    this.inFlight.waitForRoom(queuedEvent)
    this.#deadlines.add(queuedEvent)
  }

  #enter(queuedEvent: QueuedEvent): void {
    if (queuedEvent.onRoom === undefined) return this.send(queuedEvent)
    this.#deadlines.remove([queuedEvent])
    queuedEvent.onRoom()
  }

  /** Sends an event that is in flight. */
  send(queuedEvent: QueuedEvent): void {
    if (this.#isStopped) return this.#giveUp({ queuedEvents: [queuedEvent] }, CLOSED, false)
    this.#deadlines.add(queuedEvent)
    this.#batches.add(queuedEvent)
    this.#scheduleSend()
  }

  /** Ends an event in flight that is not sent. */
  leave(): void {
    this.#leave([undefined])
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
    while (this.#attempts.count < this.#guardState.allowed(now)) {
      const batch = this.#batches.next(this.#attempts.count > 0)
      if (batch === undefined) return
      this.#send(batch)
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

  #send(batch: Batch): void {
    const { sink, clock } = this.#options
    const startedAt = clock.now()
    const events = batch.queuedEvents.map(({ event }) => event)
    this.#attempts
      .run(batch, (signal) => sink.send(events, { signal }))
      .then(
        () => this.#succeeded(batch, startedAt),
        (error: unknown) => this.#failed(batch, startedAt, error),
      )
  }

  #succeeded(batch: Batch, startedAt: number): void {
    this.#attempts.learnSuccess(startedAt)
    this.#attempts.end(batch)
    this.#delivered += batch.queuedEvents.length
    for (const queuedEvent of batch.queuedEvents) queuedEvent.onEnd(DELIVERED)
    this.#leave(batch.queuedEvents)
  }

  #failed(sent: Batch, startedAt: number, error: unknown): void {
    const inFlight = Math.max(1, this.#attempts.count)
    this.#attempts.end(sent)
    const batch = { ...sent, sends: sent.sends + 1 }
    if (this.#isStopped) return this.#closeBatch(batch)
    // It was aborted for its deadline, so it shows nothing about the sink.
    if (error === ABORTED) return this.#keepWaiting(batch)
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
        return this.#retry({ ...batch, cycle: decision.cycle }, decision)
      case 'pause':
        this.#pausedUntil = Math.max(this.#pausedUntil, decision.until)
        return this.#retry(batch, { ...decision, delayMs: 0 })
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

  /** Sends the batch again, within the limits of attempts and time. */
  #retry(batch: Batch, { failure, delayMs }: Retry): void {
    const { policy, clock } = this.#options
    const isKnown = failure !== undefined
    if (isKnown && batch.sends >= policy.retry.classes[failure.class].attempts) {
      return this.#giveUp(
        batch,
        { reason: 'attempts_exhausted', failure, cycle: batch.cycle },
        false,
      )
    }
    const dueAt = clock.now() + delayMs
    const [late, rest] = split(batch, ({ deadline }) => deadline < dueAt)
    const why = { ...OVERDUE, ...(isKnown && { failure }), cycle: batch.cycle }
    if (late.queuedEvents.length > 0) this.#giveUp(late, why, false)
    if (rest.queuedEvents.length === 0) return
    if (delayMs > 0) this.#batches.later(rest, delayMs)
    else this.#batches.first(rest)
  }

  // ---- deadlines ------------------------------------------------------------------------------

  /** Gives up the events that waited too long. Attempts with such an event are aborted. */
  #giveUpOverdue(): void {
    const isOverdue = this.#isOverdue()
    this.#giveUpWaiting(isOverdue, OVERDUE)
    for (const batch of this.#batches.remove(isOverdue))
      this.#giveUp(batch, { ...OVERDUE, cycle: batch.cycle }, false)
    this.#attempts.abort(ABORTED, ({ queuedEvents }) => queuedEvents.some(isOverdue))
  }

  #isOverdue(): (queuedEvent: QueuedEvent) => boolean {
    const now = this.#options.clock.now()
    return ({ deadline }) => deadline <= now
  }

  /** Gives up events that wait for room. They are not in flight. */
  #giveUpWaiting(matches: (queuedEvent: QueuedEvent) => boolean, why: Undelivered): void {
    const waiting = this.inFlight.removeWaiting(matches)
    this.#deadlines.remove(waiting)
    for (const one of waiting) this.#options.onGivenUp(one, why, false)
  }

  #keepWaiting(batch: Batch): void {
    const [late, rest] = split(batch, this.#isOverdue())
    if (rest.queuedEvents.length > 0) this.#batches.first(rest)
    this.#giveUp(late, { ...OVERDUE, cycle: batch.cycle }, false)
  }

  #giveUp({ queuedEvents }: Pick<Batch, 'queuedEvents'>, why: Undelivered, mayDrop: boolean): void {
    for (const queuedEvent of queuedEvents) this.#options.onGivenUp(queuedEvent, why, mayDrop)
    this.#leave(queuedEvents)
  }

  /** Gives up all events: the breaker is open, and the policy does not wait. */
  #giveUpAll(): void {
    for (const batch of this.#batches.takeAll()) {
      const decision = this.#guardState.giveUp(this.#deliveryOf(batch))
      if (decision.kind === 'deadLetter') this.#giveUp(batch, decision, false)
      else this.#enact(batch, decision)
    }
  }

  #leave(queuedEvents: readonly (QueuedEvent | undefined)[]): void {
    this.#deadlines.remove(queuedEvents.filter((one) => one !== undefined))
    for (const entering of this.inFlight.remove(queuedEvents.length)) this.#enter(entering)
    this.#scheduleSend()
  }

  // ---- health and stopping --------------------------------------------------------------------

  /** Runs a health check instead of sending an event; only while the breaker waits for a probe. */
  async checkHealth(): Promise<void> {
    if (!this.hasHealthCheck) return
    if (this.guards.phase() !== 'halfOpen' || this.#attempts.count > 0 || this.#isStopped) return
    await this.#attempts.checkHealth()
    this.#scheduleSend()
  }

  /** Gives up all events in flight. */
  stop(): void {
    this.#isStopped = true
    this.#cancelWake?.()
    for (const batch of this.#batches.takeAll()) this.#closeBatch(batch)
    this.#attempts.stop()
    this.#giveUpWaiting(() => true, CLOSED)
  }

  #closeBatch(batch: Batch): void {
    this.#giveUp(batch, { ...CLOSED, cycle: batch.cycle }, false)
  }
}

type Retry = Pick<RetryAt, 'failure' | 'delayMs'>
