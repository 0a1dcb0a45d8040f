import { isRedriveError, RedriveError } from '@redrive/core'
import { readDrain } from '../checks.ts'
import { isAlwaysKept, isKept } from '@redrive/core/internal'
import { messageOf } from '../log/text.ts'
import type { ReplayQuery, ReplayResult } from '../ports/dead-letter-store.ts'
import type { OutboundEvent } from '../ports/sink.ts'
import { withTimeout } from '../timeout.ts'
import { checked, deliveryOf, type EventInput, outboundOf } from './event.ts'
import { SinkRecovery } from './sink-recovery.ts'
import { DeadLetterWriter } from './dead-letter-writer.ts'
import type { CloseOptions, QueueOptions, ResolvedEmitter } from './options.ts'
import {
  CLOSED,
  type DropReason,
  type EmitResult,
  type EmitterStats,
  type Undelivered,
  invalid,
  type QueuedEvent,
  QUEUE_FULL,
  QUEUED,
  RATE_LIMITED,
  type SinkResult,
} from './result.ts'
import { BeforeSend } from './before-send.ts'
import { RateLimit } from './rate-limit.ts'
import { SinkQueue } from './sink-queue.ts'
import { currentScope, type Scope } from './scope.ts'

const DRAIN_MS = 10_000
/** 5 s for sinks to close: a hung sink must not keep the process alive. */
const CLOSE_MS = 5_000

interface Route {
  readonly sinkQueue: SinkQueue
  /** Undefined: events are stored only when the sink did not accept them. */
  readonly beforeSend: BeforeSend | undefined
  readonly onFull: QueueOptions['onFull']
}

/** Sends each event to every sink queue, and undelivered events to the store. */
export class FanOut {
  readonly #options: ResolvedEmitter
  readonly #routes: readonly Route[]
  readonly #writer: DeadLetterWriter
  readonly #recovery: SinkRecovery
  readonly #rate: RateLimit
  #closed: Promise<void> | undefined

