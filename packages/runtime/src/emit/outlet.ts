import {
  type BreakerPhase,
  type DecideResult,
  type Decision,
  type Delivery,
  FIRST_CYCLE,
  type FailureCycle,
  LATE_SHARE,
  type Policy,
  type Random,
  RedriveError,
} from '@redrive/core'
import type { Clock } from '../clock.ts'
import { Dependency } from '../dependency.ts'
import { GuardKeeper } from '../keeper.ts'
import type { OutboundEvent, Sink } from '../ports.ts'
import { type Batch, Batches, halves } from './batches.ts'
import { CLOSED, DELIVERED, type GivenUp, type Parcel } from './result.ts'

export interface OutletParts {
  readonly name: string
  readonly sink: Sink
  readonly policy: Policy
  readonly clock: Clock
  readonly random: Random
  /** Most parcels in hand. */
  readonly most: number
  /** It does not reach the sink. `mayDrop`: the policy would rather drop it than keep it. */
  readonly onGivenUp: (parcel: Parcel, why: GivenUp, mayDrop: boolean) => void
}

/**
 * What stands before one sink: a queue, batches, attempts with a timeout, and the same decisions and
 * guards as a consumer's. A batch is one attempt; what is wrong with one event of it is found by
 * halves. It knows no store and no other outlet.
 */
export class Outlet {
  readonly name: string
  readonly dependency: Dependency
  readonly #parts: OutletParts
  readonly #keeper: GuardKeeper
  readonly #batches: Batches
  readonly #running = new Map<Batch, AbortController>()
  /** A health check that is under way. */
  #checking: AbortController | undefined
  #isPumping = false
  #pausedUntil = 0
  #cancelWake: (() => void) | undefined
  #isStopped = false
  /** Parcels in hand: queued, waiting or under way. */
  #size = 0
  readonly #onRoom: (() => void)[] = []
  readonly #onIdle: (() => void)[] = []
  #delivered = 0

