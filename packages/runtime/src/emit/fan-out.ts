import {
  type Duration,
  isAlwaysKept,
  isKept,
  isRedriveError,
  parseDuration,
  type RateState,
  RedriveError,
  startRate,
  takeOne,
} from '@redrive/core'
import { publish } from '../events.ts'
import type { OutboundEvent, ReplayAnswer, ReplayQuery } from '../ports.ts'
import { checked, type EventInput, outboundOf } from './event.ts'
import { Healer } from './heal.ts'
import { Keeping } from './keep.ts'
import type { CloseOptions, QueueOptions, ResolvedEmitter } from './options.ts'
import {
  CLOSED,
  type DropReason,
  type EmitResult,
  type EmitterStats,
  type GivenUp,
  invalid,
  type Parcel,
  QUEUE_FULL,
  QUEUED,
  RATE_LIMITED,
  type SinkResult,
} from './result.ts'
import { deliveryOf, Outlet } from './outlet.ts'
import { currentScope, type Scope } from './scope.ts'

const DRAIN: Duration = '10s'
/** 5 s for sinks to close: one that hangs must not keep the process. */
const CLOSE_MS = 5_000

interface Way {
  readonly outlet: Outlet
  readonly whenFull: QueueOptions['whenFull']
}

/** Brings each event to every outlet, and what does not leave one to the store. */
export class FanOut {
  readonly #options: ResolvedEmitter
  readonly #ways: readonly Way[]
  readonly #keeping: Keeping
  readonly #healer: Healer
  #rate: RateState | undefined
  #limited = 0
  #closed: Promise<void> | undefined

