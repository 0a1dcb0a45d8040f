import { FIRST_CYCLE, type FailureCycle } from '@redrive/core'
import type { Clock } from '../clock.ts'
import type { QueuedEvent } from './result.ts'

/** Events that are sent, retried and given up together. */
export interface Batch {
  readonly queuedEvents: readonly QueuedEvent[]
  readonly cycle: FailureCycle
  /** Number of times that it was sent. */
  readonly sends: number
}

/** 50 ms: how long an incomplete batch waits for those in flight, which may take a timeout each. */
const LINGER_MS = 50

interface Delay {
  readonly dueAt: number
  readonly cancel: () => void
}

/** The events that wait for one sink: new events, batches to retry now, and batches to retry later. */
export class Batches {
  readonly #clock: Clock
  /** Maximum events in a batch. */
  readonly #most: number
  /** Called when a batch may be sent. */
  readonly #onReady: () => void
  /** Events without an attempt, from `#head` on. */
  #queue: QueuedEvent[] = []
  #head = 0
  /** Batches to retry now, before new events. */
  readonly #ready: Batch[] = []
  /** Batches to retry later, each with a function that cancels the wait. */
  readonly #later = new Map<Batch, Delay>()
  #cancelLinger: (() => void) | undefined
  #hasLingered = false

  constructor(clock: Clock, most: number, onReady: () => void) {
    this.#clock = clock
    this.#most = most
    this.#onReady = onReady
  }

  add(queuedEvent: QueuedEvent): void {
    this.#queue.push(queuedEvent)
  }

  /** Returns the next batch to send. Full batches go immediately; others wait a little while some are in flight. */
  next(areOthersUnderWay: boolean): Batch | undefined {
    const again = this.#ready.shift()
    if (again !== undefined) return again
    const count = this.#queue.length - this.#head
    if (count === 0) return undefined
    if (count < this.#most && areOthersUnderWay && !this.#hasLingered) {
      this.#linger()
      return undefined
    }
    this.#hasLingered = false
    return { queuedEvents: this.#take(this.#most), cycle: FIRST_CYCLE, sends: 0 }
  }

  #linger(): void {
    this.#cancelLinger ??= this.#clock.after(LINGER_MS, () => {
      this.#cancelLinger = undefined
      this.#hasLingered = true
      this.#onReady()
    })
  }

  #take(most: number): readonly QueuedEvent[] {
    const taken = this.#queue.slice(this.#head, this.#head + most)
    this.#head += taken.length
    // Taken events are removed together, not one by one.
    if (this.#head * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head)
      this.#head = 0
    }
    return taken
  }

  /** Puts batches before all others. */
  first(...batches: readonly Batch[]): void {
    this.#ready.unshift(...batches)
  }

  later(batch: Batch, delayMs: number): void {
    const cancel = this.#clock.after(delayMs, () => {
      this.#later.delete(batch)
      this.#ready.push(batch)
      this.#onReady()
    })
    this.#later.set(batch, { dueAt: this.#clock.now() + delayMs, cancel })
  }

  /** Removes the events that match, and returns them. */
  remove(isRemoved: (queuedEvent: QueuedEvent) => boolean): readonly Batch[] {
    const removed: Batch[] = []
    const keepRest = (batch: Batch): readonly Batch[] => {
      const [gone, rest] = split(batch, isRemoved)
      if (gone.queuedEvents.length > 0) removed.push(gone)
      return rest.queuedEvents.length > 0 ? [rest] : []
    }
    const queued = { queuedEvents: this.#take(this.#queue.length), cycle: FIRST_CYCLE, sends: 0 }
    this.#queue = keepRest(queued).flatMap(({ queuedEvents }) => [...queuedEvents])
    this.#ready.push(...this.#ready.splice(0).flatMap(keepRest))
    for (const [batch, { dueAt, cancel }] of [...this.#later]) {
      if (!batch.queuedEvents.some(isRemoved)) continue
      cancel()
      this.#later.delete(batch)
      for (const rest of keepRest(batch)) this.later(rest, Math.max(0, dueAt - this.#clock.now()))
    }
    return removed
  }

  /** Removes and returns everything that waits; each new event becomes a separate batch. */
  takeAll(): readonly Batch[] {
    const queued = this.#take(this.#queue.length).map((queuedEvent) => ({
      queuedEvents: [queuedEvent],
      cycle: FIRST_CYCLE,
      sends: 0,
    }))
    for (const { cancel } of this.#later.values()) cancel()
    this.#cancelLinger?.()
    this.#cancelLinger = undefined
    const all = [...this.#ready, ...this.#later.keys(), ...queued]
    this.#ready.length = 0
    this.#later.clear()
    return all
  }
}

/** Splits a batch into the events that match and the others. */
export function split(
  batch: Batch,
  matches: (queuedEvent: QueuedEvent) => boolean,
): readonly [Batch, Batch] {
  const { queuedEvents } = batch
  return [
    { ...batch, queuedEvents: queuedEvents.filter(matches) },
    { ...batch, queuedEvents: queuedEvents.filter((one) => !matches(one)) },
  ]
}

/** Splits a batch into halves without earlier attempts. */
export function halves({ queuedEvents }: Batch): readonly [Batch, Batch] {
  const middle = Math.ceil(queuedEvents.length / 2)
  return [
    { queuedEvents: queuedEvents.slice(0, middle), cycle: FIRST_CYCLE, sends: 0 },
    { queuedEvents: queuedEvents.slice(middle), cycle: FIRST_CYCLE, sends: 0 },
  ]
}
