import type { BaseOptions } from '@platformatic/kafka'
import { RedriveError } from '@redrive/core'
import { Consumption } from './consume/consumption.ts'
import type { KafkaDelivery } from './delivery.ts'

export interface DrainOptions {
  readonly client: BaseOptions
  readonly group: string
  readonly topics: readonly string[]
  /** The source name that users see. */
  readonly source: string
}

export interface TakenRecords {
  readonly deliveries: readonly KafkaDelivery[]
  release(): Promise<void>
  abandon(): Promise<void>
}

/** 10 s until another control plane takes over the partitions of a crashed one. */
const SESSION_MS = 10_000
/** 20 ms between two checks for the end of the topics. */
const POLL_MS = 20

/** Takes records from topics in batches, and commits the released ones. */
export class Drain {
  readonly #options: DrainOptions
  readonly #consumption: Consumption
  /** Deliveries that were taken but not released or abandoned yet. */
  readonly #open = new Set<KafkaDelivery>()
  #arrived: KafkaDelivery[] = []

  constructor(options: DrainOptions) {
    const { client, group, topics, source } = options
    this.#options = options
    this.#consumption = new Consumption({
      client,
      group,
      topics: topics.map((name) => ({ name, tierMs: 0, isOrdered: false, from: 'earliest' })),
      source,
      sessionMs: SESSION_MS,
      drainMs: 0,
      onResult: () => undefined,
      // `queues()` of the source lists missing topics.
      onMissing: () => undefined,
      onAssigned: () => undefined,
      needsPreparation: () => false,
      prepare: () => Promise.resolve(),
      onExpired: () => undefined,
      onRecreated: () => undefined,
    })
    void this.#consumption.pause()
    this.#consumption.start({
      deliver: (delivery) => this.#arrived.push(delivery),
      lost: (delivery) => {
        this.#open.delete(delivery)
        this.#arrived = this.#arrived.filter((one) => one !== delivery)
      },
    })
  }

  /** Takes up to `limit` records. Returns the records received within `withinMs` if the end is not reached by then. */
  async take(limit: number, withinMs: number): Promise<TakenRecords> {
    const consumption = this.#consumption
    consumption.limit(this.#open.size + limit)
    consumption.resume()
    const endsAt = performance.now() + withinMs
    while (this.#arrived.length < limit && !consumption.isAtEnd) {
      if (performance.now() > endsAt) break
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
    void consumption.pause()
    const deliveries = this.#arrived
    this.#arrived = []
    for (const delivery of deliveries) this.#open.add(delivery)
    return this.#taken(deliveries)
  }

  #taken(deliveries: readonly KafkaDelivery[]): TakenRecords {
    let isEnded = false
    const once = async (act: (delivery: KafkaDelivery) => boolean) => {
      if (isEnded) return
      isEnded = true
      const isOurs = deliveries.map((delivery) => {
        this.#open.delete(delivery)
        return act(delivery)
      })
      if (isOurs.includes(false)) throw lostBeforeRelease(this.#options.source)
    }
    return {
      deliveries,
      release: async () => {
        try {
          await once((delivery) => this.#consumption.finish(delivery))
        } finally {
          await this.#consumption.committed()
        }
      },
      abandon: () => once((delivery) => this.#consumption.returnToPartition(delivery)),
    }
  }

  close(): Promise<void> {
    return this.#consumption.close()
  }
}

const lostBeforeRelease = (source: string) =>
  new RedriveError(
    'DELIVERY_LOST',
    `${source}: another process took over the partition before these records were released. They are still in their topic, and Redrive reads them again.`,
  )
