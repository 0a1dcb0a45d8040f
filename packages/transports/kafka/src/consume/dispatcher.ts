import type { Receiver } from '@redrive/runtime'
import type { KafkaDelivery } from '../delivery.ts'
import type { BrokerClock } from './broker-clock.ts'
import { InFlightDelivery } from './in-flight.ts'
import type { Partition } from './partition.ts'

export interface DispatcherDeps {
  /** The source name that users see. */
  readonly source: string
  /** Measures the delays of retries. */
  readonly clock: BrokerClock
  /** Whether delivery is currently stopped. */
  readonly isHeldBack: () => boolean
  /** Called when a partition may have room for more records: after its turn, or after a record was finished. */
  readonly onRoom: (partition: Partition) => void
  /** Called when a delivery of the partition is finished or returned. */
  readonly onLeft: (partition: Partition) => void
}

/** 1,024 turns: then the passed turns are removed from the list. */
const MAX_PASSED_TURNS = 1_024
/** 1 s between checks of a waiting retry: it may be due earlier than known so far. */
const CHECK_MS = 1_000

/** Delivers records of the partitions in turn, up to the limit, and accepts finished and returned ones. */
export class Dispatcher {
  readonly #deps: DispatcherDeps
  #receiver: Receiver<KafkaDelivery> | undefined
  readonly #inFlight: InFlightDelivery[] = []
  /** Deliveries in flight that were also in flight in a process that crashed. */
  readonly #suspects = new Set<InFlightDelivery>()
  /** Partitions with records to deliver, in turn, starting at `#head`. */
  #turns: Partition[] = []
  #head = 0
  readonly #timers = new Map<Partition, NodeJS.Timeout>()
  limit = 1
  isPaused = false

  constructor(deps: DispatcherDeps) {
    this.#deps = deps
  }

  start(receiver: Receiver<KafkaDelivery>): void {
    this.#receiver = receiver
    this.pump()
  }

  get hasSuspects(): boolean {
    return this.#suspects.size > 0
  }

  /** Returns the offsets of the records in flight of a partition. */
  inFlightOf(partition: Partition): readonly number[] {
    return this.#inFlight
      .filter((inFlight) => inFlight.partition === partition)
      .map(({ raw }) => raw.offset)
  }

  /** Adds a partition that has records to deliver. */
  ready(partition: Partition): void {
    if (partition.tierMs > 0) this.#deps.clock.sees(partition)
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
    if (receiver === undefined || this.#deps.isHeldBack()) return
    while (this.#inFlight.length < this.limit && !this.isPaused && this.#receiver !== undefined) {
      const partition = this.#nextTurn()
      if (partition === undefined) return
      // Reading the clock costs as much as the rest of this turn, and the source does not need it.
      const now = partition.tierMs === 0 ? 0 : this.#deps.clock.now(partition)
      const next = partition.next(now)
      if (typeof next === 'number') this.#wakeIn(partition, next - now)
      else if (next !== undefined) {
        this.#enqueue(partition)
        const deaths = partition.deaths.of(next.offset)
        const inFlight = new InFlightDelivery(this.#deps.source, next, {
          partition,
          deliveryCount: 1 + deaths,
          lateMs: partition.lateMs(next, now),
        })
        if (deaths > 0) this.#suspects.add(inFlight)
        inFlight.slot = this.#inFlight.push(inFlight) - 1
        receiver.deliver(inFlight)
      }
      this.#deps.onRoom(partition)
    }
  }

  #nextTurn(): Partition | undefined {
    const partition = this.#turns[this.#head]
    if (partition === undefined || this.#head === MAX_PASSED_TURNS) {
      this.#turns = this.#turns.slice(this.#head)
      this.#head = 0
    }
    if (partition === undefined) return undefined
    this.#head += 1
    partition.isQueued = false
    return partition
  }

  #wakeIn(partition: Partition, waitMs: number): void {
    if (this.#timers.has(partition)) return
    this.#deps.clock.measure(partition)
    const onDue = () => {
      this.#timers.delete(partition)
      this.#enqueue(partition)
      this.pump()
    }
    this.#timers.set(partition, setTimeout(onDue, Math.min(waitMs, CHECK_MS)))
  }

  // ---- ending a delivery ------------------------------------------------------------------------

  /** Returns the partition of a delivery in flight, or undefined when it is no longer assigned. */
  partitionOf(delivery: KafkaDelivery): Partition | undefined {
    return delivery instanceof InFlightDelivery ? delivery.partition : undefined
  }

  /** Finishes a delivery. Returns false when its partition is no longer assigned. */
  finish(delivery: KafkaDelivery): boolean {
    return this.#end(delivery, (partition) => {
      if (partition.finish(delivery.raw)) this.#enqueue(partition)
    })
  }

  /** Returns a delivery to its partition, which delivers it again. */
  returnToPartition(delivery: KafkaDelivery): boolean {
    return this.#end(delivery, (partition) => {
      partition.returnToPartition(delivery.raw)
      this.#enqueue(partition)
    })
  }

  #end(delivery: KafkaDelivery, act: (partition: Partition) => void): boolean {
    const partition = this.partitionOf(delivery)
    if (partition === undefined) return false
    this.#remove(delivery as InFlightDelivery)
    act(partition)
    this.#deps.onLeft(partition)
    this.#deps.onRoom(partition)
    this.pump()
    return true
  }

  #remove(inFlight: InFlightDelivery): void {
    inFlight.partition = undefined
    // The last delivery moves into the free slot.
    const last = this.#inFlight.pop()
    if (last !== undefined && last !== inFlight) {
      this.#inFlight[inFlight.slot] = last
      last.slot = inFlight.slot
    }
    if (this.hasSuspects) this.#suspects.delete(inFlight)
  }

  /** Removes partitions that are no longer assigned, and reports their deliveries in flight as lost. */
  forget(leaving: readonly Partition[]): void {
    for (const partition of leaving) {
      clearTimeout(this.#timers.get(partition))
      this.#timers.delete(partition)
    }
    for (const inFlight of [...this.#inFlight]) {
      if (inFlight.partition === undefined || !leaving.includes(inFlight.partition)) continue
      this.#remove(inFlight)
      this.#receiver?.lost(inFlight)
    }
    this.pump()
  }

  close(): void {
    this.#receiver = undefined
    for (const timer of this.#timers.values()) clearTimeout(timer)
    for (const inFlight of this.#inFlight.splice(0)) inFlight.partition = undefined
    this.#suspects.clear()
  }
}
