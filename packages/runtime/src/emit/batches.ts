import { FIRST_CYCLE, type FailureCycle } from '@redrive/core'
import type { Clock } from '../clock.ts'
import type { Parcel } from './result.ts'

/** Parcels that are sent, retried and given up together. */
export interface Batch {
  readonly parcels: readonly Parcel[]
  readonly cycle: FailureCycle
}

/** 50 ms: so long a batch that is not full waits for those under way, which may take a timeout each. */
const LINGER_MS = 50

/** What waits for one sink: new parcels, batches to be tried again now, and those to be tried again later. */
export class Batches {
  readonly #clock: Clock
  /** Most parcels in one. */
  readonly #most: number
  /** Something may be sent. */
  readonly #onReady: () => void
  /** Not tried yet, from `#head` on. */
  #queue: Parcel[] = []
  #head = 0
  /** To be tried again now, before anything new. */
  readonly #ready: Batch[] = []
  /** To be tried again later, with what cancels the wait. */
  readonly #later = new Map<Batch, () => void>()
  #cancelLinger: (() => void) | undefined
  #hasLingered = false

  constructor(clock: Clock, most: number, onReady: () => void) {
    this.#clock = clock
    this.#most = most
    this.#onReady = onReady
  }

  add(parcel: Parcel): void {
    this.#queue.push(parcel)
  }

  /** The next to be sent. Full ones at once; one that is not waits a little while others are under way. */
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
    return { parcels: this.#take(this.#most), cycle: FIRST_CYCLE }
  }

  #linger(): void {
    this.#cancelLinger ??= this.#clock.after(LINGER_MS, () => {
      this.#cancelLinger = undefined
      this.#hasLingered = true
      this.#onReady()
    })
  }

  #take(most: number): readonly Parcel[] {
    const taken = this.#queue.slice(this.#head, this.#head + most)
    this.#head += taken.length
    // What was taken is let go of in one go, not one by one.
    if (this.#head * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head)
      this.#head = 0
    }
    return taken
  }

  /** To be tried before anything else. */
  first(...batches: readonly Batch[]): void {
    this.#ready.unshift(...batches)
  }

  later(batch: Batch, delayMs: number): void {
    const cancel = this.#clock.after(delayMs, () => {
      this.#later.delete(batch)
      this.#ready.push(batch)
      this.#onReady()
    })
    this.#later.set(batch, cancel)
  }

  /** Everything that waits; new parcels each by itself. Nothing waits afterwards. */
  takeAll(): readonly Batch[] {
    const queued = this.#take(this.#queue.length).map((parcel) => ({
      parcels: [parcel],
      cycle: FIRST_CYCLE,
    }))
    for (const cancel of this.#later.values()) cancel()
    this.#cancelLinger?.()
    this.#cancelLinger = undefined
    const all = [...this.#ready, ...this.#later.keys(), ...queued]
    this.#ready.length = 0
    this.#later.clear()
    return all
  }
}

/** The halves of a batch, each to be tried anew. */
export function halves({ parcels }: Batch): readonly [Batch, Batch] {
  const middle = Math.ceil(parcels.length / 2)
  return [
    { parcels: parcels.slice(0, middle), cycle: FIRST_CYCLE },
    { parcels: parcels.slice(middle), cycle: FIRST_CYCLE },
  ]
}
