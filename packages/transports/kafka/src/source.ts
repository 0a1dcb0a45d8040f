import { RedriveError } from '@redrive/core'
import {
  type ConfirmationBatch,
  type DeadLetterSource,
  type DrainedBatch,
  type DrainedDeadLetter,
  type DrainedQueue,
  type ReplayMessage,
  parseConfirmation,
} from '@redrive/runtime'
import { compatibilityPartitioner } from '@platformatic/kafka'
import { Client } from './protocol/client.ts'
import { existing } from './declare.ts'
import { Drain } from './drain.ts'
import { deadLetterOf } from './dead-letter.ts'
import {
  envelopeOf,
  formatPosition,
  type KafkaDelivery,
  type KafkaRecord,
  originalOf,
  parsePosition,
  positionOf,
  replayOf,
} from './delivery.ts'
import { unfinished } from './enact.ts'
import { InFlightDelivery, saidBy } from './consume/in-flight.ts'
import { lagOf } from './consume/lag.ts'
import { completeFrom } from './original.ts'
import { Offsets } from './protocol/offsets.ts'
import {
  type KafkaSourceOptions,
  type ResolvedSourceOptions,
  resolveSourceOptions,
} from './options.ts'
import { Publisher } from './publish.ts'
import { putBackOf } from './put-back.ts'
import { topologyOf } from './topology.ts'

/** 30 s: joining a group takes as long as its slowest member needs. */
const DRAIN_MS = 30_000
/** 200 ms: confirmations are read several times per second; later ones are in the next batch. */
const CONFIRMATIONS_MS = 200
/** 1 s between two checks for a missing topic: consumers create it when they start. */
const CHECK_MS = 1_000

