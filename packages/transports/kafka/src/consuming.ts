import type { BaseOptions } from '@platformatic/kafka'
import { type Receiver, withTimeout } from '@redrive/runtime'
import { Client } from './client.ts'
import { Committer } from './commit.ts'
import { type AtRisk, decodeCommit } from './deaths.ts'
import { Fetcher, type OnTrouble } from './fetch.ts'
import { HandOut } from './hand-out.ts'
import type { KafkaDelivery } from './headers.ts'
import { EARLIEST, endsOf, LATEST } from './lag.ts'
import { type Epoch, Membership } from './membership.ts'
import { nameOf, type TopicPartition } from './topic-partition.ts'
import { type Committed, Offsets } from './offsets.ts'
import { Partition } from './partition.ts'

/** A topic that is consumed. */
export interface Subscription {
  readonly name: string
  /** How long its records wait; 0: they are handed out at once. */
  readonly tierMs: number
  readonly isOrdered: boolean
  /** Where a group begins that has committed nothing yet. */
  readonly from: 'earliest' | 'latest'
}

export interface ConsumptionParts {
  readonly client: BaseOptions
  readonly group: string
  readonly topics: readonly Subscription[]
  /** As people know what is consumed. */
  readonly source: string
  readonly sessionMs: number
  readonly drainMs: number
  readonly onTrouble: OnTrouble
  readonly onExpired: (place: TopicPartition, count: number) => void
}

const BEGINNING = 'the coordinator, for offsets'
/** 200 ms between two tries to learn where a partition begins, or to say where it ends. */
const RETRY_MS = 200
/** 65,536 parked behind unfinished records of their key, in all partitions together; then nothing is read. */
const PARKED = 65_536
/** 2 s for what is under way to end: a broker that does not answer must not keep us from closing. */
const CLOSE_MS = 2_000

/**
 * Consumes topics in a group: reads ahead of the handlers, hands out as many as may be in hand, and
 * commits what is finished: the mark, and with it the bits of what is finished above it.
 */
export class Consumption {
  readonly #parts: ConsumptionParts
  /**
   * A broker answers the requests of one connection one after the other, and one that asks for records
   * is answered when there are some: commits, the source and the retries each have a connection.
   */
  readonly #clients: { readonly commit: Client; readonly source: Client; readonly retry: Client }
  readonly offsets: Offsets
  readonly committer: Committer
  readonly #topics: ReadonlyMap<string, Subscription>
  readonly #fetchers: readonly Fetcher[]
  readonly #membership: Membership
  readonly #handOut: HandOut
  readonly #partitions = new Map<string, Partition>()
  #onFinished: (() => void) | undefined
  /** The epoch of which the broker said that it is over: what was read ahead is someone else's. */
  #fencedIn: Epoch | undefined
  /** Ours, and where they begin is being looked up. */
  readonly #beginning = new Set<TopicPartition>()
  #isClosed = false

