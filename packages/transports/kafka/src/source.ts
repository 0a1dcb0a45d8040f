import { decodeHeaders, type FailureClass } from '@redrive/core'
import {
  type ConfirmationBatch,
  type DeadLetterSource,
  type DrainedBatch,
  type DrainedDeadLetter,
  type ReplayMessage,
  readConfirmation,
} from '@redrive/runtime'
import { Client } from './client.ts'
import { existing } from './declare.ts'
import { Drain } from './drain.ts'
import { readForeignDeath } from './foreign.ts'
import { envelopeOf, type KafkaDelivery, readable, replayOf, replayTopicOf } from './headers.ts'
import { saidBy } from './held.ts'
import { lagOf } from './lag.ts'
import { Offsets } from './offsets.ts'
import {
  type KafkaSourceOptions,
  type ResolvedSourceOptions,
  resolveSourceOptions,
} from './options.ts'
import { Publisher } from './publish.ts'

/** 30 s: joining a group takes as long as its slowest member. */
const DRAIN_MS = 30_000
/** 200 ms: confirmations are asked for several times a second, and those that come late come with the next. */
const CONFIRMATIONS_MS = 200
/** 1 s between two looks for a topic that is not there: consumers make it when they start. */
const LOOK_MS = 1_000

/** The control plane's side: drains dead letters, ours or foreign, publishes replays and hears of them. */
export class KafkaSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #options: ResolvedSourceOptions
  readonly #client: Client
  readonly #offsets: Offsets
  readonly #publisher: Publisher
  #deadLetters: Drain | undefined
  #confirmations: Drain | undefined
  /** No sooner are topics looked for again, by the first of them. */
  readonly #lookAt = new Map<string, number>()

  constructor(options: ResolvedSourceOptions) {
    const { client, confirmTimeoutMs } = options
    this.source = options.topic
    this.#options = options
    this.#client = new Client(client)
    this.#offsets = new Offsets(this.#client, this.#groupFor(options.deadLetterTopics))
    this.#publisher = new Publisher(client, confirmTimeoutMs)
  }

  /** One for each set of topics: members of a group must agree on what they consume. */
  #groupFor(topics: readonly string[]): string {
    return [this.#options.drainGroup, ...[...topics].sort()].join('.')
  }

  #drain(topics: readonly string[]): Drain {
    const { client, topic } = this.#options
    return new Drain({ client, group: this.#groupFor(topics), topics, source: topic })
  }

  async drain({ most }: { readonly most: number }): Promise<DrainedBatch> {
    if (this.#deadLetters === undefined) {
      const topics = this.#options.deadLetterTopics
      // Joining a group for topics that are not there takes until somebody makes them.
      if (!(await this.#isThere(topics))) return NOTHING_DRAINED
      this.#deadLetters ??= this.#drain(topics)
    }
    const { deliveries, ...ending } = await this.#deadLetters.take(most, DRAIN_MS)
    return { deadLetters: deliveries.map((delivery) => this.#read(delivery)), ...ending }
  }

  async confirmations({ most }: { readonly most: number }): Promise<ConfirmationBatch> {
    if (this.#confirmations === undefined) {
      // Others' consumers make none.
      if (!(await this.#isThere([this.#options.confirmationTopic]))) return NO_CONFIRMATIONS
      this.#confirmations ??= this.#drain([this.#options.confirmationTopic])
    }
    const { deliveries, ...ending } = await this.#confirmations.take(most, CONFIRMATIONS_MS)
    const confirmations = deliveries.flatMap(({ bytes }) => readConfirmation(bytes) ?? [])
    // None that can be read: nobody needs to write down anything first.
    if (confirmations.length === 0) await ending.release()
    return { confirmations, ...ending }
  }

  /** Whether there is one of these topics. */
  async #isThere(topics: readonly string[]): Promise<boolean> {
    const [first = ''] = topics
    const now = performance.now()
    if (now < (this.#lookAt.get(first) ?? 0)) return false
    this.#lookAt.set(first, now + LOOK_MS)
    return (await existing(this.#client.base, topics)).length > 0
  }

  #read(delivery: KafkaDelivery): DrainedDeadLetter {
    const { raw } = delivery
    const decoded = decodeHeaders(readable(raw.headers))
    // Who gave it up says why. A replay that somebody else gave up carries our headers, without a reason.
    const foreign = decoded.reason === undefined ? readForeignDeath(raw) : undefined
    const origin = decoded.source ?? foreign?.origin ?? this.source
    const isTold = foreign === undefined || delivery.cycle.history.length > 0
    const cycle = isTold ? delivery.cycle : { ...foreign.cycle, number: delivery.cycle.number }
    const failureClass: FailureClass = cycle.history.at(-1)?.class ?? 'unknown'
    const reason = decoded.reason ?? foreign?.reason ?? 'unknown'
    const partition = foreign?.partition ?? raw.partition
    const replayTo = decoded.source === undefined ? undefined : replayTopicOf(raw, origin)
    return {
      delivery: { ...saidBy(delivery), source: origin, cycle },
      origin,
      envelope: {
        ...envelopeOf({ ...raw, partition }),
        ...(replayTo === undefined ? {} : { replayTo }),
      },
      quarantined: QUARANTINED.has(reason),
      class: failureClass,
      reason,
      // Without an id of its own it has the name of its place, which stays.
      naming: 'named',
      ...(decoded.stack === undefined ? {} : { stack: decoded.stack }),
    }
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    const { copy, to } = replayOf(deadLetter, replayId)
    await this.#publisher.inTime(this.#publisher.send(to, copy))
  }

  depth(): Promise<number> {
    return lagOf(this.#client, this.#offsets, this.#options.deadLetterTopics)
  }

  /** Records of the topic that the group has not finished: how far the consumers are behind. */
  lag(): Promise<number> {
    const { topic, group } = this.#options
    return lagOf(this.#client, new Offsets(this.#client, group), [topic])
  }

  async close(): Promise<void> {
    await Promise.all([this.#deadLetters?.close(), this.#confirmations?.close()])
    await Promise.all([this.#publisher.close(), this.#client.close()])
  }
}

const NOTHING_TO_END = { release: () => Promise.resolve(), abandon: () => Promise.resolve() }
const NOTHING_DRAINED: DrainedBatch = { deadLetters: [], ...NOTHING_TO_END }
const NO_CONFIRMATIONS: ConfirmationBatch = { confirmations: [], ...NOTHING_TO_END }

/** Reasons of a quarantine, in the words of the decision. */
const QUARANTINED: ReadonlySet<string> = new Set(['same_failure_repeated', 'crash_loop'])

/** The control plane's side of a topic and its group: their dead letters, or those of any topics you name. */
export function kafkaSource(options: KafkaSourceOptions): KafkaSource {
  return new KafkaSource(resolveSourceOptions(options))
}
