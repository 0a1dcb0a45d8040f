import type { CrashEvidence, TopicIdentity } from './crash-evidence.ts'
import type { Reading } from '../protocol/fetcher.ts'
import { isFreshReplay, isTimeRecord, type KafkaRecord, laneOf } from '../delivery.ts'
import type { TopicPartition } from '../protocol/topic-partition.ts'
import type { Progress } from './progress.ts'

/** 1,000 records or 2 MB read ahead: enough to keep handlers busy during the next fetch. */
const MAX_AHEAD_RECORDS = 1_000
const MAX_AHEAD_BYTES = 2_097_152
/** 4 million records between the first unfinished and the last finished one: a bitmap of 0.5 MB. */
const MAX_SPAN = 4_194_304

export interface PartitionOptions {
  /** The assigned topic and partition; compared by identity. */
  readonly topicPartition: TopicPartition
  /** The topic when the partition started. Undefined: not known. */
  readonly identity?: TopicIdentity | undefined
  /** Delay of the records in milliseconds; 0 for the source. */
  readonly tierMs: number
  readonly progress: Progress
  readonly deaths: CrashEvidence
  readonly position: number
  readonly isOrdered: boolean
  readonly onTaken: (partition: Partition) => void
  readonly onOutOfRange: (partition: Partition) => Promise<void>
  readonly onRecreated?: (partition: Partition) => Promise<void>
}

/**
 * An assigned partition: the records read ahead, the returned ones and, in lane order, those parked behind
 * an unfinished record of the same key.
 */
export class Partition implements Reading {
  readonly topicPartition: TopicPartition
  readonly topic: string
  readonly identity: TopicIdentity | undefined
  readonly partition: number
  readonly tierMs: number
  readonly progress: Progress
  readonly deaths: CrashEvidence
  readonly #options: PartitionOptions
  position: number
  /** The last record that was read; a new object after each read with records. */
  newest: Pick<KafkaRecord, 'timestamp'> | undefined
  /** Records read ahead, in order, starting at `#head`. */
  #ahead: KafkaRecord[] = []
  #head = 0
  #aheadBytes = 0
  /** Records that were returned or are next in their lane. They keep their lane while they are here. */
  #returned: KafkaRecord[] = []
  /** Lanes with a record in flight, and the records parked behind it. */
  readonly #lanes = new Map<string, KafkaRecord[]>()
  parked = 0
  /** End offset of the log at the last fetch. */
  #end = Number.POSITIVE_INFINITY
  inFlight = 0
  /** Whether the partition is being released: no further record is delivered. */
  isClosing = false
  isQueued = false
  /** Whether its topic did not exist at the last commit. */
  isMissing = false
  /** Whether the last fetch skipped it because it had no room. */
  isFull = false
  #touches = 0
  /** The version that was last committed; -1 before the first commit. */
  committedVersion = -1

  constructor(options: PartitionOptions) {
    const { topicPartition, identity, tierMs, progress, deaths, position } = options
    const { topic, partition } = topicPartition
    this.topicPartition = topicPartition
    this.#options = options
    this.topic = topic
    this.identity = identity
    this.partition = partition
    this.tierMs = tierMs
    this.progress = progress
    this.deaths = deaths
    this.position = position
  }

  /** Increases with every change that a commit contains. */
  get version(): number {
    return this.progress.version + this.#touches
  }

  get isChanged(): boolean {
    return this.version !== this.committedVersion
  }

  /** Records that the set of records at risk has changed. */
  touch(): void {
    this.#touches += 1
  }

  get wantsMore(): boolean {
    return (
      !this.isClosing &&
      this.#ahead.length - this.#head < MAX_AHEAD_RECORDS &&
      this.#aheadBytes < MAX_AHEAD_BYTES &&
      this.progress.span < MAX_SPAN
    )
  }

  take(records: readonly KafkaRecord[], next: number, end: number): void {
    this.#end = end
    let expected = this.position
    for (const record of records) {
      // These offsets have no record, or none that consumers can read.
      if (record.offset > expected) this.progress.finishAll(expected, record.offset)
      expected = record.offset + 1
      if (this.tierMs > 0 && isTimeRecord(record)) {
        this.progress.finishAll(record.offset, expected)
        continue
      }
      if (this.progress.has(record.offset)) continue
      this.#ahead.push(record)
      this.#aheadBytes += record.value?.length ?? 0
    }
    const last = records.at(-1)
    if (last !== undefined) this.newest = { timestamp: last.timestamp }
    if (next > expected) this.progress.finishAll(expected, next)
    this.position = next
    this.#options.onTaken(this)
  }