  constructor(options: ResolvedEmitter) {
    const { sinks, store, clock, random } = options
    this.#options = options
    this.#writer = new DeadLetterWriter(store, clock)
    this.#routes = sinks.map(({ name, sink, policy, queue }) => {
      const sinkQueue = new SinkQueue({
        name,
        sink,
        policy,
        maxEvents: queue.maxEvents,
        clock,
        random,
        onGivenUp: (queuedEvent, why, mayDrop) => this.#giveUp(name, queuedEvent, why, mayDrop),
      })
      const isFirst = options.durability === 'before_send'
      const beforeSend = isFirst
        ? new BeforeSend({ ...options, writer: this.#writer }, sinkQueue)
        : undefined
      return { onFull: queue.onFull, sinkQueue, beforeSend }
    })
    this.#recovery = new SinkRecovery({
      ...options,
      sinkQueues: this.#routes.map(({ sinkQueue }) => sinkQueue),
    })
    this.#rate = new RateLimit(options)
    this.#recovery.start()
  }

  emit(input: EventInput): Promise<EmitResult> {
    const scope = currentScope()
    try {
      const ready = checked(input, this.#options.schemas)
      if (!(ready instanceof Promise)) return this.#emit(ready, scope)
      const later = ready.then((known) => this.#emit(known, scope))
      return ignoreRejection(later.catch((error: unknown) => this.#refuse(input, error, scope)))
    } catch (error) {
      return this.#refuse(input, error, scope)
    }
  }

  /** Sends to every sink. One promise serves all of them, because this runs for each event. */
  #emit(input: EventInput, scope: Scope): Promise<EmitResult> {
    // Checked here: the emitter may have been closed while a schema was running.
    if (this.#closed !== undefined) throw closedError()
    const event = outboundOf(input, this.#options.clock.now())
    const isLimited = this.#rate.isOver(event)
    if (!scope.isFailing) {
      for (const route of this.#routes) this.#send(route, event, scope, isLimited, NO_WAITER)
      return this.#whenStoreKeepsUp(this.#queued(event.id))
    }
    const { promise, resolve, reject } = Promise.withResolvers<EmitResult>()
    const sinks: Record<string, SinkResult> = {}
    let left = this.#routes.length
    for (const route of this.#routes) {
      this.#send(route, event, scope, isLimited, (result) => {
        sinks[route.sinkQueue.name] = result
        left -= 1
        if (left > 0) return
        const error = lostError(event, sinks)
        if (error === undefined) resolve({ id: event.id, sinks })
        else {
          void ignoreRejection(promise)
          reject(error)
        }
      })
    }
    return promise
  }

  /** Delays a job that emits faster than the store accepts. Without a delay its events would fill the memory. */
  #whenStoreKeepsUp(result: EmitResult): Promise<EmitResult> {
    if (!this.#writer.isBehind) return Promise.resolve(result)
    const { maxWaitMs, clock } = this.#options
    return withTimeout(this.#writer.whenCaughtUp(), maxWaitMs, () => undefined, clock).then(
      () => result,
    )
  }

  #queued(id: string): EmitResult {
    return {
      id,
      sinks: Object.fromEntries(this.#routes.map(({ sinkQueue }) => [sinkQueue.name, QUEUED])),
    }
  }

  /** Rejects an invalid event. In a non-failing scope it stores the event unchanged instead. */
  #refuse(input: EventInput, error: unknown, { job, isFailing }: Scope): Promise<EmitResult> {
    if (isFailing) return ignoreRejection(Promise.reject<EmitResult>(error as Error))
    const why = isRedriveError(error, 'CLOSED') ? CLOSED : invalid(error)
    const event = outboundOf(
      { ...input, data: toSerializable(input.data) },
      this.#options.clock.now(),
    )
    for (const { sinkQueue } of this.#routes) {
      const queuedEvent = { event, job, stored: undefined, deadline: 0, onEnd: NO_WAITER }
      this.#giveUp(sinkQueue.name, queuedEvent, why, false)
    }
    return Promise.resolve(this.#queued(event.id))
  }

  // ---- one sink ---------------------------------------------------------------------------------

  #send(
    { sinkQueue, beforeSend, onFull }: Route,
    event: OutboundEvent,
    scope: Scope,
    isLimited: boolean,
    onEnd: OnEnd,
  ): void {
    const { clock, maxWaitMs } = this.#options
    const deadline = clock.now() + maxWaitMs
    const queuedEvent: QueuedEvent = {
      event,
      job: scope.job,
      stored: undefined,
      deadline,
      ...(beforeSend !== undefined && { onRoom: () => beforeSend.start(queuedEvent) }),
      onEnd,
    }
    if (isLimited) this.#giveUp(sinkQueue.name, queuedEvent, RATE_LIMITED, true)
    else if (sinkQueue.inFlight.hasRoom) sinkQueue.add(queuedEvent)
    else if (onFull === 'wait' && scope.isFailing) sinkQueue.addLater(queuedEvent)
    else this.#giveUp(sinkQueue.name, queuedEvent, QUEUE_FULL, onFull === 'drop')
  }

  /** Handles an event that does not reach the sink: the filter decides whether to keep or drop it. */
  #giveUp(sink: string, queuedEvent: QueuedEvent, why: Undelivered, mayDrop: boolean): void {
    const { filter } = this.#options
    const { event, stored, onEnd } = queuedEvent
    // It is in the store and stays there.
    if (stored === 'replay') return onEnd({ kind: 'stored', reason: why.reason })
    const candidate = { delivery: deliveryOf(event, sink, why.cycle), failure: why.failure }
    const isWanted = mayDrop ? isAlwaysKept(filter, candidate) : isKept(filter, candidate)
    if (!isWanted) {
      const reason: DropReason = mayDrop ? why.reason : 'filtered'
      return this.#writer.recordResult(sink, queuedEvent, { kind: 'dropped', reason })
    }
    this.#writer.save(queuedEvent, why, sink)
  }

  // ---- methods of the emitter -------------------------------------------------------------------

  replay(id: string): Promise<boolean> {
    return this.#recovery.replay(id)
  }

  replayBatch(query: ReplayQuery): Promise<ReplayResult> {
    return this.#recovery.replayBatch(query)
  }

  async ready(): Promise<void> {
    await this.#options.store.stats()
  }

  stats(): EmitterStats {
    const sinks = this.#routes.map(({ sinkQueue }) => {
      const { stored, dropped, lost } = this.#writer.countsOf(sinkQueue.name)
      const { delivered } = sinkQueue
      const inFlight = sinkQueue.inFlight.count
      const breaker = sinkQueue.guards.phase()
      return [sinkQueue.name, { inFlight, delivered, stored, dropped, lost, breaker }] as const
    })
    return {
      sinks: Object.fromEntries(sinks),
      jobs: this.#writer.jobs(),
      limited: this.#rate.limited,
    }
  }

  async close(options?: CloseOptions): Promise<void> {
    const drainMs = readDrain('close()', options, DRAIN_MS)
    this.#closed ??= this.#close(drainMs)
    return this.#closed
  }

  async #close(drainMs: number): Promise<void> {
    const { store, sinks, clock } = this.#options
    const ignore = () => undefined
    const sinkQueues = this.#routes.map(({ sinkQueue }) => sinkQueue)
    const allSent = () => Promise.all(sinkQueues.map(({ inFlight }) => inFlight.whenNone()))
    await withTimeout(allSent(), drainMs, ignore, clock)
    const recoveryStopped = this.#recovery.stop()
    for (const { sinkQueue, beforeSend } of this.#routes) {
      sinkQueue.stop()
      beforeSend?.stop()
    }
    await Promise.all([recoveryStopped, allSent()])
    await this.#writer.whenIdle()
    const sinksClosed = Promise.allSettled(sinks.map(({ sink }) => sink.close()))
    await withTimeout(sinksClosed, CLOSE_MS, ignore, clock)
    await store.close()
  }
}

const closedError = () =>
  new RedriveError(
    'CLOSED',
    'The emitter is closed and accepts no more events. Call close() after the last event.',
  )

type OnEnd = QueuedEvent['onEnd']

const NO_WAITER: OnEnd = () => undefined

/** Prevents an unhandled rejection from ending the process. The failure is counted and published as an event. */
function ignoreRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

/** Returns the error for an event that reached neither a sink nor the store. */
function lostError(
  { id, type }: OutboundEvent,
  sinks: Readonly<Record<string, SinkResult>>,
): RedriveError | undefined {
  const lost = Object.entries(sinks).flatMap(([name, result]) =>
    result.kind === 'lost' ? [{ name, error: result.error }] : [],
  )
  if (lost.length === 0) return undefined
  const problems = lost.map(({ name, error }) => `${name}: ${messageOf(error)}`)
  return new RedriveError(
    'EVENT_LOST',
    `Event "${id}" of type "${type}" is lost. Neither these sinks nor the store accepted it:\n- ${problems.join('\n- ')}`,
    { problems, cause: lost[0]?.error },
  )
}

/** Replaces data that cannot be serialized by its description. */
function toSerializable(data: unknown): unknown {
  try {
    JSON.stringify(data)
    return data
  } catch {
    return String(data)
  }
}
