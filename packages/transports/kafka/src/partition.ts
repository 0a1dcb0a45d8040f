import type { Deaths } from './deaths.ts'
import type { Reading } from './fetch.ts'
import { isFreshReplay, type KafkaRecord, laneOf } from './headers.ts'
import type { TopicPartition } from './topic-partition.ts'
import type { Progress } from './progress.ts'

/** 1,000 records or 2 MB read ahead: enough to keep handlers busy while the broker is asked for more. */
const AHEAD_RECORDS = 1_000
const AHEAD_BYTES = 2_097_152
/** 4 million between the first unfinished record and the last finished one: half a megabyte of bitmap. */
const SPAN = 4_194_304

export interface PartitionParts {
  /** As it was assigned to us. */
  readonly place: TopicPartition
  /** How long records wait here; 0 for the source. */
  readonly tierMs: number
  readonly progress: Progress
  readonly deaths: Deaths
  readonly position: number
  readonly isOrdered: boolean
  readonly onTaken: (partition: Partition) => void
  readonly onOutOfRange: (partition: Partition) => Promise<void>
}

/**
 * One partition while it is ours: what was read ahead, what was returned, and in lane order what is
 * parked behind an unfinished record of the same key.
 */
export class Partition implements Reading {
  readonly place: TopicPartition
  readonly topic: string
  readonly partition: number
  readonly tierMs: number
  readonly progress: Progress
  readonly deaths: Deaths
  readonly #parts: PartitionParts
  position: number
  /** Read, in order, from `#head` on. */
  #ahead: KafkaRecord[] = []
  #head = 0
  #aheadBytes = 0
  /** Returned, or next in its lane: it keeps its lane while it is here. */
  #first: KafkaRecord[] = []
  /** Lanes with a record in hand, and what is parked behind it. */
  readonly #lanes = new Map<string, KafkaRecord[]>()
  parked = 0
  /** Where the log ended when it was last read. */
  #end = Number.POSITIVE_INFINITY
  inHand = 0
  /** It goes to someone else: nothing more is handed out. */
  isClosing = false
  isQueued = false
  /** It was not read on when others were, because there was no room. */
  isFull = false
  #touches = 0
  /** The state that was last committed; none by us yet. */
  committedVersion = -1

  constructor(parts: PartitionParts) {
    const { place, tierMs, progress, deaths, position } = parts
    const { topic, partition } = place
    this.place = place
    this.#parts = parts
    this.topic = topic
    this.partition = partition
    this.tierMs = tierMs
    this.progress = progress
    this.deaths = deaths
    this.position = position
  }

  /** Rises with everything that a commit says. */
  get version(): number {
    return this.progress.version + this.#touches
  }

  get isChanged(): boolean {
    return this.version !== this.committedVersion
  }

  /** Who is at risk has changed. */
  touch(): void {
    this.#touches += 1
  }

  get wantsMore(): boolean {
    return (
      !this.isClosing &&
      this.#ahead.length - this.#head < AHEAD_RECORDS &&
      this.#aheadBytes < AHEAD_BYTES &&
      this.progress.span < SPAN
    )
  }

  take(records: readonly KafkaRecord[], next: number, end: number): void {
    this.#end = end
    let expected = this.position
    for (const record of records) {
      // No record, or none that we may see.
      if (record.offset > expected) this.progress.finishAll(expected, record.offset)
      expected = record.offset + 1
      if (this.progress.has(record.offset)) continue
      this.#ahead.push(record)
      this.#aheadBytes += record.value?.length ?? 0
    }
    if (next > expected) this.progress.finishAll(expected, next)
    this.position = next
    this.#parts.onTaken(this)
  }

  /** Everything that was there when it was last read is handed out. */
  get isAtEnd(): boolean {
    return this.position >= this.#end && this.#ahead.length === 0 && this.#first.length === 0
  }

  outOfRange(): Promise<void> {
    return this.#parts.onOutOfRange(this)
  }

  /** The next record to hand out, when it is due by then. Otherwise when it will be. */
  next(now: number): KafkaRecord | number | undefined {
    if (this.isClosing) return undefined
    const first = this.#first.shift()
    if (first !== undefined) {
      this.inHand += 1
      return first
    }
    while (this.#head < this.#ahead.length) {
      const record = this.#ahead[this.#head] as KafkaRecord
      // One more: both clocks count whole milliseconds.
      const isDue = this.tierMs === 0 || isFreshReplay(record)
      const dueAt = isDue ? 0 : record.timestamp + this.tierMs + 1
      if (dueAt > now) return dueAt
      this.#shift(record)
      if (this.#isParked(record)) continue
      this.inHand += 1
      return record
    }
    return undefined
  }

  #shift(record: KafkaRecord): void {
    this.#aheadBytes -= record.value?.length ?? 0
    this.#head += 1
    if (this.#head < this.#ahead.length) return
    this.#ahead = []
    this.#head = 0
    this.#aheadBytes = 0
  }

  /** In lane order a record waits for the one before it, or takes the lane. */
  #isParked(record: KafkaRecord): boolean {
    const lane = this.#parts.isOrdered ? laneOf(record) : undefined
    if (lane === undefined) return false
    const parked = this.#lanes.get(lane)
    if (parked === undefined) {
      this.#lanes.set(lane, NOBODY)
      return false
    }
    // Bytes of its own: as it came, it would keep all that was read with it in memory.
    const own = ownBytes(record)
    if (parked === NOBODY) this.#lanes.set(lane, [own])
    else parked.push(own)
    this.parked += 1
    return true
  }

  /** It is finished; true when one that was parked behind it may go on. */
  finish(record: KafkaRecord): boolean {
    this.inHand -= 1
    this.progress.finish(record.offset)
    const lane = this.#parts.isOrdered ? laneOf(record) : undefined
    if (lane === undefined) return false
    const next = this.#lanes.get(lane)?.shift()
    if (next === undefined) {
      this.#lanes.delete(lane)
      return false
    }
    this.parked -= 1
    this.#first.push(next)
    return true
  }

  /** Back to its place: before everything that was read after it. */
  giveBack(record: KafkaRecord): void {
    this.inHand -= 1
    const at = this.#first.findIndex(({ offset }) => offset > record.offset)
    if (at < 0) this.#first.push(record)
    else this.#first.splice(at, 0, record)
  }
}

const NOBODY: KafkaRecord[] = []

const ownBytes = (record: KafkaRecord): KafkaRecord => ({
  ...record,
  key: record.key === null ? null : Buffer.from(record.key),
  value: record.value === null ? null : Buffer.from(record.value),
  headers: record.headers.map(([name, value]) => [
    Buffer.from(name),
    value === null ? null : Buffer.from(value),
  ]),
})
