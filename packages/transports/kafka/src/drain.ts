import type { BaseOptions } from '@platformatic/kafka'
import { RedriveError } from '@redrive/core'
import { Consumption } from './consuming.ts'
import type { KafkaDelivery } from './headers.ts'

export interface DrainParts {
  readonly client: BaseOptions
  readonly group: string
  readonly topics: readonly string[]
  /** As people know what is drained. */
  readonly source: string
}

export interface Taken {
  readonly deliveries: readonly KafkaDelivery[]
  release(): Promise<void>
  abandon(): Promise<void>
}

/** 10 s until another control plane takes over the partitions of one that died. */
const SESSION_MS = 10_000
/** 20 ms between two looks whether the end is reached. */
const LOOK_MS = 20

/** Takes records off topics in batches, and commits what is released. */
export class Drain {
  readonly #parts: DrainParts
  readonly #consumption: Consumption
  /** Taken, and neither released nor abandoned yet. */
  readonly #open = new Set<KafkaDelivery>()
  #arrived: KafkaDelivery[] = []

  constructor(parts: DrainParts) {
    const { client, group, topics, source } = parts
    this.#parts = parts
    this.#consumption = new Consumption({
      client,
      group,
      topics: topics.map((name) => ({ name, tierMs: 0, isOrdered: false, from: 'earliest' })),
      source,
      sessionMs: SESSION_MS,
      drainMs: 0,
      onTrouble: () => undefined,
      onExpired: () => undefined,
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

  /** What is there, at most so many; what there is by then when the end is not reached within that time. */
  async take(most: number, withinMs: number): Promise<Taken> {
    const consumption = this.#consumption
    consumption.limit(this.#open.size + most)
    consumption.resume()
    const endsAt = performance.now() + withinMs
    while (this.#arrived.length < most && !consumption.isAtEnd) {
      if (performance.now() > endsAt) break
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
    void consumption.pause()
    const deliveries = this.#arrived
    this.#arrived = []
    for (const delivery of deliveries) this.#open.add(delivery)
    return this.#taken(deliveries)
  }

  #taken(deliveries: readonly KafkaDelivery[]): Taken {
    let isOver = false
    const once = async (act: (delivery: KafkaDelivery) => boolean) => {
      if (isOver) return
      isOver = true
      const isOurs = deliveries.map((delivery) => {
        this.#open.delete(delivery)
        return act(delivery)
      })
      if (isOurs.includes(false)) throw lostBefore(this.#parts.source)
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
      abandon: () => once((delivery) => this.#consumption.giveBack(delivery)),
    }
  }

  close(): Promise<void> {
    return this.#consumption.close()
  }
}

const lostBefore = (source: string) =>
  new RedriveError(
    'DELIVERY_LOST',
    `${source}: another control plane took over before what was drained was released. It is still in its topic and will be drained again.`,
  )
