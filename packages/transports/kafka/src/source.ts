import { decodeHeaders, type FailureClass, RedriveError } from '@redrive/core'
import type {
  DeadLetterSource,
  DrainedBatch,
  DrainedDeadLetter,
  ReplayMessage,
} from '@redrive/runtime'
import { Client } from './client.ts'
import { Consumption } from './consuming.ts'
import { readForeignDeath } from './foreign.ts'
import { envelopeOf, type KafkaDelivery, readable, replayOf } from './headers.ts'
import { saidBy } from './held.ts'
import { lagOf } from './lag.ts'
import { Offsets } from './offsets.ts'
import type { ResolvedSourceOptions } from './options.ts'
import { Publisher } from './publish.ts'

/** 10 s until another control plane takes over the partitions of one that died. */
const SESSION_MS = 10_000
/** 30 s: joining a group takes as long as its slowest member. */
const DRAIN_MS = 30_000
/** 20 ms between two looks whether the end is reached. */
const LOOK_MS = 20

/** The control plane's side: drains dead letters, ours or foreign, and publishes replays. */
export class KafkaSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #options: ResolvedSourceOptions
  readonly #client: Client
  readonly #offsets: Offsets
  readonly #publisher: Publisher
  #consumption: Consumption | undefined
  /** Drained, and neither released nor abandoned yet. */
  readonly #open = new Set<KafkaDelivery>()
  #arrived: KafkaDelivery[] = []

  constructor(options: ResolvedSourceOptions) {
    const { client, confirmTimeoutMs } = options
    this.source = options.topic
    this.#options = options
    this.#client = new Client(client)
    this.#offsets = new Offsets(this.#client, this.#group)
    this.#publisher = new Publisher(client, confirmTimeoutMs)
  }

  /** One for each set of topics: members of a group must agree on what they consume. */
  get #group(): string {
    const { drainGroup, deadLetterTopics } = this.#options
    return [drainGroup, ...[...deadLetterTopics].sort()].join('.')
  }

  async drain({ most }: { readonly most: number }): Promise<DrainedBatch> {
    const consumption = this.#started()
    const before = this.#open.size
    consumption.limit(before + most)
    consumption.resume()
    const endsAt = performance.now() + DRAIN_MS
    while (this.#arrived.length < most && !consumption.isAtEnd) {
      if (performance.now() > endsAt) break
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
    void consumption.pause()
    const drained = this.#arrived
    this.#arrived = []
    for (const delivery of drained) this.#open.add(delivery)
    return this.#batch(consumption, drained)
  }

  #started(): Consumption {
    if (this.#consumption !== undefined) return this.#consumption
    const { client, deadLetterTopics, topic } = this.#options
    const consumption = new Consumption({
      client,
      group: this.#group,
      topics: deadLetterTopics.map((name) => ({
        name,
        tierMs: 0,
        isOrdered: false,
        from: 'earliest',
      })),
      source: topic,
      sessionMs: SESSION_MS,
      drainMs: 0,
      onTrouble: () => undefined,
      onExpired: () => undefined,
    })
    void consumption.pause()
    consumption.start({
      deliver: (delivery) => this.#arrived.push(delivery),
      lost: (delivery) => {
        this.#open.delete(delivery)
        this.#arrived = this.#arrived.filter((one) => one !== delivery)
      },
    })
    this.#consumption = consumption
    return consumption
  }

  #batch(consumption: Consumption, drained: readonly KafkaDelivery[]): DrainedBatch {
    let isOver = false
    const once = async (act: (delivery: KafkaDelivery) => boolean) => {
      if (isOver) return
      isOver = true
      const isOurs = drained.map((delivery) => {
        this.#open.delete(delivery)
        return act(delivery)
      })
      if (isOurs.includes(false)) throw lostBefore(this.source)
    }
    return {
      deadLetters: drained.map((delivery) => this.#read(delivery)),
      release: async () => {
        try {
          await once((delivery) => consumption.finish(delivery))
        } finally {
          await consumption.committed()
        }
      },
      abandon: () => once((delivery) => consumption.giveBack(delivery)),
    }
  }

  #read(delivery: KafkaDelivery): DrainedDeadLetter {
    const { raw } = delivery
    const decoded = decodeHeaders(readable(raw.headers))
    const foreign = decoded.source === undefined ? readForeignDeath(raw) : undefined
    const origin = decoded.source ?? foreign?.origin ?? this.source
    const cycle = foreign?.cycle ?? delivery.cycle
    const failureClass: FailureClass = cycle.history.at(-1)?.class ?? 'unknown'
    const reason = decoded.reason ?? foreign?.reason ?? 'unknown'
    const partition = foreign?.partition ?? raw.partition
    return {
      delivery: { ...saidBy(delivery), source: origin, cycle },
      origin,
      envelope: envelopeOf({ ...raw, partition }),
      quarantined: QUARANTINED.has(reason),
      class: failureClass,
      reason,
    }
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    const { copy, partition } = replayOf(deadLetter, replayId)
    const { origin } = deadLetter
    await this.#publisher.inTime(this.#publisher.send({ topic: origin, partition }, copy))
  }

  depth(): Promise<number> {
    return lagOf(this.#client, this.#offsets, this.#options.deadLetterTopics)
  }

  async close(): Promise<void> {
    await this.#consumption?.close()
    await Promise.all([this.#publisher.close(), this.#client.close()])
  }
}

/** Reasons of a quarantine, in the words of the decision. */
const QUARANTINED: ReadonlySet<string> = new Set(['same_failure_repeated', 'crash_loop'])

const lostBefore = (source: string) =>
  new RedriveError(
    'DELIVERY_LOST',
    `${source}: another control plane took over before the dead letters were released. They are still in their topic and will be drained again.`,
  )