/** The control plane's access to a topic: drains dead letters, publishes replays and reads their confirmations. */
export class KafkaSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #options: ResolvedSourceOptions
  readonly #client: Client
  readonly #offsets: Offsets
  readonly #publisher: Publisher
  /** The topics that consumers of this topic and group read. */
  readonly #ownTopics: ReadonlySet<string>
  #deadLetters: Drain | undefined
  #confirmations: Drain | undefined
  /** Time of the next check for missing topics, by the name of the first topic. */
  readonly #nextCheckAt = new Map<string, number>()

  /** @internal */
  constructor(options: ResolvedSourceOptions) {
    const { client, confirmTimeoutMs } = options
    this.source = options.topic
    this.#options = options
    this.#client = new Client(client)
    this.#offsets = new Offsets(this.#client, this.#groupFor(options.deadLetterTopics))
    // A producer may have compressed the original: only compressed, it fits into its topic again.
    this.#publisher = new Publisher({ client, confirmTimeoutMs, canCompress: true })
    const { topic, retries } = topologyOf(options.topic, options.group, 0)
    this.#ownTopics = new Set([topic, ...retries.map(({ name }) => name)])
  }

  /** Returns a separate group for each set of topics: members of a group must consume the same topics. */
  #groupFor(topics: readonly string[]): string {
    return [this.#options.drainGroup, ...[...topics].sort()].join('.')
  }

  #drain(topics: readonly string[]): Drain {
    const { client, topic } = this.#options
    return new Drain({ client, group: this.#groupFor(topics), topics, source: topic })
  }

  async drain({ limit }: { readonly limit: number }): Promise<DrainedBatch> {
    if (this.#deadLetters === undefined) {
      const topics = this.#options.deadLetterTopics
      // Joining a group for missing topics would wait until a consumer creates them.
      if (!(await this.#doesExist(topics))) return NOTHING_DRAINED
      this.#deadLetters ??= this.#drain(topics)
    }
    const { deliveries, ...endActions } = await this.#deadLetters.take(limit, DRAIN_MS)
    const deadLetters: DrainedDeadLetter[] = []
    // One after the other: an original is read from the broker, and may be large.
    for (const delivery of deliveries) deadLetters.push(await this.#readSafely(delivery))
    return { deadLetters, ...endActions }
  }

  async confirmations({ limit }: { readonly limit: number }): Promise<ConfirmationBatch> {
    if (this.#confirmations === undefined) {
      // Consumers of other libraries do not create this topic.
      if (!(await this.#doesExist([this.#options.confirmationTopic]))) return NO_CONFIRMATIONS
      this.#confirmations ??= this.#drain([this.#options.confirmationTopic])
    }
    const { deliveries, ...endActions } = await this.#confirmations.take(limit, CONFIRMATIONS_MS)
    const confirmations = deliveries.flatMap(({ bytes }) => parseConfirmation(bytes) ?? [])
    // No readable confirmation: the caller has nothing to store before the release.
    if (confirmations.length === 0) await endActions.release()
    return { confirmations, ...endActions }
  }

  /** Returns whether at least one of these topics exists. */
  async #doesExist(topics: readonly string[]): Promise<boolean> {
    const [first = ''] = topics
    const now = performance.now()
    if (now < (this.#nextCheckAt.get(first) ?? 0)) return false
    this.#nextCheckAt.set(first, now + CHECK_MS)
    return (await existing(this.#client.base, topics)).length > 0
  }

  /** Reads a dead letter. Whatever its headers contain, it does not throw: the other dead letters would wait. */
  async #readSafely(delivery: KafkaDelivery): Promise<DrainedDeadLetter> {
    try {
      return await this.#read(delivery)
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      return {
        delivery: { ...saidBy(delivery), source: this.source },
        origin: this.source,
        envelope: envelopeOf(delivery.raw),
        quarantined: false,
        class: 'unknown',
        reason: 'unknown',
        identity: 'stable',
        problem: { code: 'unreadable', message: `The headers cannot be read: ${text}.` },
      }
    }
  }

  async #read(drained: KafkaDelivery): Promise<DrainedDeadLetter> {
    const position = originalOf(drained.raw)
    // Any program can write this header. It must not make other topics readable.
    if (position === undefined || !this.#ownTopics.has(position.topic))
      return deadLetterOf(drained, this.source)
    const { raw, source, deliveryCount } = drained
    const delivery = (record: KafkaRecord) =>
      new InFlightDelivery(source, record, { partition: undefined, deliveryCount })
    try {
      return deadLetterOf(delivery(await completeFrom(this.#client, raw, position)), this.source)
    } catch {
      // It must not block the other dead letters. A replay reads the original again, and reports the cause.
      const { envelope, ...rest } = deadLetterOf(
        delivery({ ...raw, value: NO_CONTENT }),
        this.source,
      )
      const original = formatPosition(position)
      return { ...rest, reason: CONTENT_MISSING, envelope: { ...envelope, original } }
    }
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    const { copy, topic, partition } = replayOf(await this.#withContent(deadLetter), replayId)
    let to = { topic, partition: partition ?? 0 }
    try {
      if (partition === undefined)
        to = { topic, partition: await this.#partitionFor(topic, copy.key) }
      await this.#publisher.inTime(this.#publisher.send(to, copy))
    } catch (error) {
      const result = unfinished(error, to)
      throw result.kind === 'refused' ? result.error : error
    }
  }

  /** Produces the records to their dead-letter topics and partitions, with the same key, value and headers. */
  async putBack(deadLetters: readonly DrainedDeadLetter[]): Promise<void> {
    const records = deadLetters.map((one) => {
      const record = putBackOf(one)
      if (record === undefined) throw unknownTopic(one)
      return record
    })
    const sent = records.map(({ copy, ...to }) => this.#publisher.send(to, copy))
    await this.#publisher.inTime(Promise.all(sent).then(() => undefined))
  }

  /** Returns the partition that producers choose for the key; any partition for a record without a key. */
  async #partitionFor(topic: string, key: Buffer | null): Promise<number> {
    const { topics } = await this.#client.metadata([topic])
    const count = topics.get(topic)?.partitionsCount ?? 1
    if (key === null) return Math.floor(Math.random() * count)
    // The partitioner of the Java clients and of kafkajs.
    return compatibilityPartitioner({ topic }, key) % count
  }

  /** Reads the content of a dead letter that was drained without it, unless a user has added a body. */
  async #withContent(deadLetter: DrainedDeadLetter): Promise<DrainedDeadLetter> {
    const { delivery, envelope } = deadLetter
    const position = parsePosition(envelope['original'] ?? '')
    if (position === undefined || delivery.bytes.length > 0) return deadLetter
    try {
      const record = await completeFrom(this.#client, NO_RECORD, position)
      const content = envelopeOf(record)
      const bytes = record.value ?? NO_CONTENT
      return {
        ...deadLetter,
        delivery: { ...delivery, bytes },
        envelope: { ...envelope, ...content },
      }
    } catch (cause) {
      throw contentMissing(positionOf(position), cause)
    }
  }

  depth(): Promise<number> {
    return lagOf(this.#client, this.#offsets, this.#options.deadLetterTopics)
  }

  /** Returns the dead-letter topics, with the number of records that are not drained yet. */
  async queues(): Promise<readonly DrainedQueue[]> {
    const topics = this.#options.deadLetterTopics
    const found = await existing(this.#client.base, topics)
    const depthOf = (name: string) => lagOf(this.#client, this.#offsets, [name])
    return Promise.all(
      topics.map(async (name) => ({
        name,
        depth: found.includes(name) ? await depthOf(name) : undefined,
      })),
    )
  }

  /** Returns the number of records that the group has not finished: the lag of its consumers. */
  lag(): Promise<number> {
    const { topic, group } = this.#options
    return lagOf(this.#client, new Offsets(this.#client, group), [topic])
  }

  async close(): Promise<void> {
    await Promise.all([this.#deadLetters?.close(), this.#confirmations?.close()])
    await Promise.all([this.#publisher.close(), this.#client.close()])
  }
}

const NO_END_ACTIONS = { release: () => Promise.resolve(), abandon: () => Promise.resolve() }
const NOTHING_DRAINED: DrainedBatch = { deadLetters: [], ...NO_END_ACTIONS }
const NO_CONFIRMATIONS: ConfirmationBatch = { confirmations: [], ...NO_END_ACTIONS }

const NO_CONTENT = Buffer.alloc(0)
const NO_RECORD: KafkaRecord = {
  ...{ topic: '', partition: 0, offset: 0, timestamp: 0 },
  ...{ key: null, value: null, headers: [] },
}

/** The reason of a dead letter whose content was too large to copy, and whose original could not be read. */
const CONTENT_MISSING = 'content_missing'

const contentMissing = (original: string, cause: unknown) =>
  new RedriveError(
    'REFUSED',
    `This dead letter has no content: the record was too large to copy, and the original, ${original}, cannot be read: ${cause instanceof Error ? cause.message : String(cause)} Publish the message again from its producer, or add a body and replay it.`,
    { cause },
  )

const unknownTopic = ({ delivery }: DrainedDeadLetter) =>
  new RedriveError(
    'REFUSED',
    `The dead letter "${delivery.id}" was drained by an older release, which did not store its topic and headers. Replay or discard it.`,
  )

/** Creates the control plane's access to the dead letters of a topic and group, or of the dead-letter topics you list. */
export function kafkaSource(options: KafkaSourceOptions): KafkaSource {
  return new KafkaSource(resolveSourceOptions(options))
}
