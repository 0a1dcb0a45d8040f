import type { Random } from '@redrive/core'
import type { Clock } from '@redrive/runtime'

interface PlannedEvent {
  readonly at: number
  /** A random number: the order of events at the same time. */
  readonly order: number
  run: (() => void) | undefined
}

/** The start time of a run; any time works. */
const START_MS = 1_800_000_000_000

/**
 * Virtual time: only planned events run, one after the other. Events at the same time run in an order
 * drawn from the seed. After each event all promise continuations run to their end, so a run depends
 * only on its seed.
 */
export class VirtualTime implements Clock {
  readonly #random: Random
  readonly #heap: PlannedEvent[] = []
  #now = START_MS
  steps = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** Returns whole milliseconds, as a clock does. */
  now(): number {
    return Math.floor(this.#now)
  }

  /** The exact time: a server that takes 6.67 ms per call must not become slower by rounding. */
  get exactly(): number {
    return this.#now
  }

  after(delayMs: number, run: () => void): () => void {
    const planned: PlannedEvent = {
      at: this.#now + Math.max(0, delayMs),
      order: this.#random(),
      run,
    }
    push(this.#heap, planned)
    return () => {
      planned.run = undefined
    }
  }

  /** Runs the next event. Returns false when nothing is planned before `until`. */
  async step(until: number): Promise<boolean> {
    const planned = this.#nextLive()
    if (planned === undefined || planned.at > until) {
      this.#now = Math.max(this.#now, Math.min(until, planned?.at ?? until))
      return false
    }
    pop(this.#heap)
    this.#now = planned.at
    this.steps += 1
    planned.run?.()
    await turn()
    return true
  }

  #nextLive(): PlannedEvent | undefined {
    while (this.#heap[0] !== undefined && this.#heap[0].run === undefined) pop(this.#heap)
    return this.#heap[0]
  }
}

/** Waits until all promise continuations have run. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

const isBefore = (one: PlannedEvent, other: PlannedEvent) =>
  one.at < other.at || (one.at === other.at && one.order < other.order)

function push(heap: PlannedEvent[], item: PlannedEvent): void {
  let at = heap.length
  heap.push(item)
  while (at > 0) {
    const parent = (at - 1) >> 1
    const above = heap[parent] as PlannedEvent
    if (!isBefore(item, above)) break
    heap[at] = above
    at = parent
  }
  heap[at] = item
}

function pop(heap: PlannedEvent[]): void {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= heap.length) break
    const right = heap[child + 1]
    if (right !== undefined && isBefore(right, heap[child] as PlannedEvent)) child += 1
    const below = heap[child] as PlannedEvent
    if (!isBefore(below, last)) break
    heap[at] = below
    at = child
  }
  heap[at] = last
}