  constructor(parts: OutletParts) {
    const { name, policy, clock, random } = parts
    this.#parts = parts
    this.name = name
    this.dependency = new Dependency(name)
    this.#keeper = new GuardKeeper({
      source: name,
      policy,
      handlerName: name,
      dependency: this.dependency,
      clock,
      random,
    })
    this.#batches = new Batches(clock, parts.sink.batch, () => this.#pump())
    this.dependency.onChange(() => this.#pump())
  }

  get hasRoom(): boolean {
    return this.#size < this.#parts.most
  }

  /** Resolves when something has left; there may be room then. */
  room(): Promise<void> {
    return new Promise((resolve) => this.#onRoom.push(resolve))
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  get size(): number {
    return this.#size
  }

  get delivered(): number {
    return this.#delivered
  }

  phase(): BreakerPhase {
    this.#keeper.look()
    return this.#keeper.breakerPhase(this.#parts.clock.now())
  }

  /** When the breaker lets the next probe through; undefined unless it is open. */
  get probeAt(): number | undefined {
    this.#keeper.look()
    return this.#keeper.pausedUntil(this.#parts.clock.now())
  }

  /** Between two replays at least, so that no second has more than the budget's rate. */
  get replayEveryMs(): number {
    const { budget } = this.#parts.policy
    return budget === undefined ? 0 : 1_000 / budget.ratePerSecond
  }

  /** A replay takes a retry from the budget, if there is one. */
  payForReplay(): boolean {
    return this.#keeper.payForRetry()
  }

  add(parcel: Parcel): void {
    this.#size += 1
    this.#batches.add(parcel)
    this.#soon()
  }

  /** After what is going on now: events that are emitted together go out together. */
  #soon(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    queueMicrotask(() => this.#pump())
  }

  #pump(): void {
    this.#isPumping = false
    if (this.#isStopped) return
    const now = this.#parts.clock.now()
    this.#keeper.look()
    if (now < this.#pausedUntil) return this.#wakeAt(now)
    if (this.#keeper.allowed(now) === 0) {
      return this.#parts.policy.whenOpen === 'pause' ? this.#wakeAt(now) : this.#giveUpAll()
    }
    while (this.#running.size < this.#keeper.allowed(now)) {
      const batch = this.#batches.next(this.#running.size > 0)
      if (batch === undefined) return
      this.#attempt(batch)
    }
  }

  #wakeAt(now: number): void {
    const until = Math.max(this.#pausedUntil, this.#keeper.pausedUntil(now) ?? 0)
    if (until <= now || this.#cancelWake !== undefined) return
    this.#cancelWake = this.#parts.clock.after(until - now, () => {
      this.#cancelWake = undefined
      this.#pump()
    })
  }

  // ---- attempts -------------------------------------------------------------------------------

  #attempt(batch: Batch): void {
    const { sink, clock } = this.#parts
    const controller = new AbortController()
    const startedAt = clock.now()
    this.#running.set(batch, controller)
    const events = batch.parcels.map(({ event }) => event)
    this.#inTime(controller, () => sink.send(events, { signal: controller.signal })).then(
      () => this.#succeeded(batch, startedAt),
      (error: unknown) => this.#failed(batch, startedAt, error),
    )
  }

  /** Rejects when the time is over or it is aborted, whatever the sink does about its signal. */
  #inTime(controller: AbortController, work: () => Promise<void>): Promise<void> {
    const { clock, policy, name } = this.#parts
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const cancel = clock.after(policy.timeoutMs, () => controller.abort(late(name, policy)))
    controller.signal.addEventListener('abort', () => {
      reject(controller.signal.reason as Error)
    })
    // Asynchronous, so that what it throws is a rejection, too.
    const run = async () => work()
    run().then(resolve, reject)
    return promise.finally(cancel)
  }

  #succeeded(batch: Batch, startedAt: number): void {
    this.#learnSuccess(startedAt)
    this.#running.delete(batch)
    this.#delivered += batch.parcels.length
    for (const parcel of batch.parcels) parcel.onEnd(DELIVERED)
    this.#leave(batch.parcels.length)
  }

  #learnSuccess(startedAt: number): void {
    const { clock, policy } = this.#parts
    const now = clock.now()
    this.#keeper.count(now)
    this.#keeper.tell({
      late: now - startedAt >= policy.timeoutMs * LATE_SHARE,
      saturated: this.#running.size >= this.#keeper.allowed(now),
      startedAt,
      inFlight: Math.max(1, this.#running.size),
    })
  }

  #failed(batch: Batch, startedAt: number, error: unknown): void {
    const inFlight = Math.max(1, this.#running.size)
    this.#running.delete(batch)
    if (this.#isStopped) return this.#closeBatch(batch)
    const tried = { delivery: this.#deliveryOf(batch), failures: batch.cycle }
    const result = this.#keeper.decide(tried, error, { startedAt, inFlight })
    this.#learn(result)
    this.#enact(batch, result.decision)
    this.#soon()
  }

  #learn({ guards, events }: DecideResult): void {
    this.#keeper.report(events)
    this.#keeper.learn(guards)
  }

  /** The batch as `decide` sees it: it stands for its first event. */
  #deliveryOf({ parcels, cycle }: Batch): Delivery {
    const { event } = parcels[0] as Parcel
    return deliveryOf(event, this.name, cycle)
  }

  // ---- what was decided -----------------------------------------------------------------------

  #enact(batch: Batch, decision: Decision): void {
    switch (decision.kind) {
      case 'retryAt':
        return this.#batches.later({ ...batch, cycle: decision.cycle }, decision.delayMs)
      case 'pause':
        this.#pausedUntil = Math.max(this.#pausedUntil, decision.until)
        return this.#batches.first(batch)
      case 'deadLetter':
      case 'quarantine':
        // Refused for good, for one event of it or for its size: the halves will tell.
        return decision.reason === 'terminal' && batch.parcels.length > 1
          ? this.#batches.first(...halves(batch))
          : this.#giveUp(batch, decision, false)
      case 'drop':
        return this.#giveUp(batch, { ...decision, reason: 'over_budget' }, true)
      case 'settle':
        return
    }
  }

  #giveUp({ parcels }: Pick<Batch, 'parcels'>, why: GivenUp, mayDrop: boolean): void {
    for (const parcel of parcels) this.#parts.onGivenUp(parcel, why, mayDrop)
    this.#leave(parcels.length)
  }

  /** The breaker is open, and the policy says not to wait. */
  #giveUpAll(): void {
    for (const batch of this.#batches.takeAll()) {
      const tried = this.#deliveryOf(batch)
      const result = this.#keeper.giveUp(tried)
      this.#learn(result)
      const { decision } = result
      if (decision.kind === 'deadLetter') this.#giveUp(batch, decision, false)
      else this.#enact(batch, decision)
    }
  }

  #leave(count: number): void {
    this.#size -= count
    for (const resolve of this.#onRoom.splice(0, count)) resolve()
    if (this.#size === 0) for (const resolve of this.#onIdle.splice(0)) resolve()
    this.#soon()
  }

  // ---- health and the end ---------------------------------------------------------------------

  /** Asks the sink how it is, in place of an event; only while the breaker waits for a probe. */
  async checkHealth(): Promise<void> {
    const { sink, clock } = this.#parts
    if (this.phase() !== 'halfOpen' || this.#running.size > 0 || this.#isStopped) return
    const controller = new AbortController()
    const startedAt = clock.now()
    this.#checking = controller
    try {
      await this.#inTime(controller, () => sink.healthCheck({ signal: controller.signal }))
      this.#learnSuccess(startedAt)
    } catch (cause) {
      // Whatever it said: it was only asked how it is, so it is about the sink.
      const error = new RedriveError('UNREACHABLE', `The sink ${this.name} is not well.`, { cause })
      this.#keeper.learnTrouble(error, { startedAt, inFlight: 1 })
    }
    this.#checking = undefined
    this.#soon()
  }

  /** Resolves when nothing is in hand. */
  whenIdle(): Promise<void> {
    if (this.#size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }

  /** Gives up all that is in hand. */
  stop(): void {
    this.#isStopped = true
    this.#cancelWake?.()
    for (const batch of this.#batches.takeAll()) this.#closeBatch(batch)
    for (const controller of this.#running.values()) controller.abort(stopping(this.name))
    this.#checking?.abort(stopping(this.name))
    for (const resolve of this.#onRoom.splice(0)) resolve()
  }

  #closeBatch(batch: Batch): void {
    this.#giveUp(batch, { ...CLOSED, cycle: batch.cycle }, false)
  }
}

const late = (name: string, { timeoutMs }: Policy) =>
  new RedriveError(
    'ATTEMPT_TIMEOUT',
    `The sink ${name} did not answer within ${timeoutMs} ms. Raise the policy's timeout if it is slow by nature.`,
  )

const stopping = (name: string) =>
  new RedriveError('STOPPING', `The emitter was closed before the sink ${name} had the event.`)

export const deliveryOf = (
  { id, key, type, lane, bytes, contentType, headers }: OutboundEvent,
  source: string,
  cycle: FailureCycle = FIRST_CYCLE,
): Delivery => ({
  id,
  source,
  lane,
  key,
  type,
  bytes,
  contentType,
  headers,
  cycle,
  deliveryCount: 1,
  replayId: undefined,
  headerProblems: [],
})