  constructor(options: ResolvedEmitter) {
    const { sinks, store, clock, random, rate } = options
    this.#options = options
    this.#keeping = new Keeping(store, clock)
    this.#ways = sinks.map(({ name, sink, policy, queue }) => ({
      whenFull: queue.whenFull,
      outlet: new Outlet({
        name,
        sink,
        policy,
        most: queue.most,
        clock,
        random,
        onGivenUp: (parcel, why, mayDrop) => this.#giveUp(name, parcel, why, mayDrop),
      }),
    }))
    this.#healer = new Healer({ ...options, outlets: this.#ways.map(({ outlet }) => outlet) })
    this.#rate = rate === undefined ? undefined : startRate(rate, clock.now())
    this.#healer.start()
  }

  emit(input: EventInput): Promise<EmitResult> {
    const scope = currentScope()
    try {
      const ready = checked(input, this.#options.schemas)
      if (!(ready instanceof Promise)) return this.#emit(ready, scope)
      const later = ready.then((known) => this.#emit(known, scope))
      return harmless(later.catch((error: unknown) => this.#refuse(input, error, scope)))
    } catch (error) {
      return this.#refuse(input, error, scope)
    }
  }

  /** To every sink. One promise for all of them: this is done for each event. */
  #emit(input: EventInput, scope: Scope): Promise<EmitResult> {
    // Asked here: the emitter may have been closed while a schema took its time.
    if (this.#closed !== undefined) throw closedError()
    const event = outboundOf(input, this.#options.clock.now())
    const isLimited = this.#isOverRate(event)
    if (isLimited) this.#limited += 1
    if (!scope.isFailing) {
      for (const way of this.#ways) this.#send(way, event, scope, isLimited, NOBODY_WAITS)
      return Promise.resolve(this.#queued(event.id))
    }
    const { promise, resolve, reject } = Promise.withResolvers<EmitResult>()
    const sinks: Record<string, SinkResult> = {}
    let left = this.#ways.length
    for (const way of this.#ways) {
      this.#send(way, event, scope, isLimited, (result) => {
        sinks[way.outlet.name] = result
        left -= 1
        if (left > 0) return
        const error = lossOf(event, sinks)
        if (error === undefined) resolve({ id: event.id, sinks })
        else {
          void harmless(promise)
          reject(error)
        }
      })
    }
    return promise
  }

  #queued(id: string): EmitResult {
    return {
      id,
      sinks: Object.fromEntries(this.#ways.map(({ outlet }) => [outlet.name, QUEUED])),
    }
  }

  /** In a non-failing scope that an event cannot be emitted is no reason to fail: it is kept as it is. */
  #refuse(input: EventInput, error: unknown, { job, isFailing }: Scope): Promise<EmitResult> {
    if (isFailing) return harmless(Promise.reject<EmitResult>(error as Error))
    const why = isRedriveError(error, 'CLOSED') ? CLOSED : invalid(error)
    const event = outboundOf({ ...input, data: writable(input.data) }, this.#options.clock.now())
    for (const { outlet } of this.#ways) {
      this.#giveUp(outlet.name, { event, job, isReplay: false, onEnd: NOBODY_WAITS }, why, false)
    }
    return Promise.resolve(this.#queued(event.id))
  }

  #isOverRate(event: OutboundEvent): boolean {
    const { rate, clock } = this.#options
    if (rate === undefined || this.#rate === undefined || this.#isBypassed(event)) return false
    const { state, granted } = takeOne(rate, this.#rate, clock.now())
    this.#rate = state
    return !granted
  }

  /** A function of yours that throws has not proven anything: the event is limited like others. */
  #isBypassed(event: OutboundEvent): boolean {
    const { isBypassed, clock } = this.#options
    try {
      return isBypassed(event)
    } catch (error) {
      const where = 'rateLimit.bypass'
      publish({ type: 'user_code_failed', at: clock.now(), source: event.type, where, error })
      return false
    }
  }

  // ---- to one sink ------------------------------------------------------------------------------

  #send(
    { outlet, whenFull }: Way,
    event: OutboundEvent,
    scope: Scope,
    isLimited: boolean,
    onEnd: OnEnd,
  ): void {
    const parcel: Parcel = { event, job: scope.job, isReplay: false, onEnd }
    if (isLimited) this.#giveUp(outlet.name, parcel, RATE_LIMITED, true)
    else if (outlet.hasRoom) outlet.add(parcel)
    else if (whenFull === 'wait' && scope.isFailing) void this.#addLater(outlet, parcel)
    else this.#giveUp(outlet.name, parcel, QUEUE_FULL, whenFull === 'drop')
  }

  async #addLater(outlet: Outlet, parcel: Parcel): Promise<void> {
    while (!outlet.hasRoom && !outlet.isStopped) await outlet.room()
    if (!outlet.isStopped) outlet.add(parcel)
    else this.#giveUp(outlet.name, parcel, CLOSED, false)
  }

  /** It does not reach the sink: kept or dropped, as the filter says. */
  #giveUp(sink: string, parcel: Parcel, why: GivenUp, mayDrop: boolean): void {
    const { filter, clock } = this.#options
    const { event, isReplay, onEnd } = parcel
    // It is in the store, and stays there.
    if (isReplay) return onEnd({ kind: 'stored', reason: why.reason })
    const candidate = { delivery: deliveryOf(event, sink, why.cycle), failure: why.failure }
    const isWanted = mayDrop ? isAlwaysKept(filter, candidate) : isKept(filter, candidate)
    if (!isWanted) {
      const reason: DropReason = mayDrop ? why.reason : 'filtered'
      return this.#keeping.ended(sink, parcel, { kind: 'dropped', reason })
    }
    this.#keeping.save(parcel, {
      id: `${event.id}/${sink}`,
      sink,
      event,
      job: parcel.job,
      savedAt: clock.now(),
      ...why,
    })
  }

  // ---- what people ask for ----------------------------------------------------------------------

  replay(id: string): Promise<boolean> {
    return this.#healer.replay(id)
  }

  replayBatch(query: ReplayQuery): Promise<ReplayAnswer> {
    return this.#healer.replayBatch(query)
  }

  stats(): EmitterStats {
    const sinks = this.#ways.map(({ outlet }) => {
      const { stored, dropped, lost } = this.#keeping.countsOf(outlet.name)
      const { size: inHand, delivered } = outlet
      const breaker = outlet.phase()
      return [outlet.name, { inHand, delivered, stored, dropped, lost, breaker }] as const
    })
    return { sinks: Object.fromEntries(sinks), jobs: this.#keeping.jobs(), limited: this.#limited }
  }

  close({ drain = DRAIN }: CloseOptions = {}): Promise<void> {
    const drainMs = parseDuration(drain)
    if (drainMs === undefined) {
      const message = `drain: expected a duration such as '10s', got ${drain}`
      return Promise.reject(new RedriveError('POLICY_INVALID', message))
    }
    this.#closed ??= this.#close(drainMs)
    return this.#closed
  }

  async #close(drainMs: number): Promise<void> {
    const { store, sinks } = this.#options
    const outlets = this.#ways.map(({ outlet }) => outlet)
    await this.#within(drainMs, Promise.all(outlets.map((outlet) => outlet.whenIdle())))
    const healed = this.#healer.stop()
    for (const outlet of outlets) outlet.stop()
    await Promise.all([healed, ...outlets.map((outlet) => outlet.whenIdle())])
    await this.#keeping.whenIdle()
    await this.#within(CLOSE_MS, Promise.allSettled(sinks.map(({ sink }) => sink.close())))
    await store.close()
  }

  #within(ms: number, work: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, () => resolve(undefined))
      const end = () => {
        cancel()
        resolve(undefined)
      }
      work.then(end, end)
    })
  }
}

const closedError = () =>
  new RedriveError('CLOSED', 'The emitter is closed and takes no more events.')

type OnEnd = Parcel['onEnd']

const NOBODY_WAITS: OnEnd = () => undefined

/** Whoever does not wait for it does not want to die of it either; it is counted and told of. */
function harmless<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

/** What to say when the event reached neither a sink nor the store. */
function lossOf(
  { id, type }: OutboundEvent,
  sinks: Readonly<Record<string, SinkResult>>,
): RedriveError | undefined {
  const lost = Object.entries(sinks).flatMap(([name, result]) =>
    result.kind === 'lost' ? [{ name, error: result.error }] : [],
  )
  if (lost.length === 0) return undefined
  const problems = lost.map(
    ({ name, error }) => `${name}: ${error instanceof Error ? error.message : String(error)}`,
  )
  return new RedriveError(
    'EVENT_LOST',
    `The event ${id} (${type}) reached neither these sinks nor the store:\n- ${problems.join('\n- ')}`,
    { problems, cause: lost[0]?.error },
  )
}

/** Data that cannot be written is kept as what it looks like. */
function writable(data: unknown): unknown {
  try {
    JSON.stringify(data)
    return data
  } catch {
    return String(data)
  }
}