  /** Whether every record up to the last known end is delivered. */
  get isAtEnd(): boolean {
    return this.position >= this.#end && this.#ahead.length === 0 && this.#returned.length === 0
  }

  /** Number of records that are not committed; undefined before the first fetch. */
  get lag(): number | undefined {
    return Number.isFinite(this.#end) ? Math.max(0, this.#end - this.progress.mark) : undefined
  }

  get topicId(): string | undefined {
    return this.identity?.id
  }

  outOfRange(): Promise<void> {
    return this.#options.onOutOfRange(this)
  }

  async recreated(): Promise<void> {
    await this.#options.onRecreated?.(this)
  }

  /** Returns the next record if it is due, otherwise the time when it will be due. Both times are the broker's. */
  next(now: number): KafkaRecord | number | undefined {
    if (this.isClosing) return undefined
    const first = this.#returned.shift()
    if (first !== undefined) {
      this.inFlight += 1
      return first
    }
    while (this.#head < this.#ahead.length) {
      const record = this.#ahead[this.#head] as KafkaRecord
      const dueAt = this.#dueAt(record)
      if (dueAt > now) return dueAt
      this.#shift(record)
      if (this.#isParked(record)) continue
      this.inFlight += 1
      return record
    }
    return undefined
  }

  #dueAt(record: KafkaRecord): number {
    // Plus 1 ms, because the broker counts whole milliseconds.
    return this.tierMs === 0 || isFreshReplay(record) ? 0 : record.timestamp + this.tierMs + 1
  }

  /** Returns the time since the record of a retry topic was due; 0 for the source. */
  lateMs(record: KafkaRecord, now: number): number {
    return this.tierMs === 0 ? 0 : now - this.#dueAt(record)
  }

  #shift(record: KafkaRecord): void {
    this.#aheadBytes -= record.value?.length ?? 0
    this.#head += 1
    if (this.#head < this.#ahead.length) return
    this.#ahead = []
    this.#head = 0
    this.#aheadBytes = 0
  }

  /** Parks the record in lane order, if another record of its lane is unfinished; otherwise the record takes the lane. */
  #isParked(record: KafkaRecord): boolean {
    const lane = this.#options.isOrdered ? laneOf(record) : undefined
    if (lane === undefined) return false
    const parked = this.#lanes.get(lane)
    if (parked === undefined) {
      this.#lanes.set(lane, NONE_PARKED)
      return false
    }
    // The bytes are copied: otherwise the record would keep the whole fetch response in memory.
    const copied = copyBytes(record)
    if (parked === NONE_PARKED) this.#lanes.set(lane, [copied])
    else parked.push(copied)
    this.parked += 1
    return true
  }

  /** Finishes a record. Returns true when a record parked behind it can be delivered now. */
  finish(record: KafkaRecord): boolean {
    this.inFlight -= 1
    this.progress.finish(record.offset)
    const lane = this.#options.isOrdered ? laneOf(record) : undefined
    if (lane === undefined) return false
    const next = this.#lanes.get(lane)?.shift()
    if (next === undefined) {
      this.#lanes.delete(lane)
      return false
    }
    this.parked -= 1
    this.#returned.push(next)
    return true
  }

  /** Returns a record to its position, before every record that was read after it. */
  returnToPartition(record: KafkaRecord): void {
    this.inFlight -= 1
    const at = this.#returned.findIndex(({ offset }) => offset > record.offset)
    if (at < 0) this.#returned.push(record)
    else this.#returned.splice(at, 0, record)
  }
}

const NONE_PARKED: KafkaRecord[] = []

const copyBytes = (record: KafkaRecord): KafkaRecord => ({
  ...record,
  key: record.key === null ? null : Buffer.from(record.key),
  value: record.value === null ? null : Buffer.from(record.value),
  headers: record.headers.map(([name, value]) => [
    Buffer.from(name),
    value === null ? null : Buffer.from(value),
  ]),
})