  constructor(parts: ConsumptionParts) {
    const { client, group, topics, sessionMs, drainMs, onTrouble } = parts
    this.#parts = parts
    this.#clients = {
      commit: new Client(client),
      source: new Client(client),
      retry: new Client(client),
    }
    this.offsets = new Offsets(this.#clients.commit, group)
    this.committer = new Committer({
      offsets: this.offsets,
      epoch: () => this.epoch,
      partitions: () => this.#partitions.values(),
      isOurs: (place) => this.#membership.owns(place),
      atRisk: (partition) => this.atRisk(partition),
      onFenced: () => {
        this.#fencedIn = this.epoch
      },
      onTrouble,
    })
    this.#topics = new Map(topics.map((topic) => [topic.name, topic]))
    this.#fetchers = [
      this.#fetcher(this.#clients.source, (tierMs) => tierMs === 0),
      this.#fetcher(this.#clients.retry, (tierMs) => tierMs > 0),
    ]
    this.#handOut = new HandOut({
      source: parts.source,
      isHeldBack: () => this.#isFenced,
      onRoom: (partition) => this.#readOn(partition),
      onLeft: () => {
        this.committer.changed()
        this.#onFinished?.()
      },
    })
    this.#membership = new Membership({
      client,
      group,
      topics: topics.map(({ name }) => name),
      sessionMs,
      drainMs,
      onJoined: () => this.#handOut.pump(),
      onAssigned: (places) => void this.#begin(places),
      onRevoked: (places) => this.#handOver(places),
      onLost: (places) => this.#lose(places),
      onTrouble,
    })
  }

  get epoch(): Epoch | undefined {
    return this.#membership.epoch
  }

  get #isFenced(): boolean {
    return this.#fencedIn !== undefined && this.#fencedIn === this.epoch
  }

  start(receiver: Receiver<KafkaDelivery>): void {
    this.#handOut.start(receiver)
    this.#membership.join()
  }

  #fetcher(client: Client, isFor: (tierMs: number) => boolean): Fetcher {
    const topics = this.#parts.topics.filter(({ tierMs }) => isFor(tierMs)).map(({ name }) => name)
    return new Fetcher({
      client,
      topics,
      wanted: () => this.#wanted(isFor),
      onTrouble: this.#parts.onTrouble,
    })
  }

  /** The others are full: whoever makes room in one of them says so. */
  *#wanted(isFor: (tierMs: number) => boolean): Generator<Partition> {
    const isOpen = !this.#isClosed && this.parked < PARKED
    for (const partition of this.#partitions.values()) {
      if (!isFor(partition.tierMs)) continue
      if (isOpen && partition.wantsMore) yield partition
      else partition.isFull = true
    }
  }

  /** Records that wait behind an unfinished one of their key. */
  get parked(): number {
    let parked = 0
    for (const partition of this.#partitions.values()) parked += partition.parked
    return parked
  }

  /** In the group, and everything that was there for us is handed out. */
  get isAtEnd(): boolean {
    if (this.epoch === undefined || this.#beginning.size > 0) return false
    for (const partition of this.#partitions.values()) if (!partition.isAtEnd) return false
    return true
  }

  // ---- partitions come and go -----------------------------------------------------------------

  async #begin(places: readonly TopicPartition[]): Promise<void> {
    for (const place of places) this.#beginning.add(place)
    // Not one that is about to go: until it is handed over it is ours, but not to begin with.
    const isStill = (place: TopicPartition) => this.#beginning.has(place) && !this.#isClosed
    let left = places
    while ((left = left.filter(isStill)).length > 0) {
      try {
        const committed = await this.offsets.read(left)
        const begun = await Promise.all(left.map((place) => this.#partition(place, committed)))
        // Said before anything is handed out: the first record may be the one that kills.
        await this.committer.flush(begun)
        for (const partition of begun) {
          if (isStill(partition.place)) this.#partitions.set(nameOf(partition), partition)
        }
        this.#parts.onTrouble(BEGINNING, undefined)
        this.#read()
        break
      } catch (error) {
        this.#parts.onTrouble(BEGINNING, error)
        await pause(RETRY_MS)
      }
    }
    for (const place of places) this.#beginning.delete(place)
  }

  async #partition(
    place: TopicPartition,
    committed: ReadonlyMap<string, Committed>,
  ): Promise<Partition> {
    const { offset, metadata } = committed.get(nameOf(place)) ?? NOTHING_COMMITTED
    const isLatest = this.#topics.get(place.topic)?.from === 'latest'
    const mark = offset ?? (await this.#lookUp(place, isLatest ? LATEST : EARLIEST))
    return this.#makePartition(place, mark, metadata)
  }

  #makePartition(place: TopicPartition, mark: number, metadata: string | null): Partition {
    const { tierMs = 0, isOrdered = false } = this.#topics.get(place.topic) ?? {}
    return new Partition({
      place,
      tierMs,
      isOrdered,
      ...decodeCommit(mark, metadata),
      position: mark,
      onTaken: (partition) => this.#taken(partition),
      onOutOfRange: (partition) => this.#skipExpired(partition),
    })
  }

  async #lookUp(place: TopicPartition, which: bigint): Promise<number> {
    const ends = await endsOf(this.#clients.commit, [place], which)
    return ends.get(nameOf(place)) ?? 0
  }

  /** The log does not have our position. Nothing brings back what it had; someone must know. */
  async #skipExpired(partition: Partition): Promise<void> {
    const { position, place } = partition
    const first = await this.#lookUp(partition, EARLIEST)
    if (first > position) {
      this.#parts.onExpired(partition, first - position)
      partition.take([], first, first)
      return
    }
    const end = await this.#lookUp(partition, LATEST)
    if (end >= position) return pause(RETRY_MS)
    // It ends before what we have read: a broker that was behind leads it now. What comes next has
    // numbers that we have seen, so nothing of what we knew is true any more.
    this.#parts.onExpired(partition, position - end)
    this.#forget([partition])
    if (!this.#membership.owns(place)) return
    const again = this.#makePartition(place, end, null)
    this.#partitions.set(nameOf(place), again)
    await this.committer.flush([again])
  }

  /** The group gives them to someone else: handlers may end, and what they finished is committed. */
  async #handOver(places: readonly TopicPartition[]): Promise<void> {
    const going = this.#close(places)
    const isIdle = () => going.every(({ inHand }) => inHand === 0)
    const endsAt = performance.now() + this.#parts.drainMs
    while (!isIdle() && performance.now() < endsAt && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, endsAt - performance.now())
        this.#onFinished = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    this.#onFinished = undefined
    await this.#commitBy(endsAt, going)
    this.#forget(going)
  }

  /** At least once, and again while the broker cannot: what is not committed, someone else does again. */
  async #commitBy(endsAt: number, partitions: readonly Partition[]): Promise<void> {
    await this.committer.flush(partitions)
    while (partitions.some(({ isChanged }) => isChanged) && performance.now() < endsAt) {
      if (this.#isFenced) return
      await pause(RETRY_MS)
      await this.committer.flush(partitions)
    }
  }

  #lose(places: readonly TopicPartition[]): void {
    this.#forget(this.#close(places))
  }

  #close(places: readonly TopicPartition[]): readonly Partition[] {
    for (const place of places) this.#beginning.delete(place)
    const going = places.flatMap((place) => this.#partitions.get(nameOf(place)) ?? [])
    for (const partition of going) {
      partition.isClosing = true
      partition.touch()
    }
    return going
  }

  #forget(going: readonly Partition[]): void {
    for (const partition of going) this.#partitions.delete(nameOf(partition))
    this.#handOut.forget(going)
  }

  // ---- handing out ----------------------------------------------------------------------------

  #taken(partition: Partition): void {
    if (this.#partitions.get(nameOf(partition)) !== partition) return
    this.committer.changed()
    this.#handOut.ready(partition)
  }

  /** It was full when others were read, and has room now. */
  #readOn(partition: Partition): void {
    if (!partition.isFull || !partition.wantsMore) return
    partition.isFull = false
    this.#read()
  }

  #read(): void {
    for (const fetcher of this.#fetchers) fetcher.wake()
  }

  limit(count: number): void {
    this.#handOut.limit = count
    this.#handOut.pump()
  }

  /** Resolves when it is known who is at risk: one of them may be about to run alone. */
  async pause(): Promise<void> {
    this.#handOut.isPaused = true
    if (this.#handOut.hasSuspects) await this.#sayWhoIsAtRisk()
  }

  resume(): void {
    this.#handOut.isPaused = false
    if (this.#handOut.hasSuspects) void this.#sayWhoIsAtRisk()
    this.#handOut.pump()
  }

  #sayWhoIsAtRisk(): Promise<void> {
    for (const partition of this.#partitions.values()) partition.touch()
    return this.committer.flushAll()
  }

  atRisk(partition: Partition): AtRisk {
    if (partition.isClosing) return 'nobody'
    const { isPaused, limit } = this.#handOut
    return isPaused ? { exactly: this.#handOut.inHandOf(partition) } : { amongFirst: limit }
  }

  /** Its partition, while it is ours. */
  partitionOf(delivery: KafkaDelivery): Partition | undefined {
    return this.#handOut.partitionOf(delivery)
  }

  /** False: it is no longer ours. */
  finish(delivery: KafkaDelivery): boolean {
    return this.#handOut.finish(delivery)
  }

  /** Back to its place; it is handed out again. */
  giveBack(delivery: KafkaDelivery): boolean {
    return this.#handOut.giveBack(delivery)
  }

  /** Resolves when all that is finished is committed, or it turned out that it cannot be. */
  committed(): Promise<void> {
    return this.committer.flushAll()
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#handOut.isPaused = true
    const going = this.#close([...this.#partitions.values()])
    // An error is ignored, here and below: what is not committed is consumed again by another consumer.
    const committing = this.#commitBy(performance.now() + CLOSE_MS, going)
    await withTimeout(Promise.allSettled([committing]), CLOSE_MS, () => undefined)
    this.#isClosed = true
    this.#handOut.close()
    for (const fetcher of this.#fetchers) fetcher.stop()
    this.committer.stop()
    // A broker that is gone needs no goodbye; it notices when the session is over.
    await withTimeout(Promise.allSettled([this.#membership.leave()]), CLOSE_MS, () => undefined)
    const closing = Object.values(this.#clients).map((client) => client.close())
    await withTimeout(Promise.allSettled(closing), CLOSE_MS, () => undefined)
  }
}

const pause = (ms: number) =>
  new Promise<void>((resolve) => {
    setTimeout(resolve, ms).unref()
  })

const NOTHING_COMMITTED: Committed = { offset: undefined, metadata: null }
