import type { Receiver } from '@redrive/runtime'
import type { KafkaDelivery } from './headers.ts'
import { Held } from './held.ts'
import type { Partition } from './partition.ts'

export interface HandOutParts {
  /** As people know what is consumed. */
  readonly source: string
  /** Nothing is handed out for now, whatever there is. */
  readonly isHeldBack: () => boolean
  /** There may be room for more of it: it was its turn, or one of it is finished. */
  readonly onRoom: (partition: Partition) => void
  /** A delivery of it is finished or given back. */
  readonly onLeft: (partition: Partition) => void
}

/** 1,024 turns: then the list of those whose turn it was is let go of. */
const TURNS_KEPT = 1_024

/** Hands out what partitions have, in turn, as many as may be in hand, and takes it back. */
export class HandOut {
  readonly #parts: HandOutParts
  #receiver: Receiver<KafkaDelivery> | undefined
  readonly #inHand: Held[] = []
  /** In hand, and in the hands of someone who died. */
  readonly #suspects = new Set<Held>()
  /** Partitions with something to hand out, in turn, from `#head` on. */
  #turns: Partition[] = []
  #head = 0
  readonly #timers = new Map<Partition, NodeJS.Timeout>()
  limit = 1
  isPaused = false

  constructor(parts: HandOutParts) {
    this.#parts = parts
  }

  start(receiver: Receiver<KafkaDelivery>): void {
    this.#receiver = receiver
    this.pump()
  }

  get hasSuspects(): boolean {
    return this.#suspects.size > 0
  }

  /** Offsets of what is in hand of it. */
  inHandOf(partition: Partition): readonly number[] {
    return this.#inHand.filter((held) => held.partition === partition).map(({ raw }) => raw.offset)
  }

  /** It has something to hand out. */
  ready(partition: Partition): void {
    this.#enqueue(partition)
    this.pump()
  }

  #enqueue(partition: Partition): void {
    if (partition.isQueued) return
    partition.isQueued = true
    this.#turns.push(partition)
  }

  pump(): void {
    const receiver = this.#receiver
    if (receiver === undefined || this.#parts.isHeldBack()) return
    while (this.#inHand.length < this.limit && !this.isPaused && this.#receiver !== undefined) {
      const partition = this.#nextTurn()
      if (partition === undefined) return
      // Looking at the clock costs as much as the rest of this turn, and the source needs none.
      const next = partition.next(partition.tierMs === 0 ? 0 : now())
      if (typeof next === 'number') this.#wakeAt(partition, next)
      else if (next !== undefined) {
        this.#enqueue(partition)
        const deaths = partition.deaths.of(next.offset)
        const held = new Held(this.#parts.source, next, partition, 1 + deaths)
        if (deaths > 0) this.#suspects.add(held)
        held.slot = this.#inHand.push(held) - 1
        receiver.deliver(held)
      }
      this.#parts.onRoom(partition)
    }
  }

  #nextTurn(): Partition | undefined {
    const partition = this.#turns[this.#head]
    if (partition === undefined || this.#head === TURNS_KEPT) {
      this.#turns = this.#turns.slice(this.#head)
      this.#head = 0
    }
    if (partition === undefined) return undefined
    this.#head += 1
    partition.isQueued = false
    return partition
  }

  #wakeAt(partition: Partition, dueAt: number): void {
    if (this.#timers.has(partition)) return
    const onDue = () => {
      this.#timers.delete(partition)
      this.ready(partition)
    }
    this.#timers.set(partition, setTimeout(onDue, Math.max(0, dueAt - now())))
  }

  // ---- what becomes of a delivery ---------------------------------------------------------------

  /** Its partition, while it is ours. */
  partitionOf(delivery: KafkaDelivery): Partition | undefined {
    return delivery instanceof Held ? delivery.partition : undefined
  }

  /** False: it is no longer ours. */
  finish(delivery: KafkaDelivery): boolean {
    return this.#leave(delivery, (partition) => {
      if (partition.finish(delivery.raw)) this.#enqueue(partition)
    })
  }

  /** Back to its place; it is handed out again. */
  giveBack(delivery: KafkaDelivery): boolean {
    return this.#leave(delivery, (partition) => {
      partition.giveBack(delivery.raw)
      this.#enqueue(partition)
    })
  }

  #leave(delivery: KafkaDelivery, act: (partition: Partition) => void): boolean {
    const partition = this.partitionOf(delivery)
    if (partition === undefined) return false
    this.#letGo(delivery as Held)
    act(partition)
    this.#parts.onLeft(partition)
    this.#parts.onRoom(partition)
    this.pump()
    return true
  }

  #letGo(held: Held): void {
    held.partition = undefined
    // The last takes its slot.
    const last = this.#inHand.pop()
    if (last !== undefined && last !== held) {
      this.#inHand[held.slot] = last
      last.slot = held.slot
    }
    if (this.hasSuspects) this.#suspects.delete(held)
  }

  /** They are no longer ours, and what is in hand of them is lost. */
  forget(going: readonly Partition[]): void {
    for (const partition of going) {
      clearTimeout(this.#timers.get(partition))
      this.#timers.delete(partition)
    }
    for (const held of [...this.#inHand]) {
      if (held.partition === undefined || !going.includes(held.partition)) continue
      this.#letGo(held)
      this.#receiver?.lost(held)
    }
    this.pump()
  }

  close(): void {
    this.#receiver = undefined
    for (const timer of this.#timers.values()) clearTimeout(timer)
    for (const held of this.#inHand.splice(0)) held.partition = undefined
    this.#suspects.clear()
  }
}

/** Not moved by a clock that is set while we run. */
const now = () => performance.timeOrigin + performance.now()
