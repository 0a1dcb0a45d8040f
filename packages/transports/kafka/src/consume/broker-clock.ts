import type { TopicPartition } from '../protocol/topic-partition.ts'
import type { Partition } from './partition.ts'

/** 10 minutes: in this time, two clocks drift apart by a few milliseconds. */
const VALID_MS = 600_000
/** 10 s until the next time record, when the last one failed. */
const REPEAT_MS = 10_000

/** Stores a time record. Returns the time of the broker when it stored it; undefined when the client does not report it. */
export type StoreTimeRecord = (topicPartition: TopicPartition) => Promise<number | undefined>

/**
 * The time of the brokers, which write it into the records of retry topics. The clock of this machine may
 * differ by minutes.
 *
 * The time is measured with a time record: a record without content. Without a measurement, the time counts from the
 * last records that arrived: the broker stored them before they arrived. This is too low if they are old, so a
 * retry is never early, but it can be late.
 */
export class BrokerClock {
  readonly #store: StoreTimeRecord
  readonly #now: () => number
  #measuredMs = 0
  #validUntil = Number.NEGATIVE_INFINITY
  #nextMeasureAt = Number.NEGATIVE_INFINITY
  /** The last records of each partition, and the difference between their timestamp and the time of their arrival. */
  readonly #arrivals = new WeakMap<
    Partition,
    { newest: Partition['newest']; differenceMs: number }
  >()

  constructor(store: StoreTimeRecord, now: () => number = localNow) {
    this.#store = store
    this.#now = now
  }

  /** Returns the time of the brokers, or an earlier one. */
  now(partition: Partition): number {
    const now = this.#now()
    const { differenceMs } = this.#arrivals.get(partition) ?? NEVER
    return now + (now < this.#validUntil ? this.#measuredMs : differenceMs)
  }

  /** Takes the timestamp of the records that have just arrived in a partition, if there are any. */
  sees(partition: Partition): void {
    const { newest } = partition
    if (newest === this.#arrivals.get(partition)?.newest || newest === undefined) return
    this.#arrivals.set(partition, { newest, differenceMs: newest.timestamp - this.#now() })
  }

  /** Measures the time of the broker that leads the partition, unless it was measured recently. */
  measure({ topicPartition }: Partition): void {
    if (this.#now() < this.#nextMeasureAt) return
    this.#nextMeasureAt = this.#now() + REPEAT_MS
    void this.#measure(topicPartition)
  }

  async #measure(topicPartition: TopicPartition): Promise<void> {
    try {
      const timestamp = await this.#store(topicPartition)
      this.#nextMeasureAt = this.#now() + VALID_MS
      if (timestamp === undefined) return
      // The broker stored it before the response arrived: its time is not later than this.
      this.#measuredMs = timestamp - this.#now()
      this.#validUntil = this.#nextMeasureAt
    } catch {
      // An unreachable broker is reported by other requests. The next time record is sent after ten seconds.
    }
  }
}

const NEVER = { differenceMs: Number.NEGATIVE_INFINITY }

/** Returns the local time. It does not jump when the system clock is set. */
const localNow = () => performance.timeOrigin + performance.now()
