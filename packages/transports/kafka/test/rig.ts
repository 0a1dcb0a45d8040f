import { randomUUID } from 'node:crypto'
import { Admin } from '@platformatic/kafka'
import { onEvent, type Receiver, type RedriveEvent } from '@redrive/runtime'
import { until, type WaitOptions } from '@redrive/testing'
import { Client } from '../src/protocol/client.ts'
import { Fetcher } from '../src/protocol/fetcher.ts'
import { type Copy, isTimeRecord } from '../src/delivery.ts'
import {
  type KafkaDelivery,
  type KafkaOptions,
  type KafkaRecord,
  type KafkaSource,
  type KafkaSourceOptions,
  type KafkaTransport,
  kafka,
  kafkaSource,
  topologyOf,
} from '../src/index.ts'
import { EARLIEST, endsOf, LATEST } from '../src/consume/lag.ts'
import { nameOf, type TopicPartition } from '../src/protocol/topic-partition.ts'
import { type CommittedOffset, Offsets } from '../src/protocol/offsets.ts'
import { closing, forgetIfOutdated, type KafkaProducer, producerOf } from '../src/producer.ts'
import { messageOf } from '../src/publish.ts'
import { Process } from './process.ts'

export { SETTLE } from '@redrive/core'
export { deadLetter, failedCycle, retryIn } from '@redrive/dev-support'
export { until } from '@redrive/testing'

// ---- records ----------------------------------------------------------------------------------

/** A record that a test sends; text where that is enough. */
export interface SentRecord {
  readonly partition?: number
  readonly key?: string | Buffer
  /** The value; null for a tombstone. */
  readonly value?: string | Buffer | null
  readonly headers?: readonly (readonly [name: string, value: string | Buffer | null])[]
}

const bytesOf = (value: string | Buffer) => (typeof value === 'string' ? Buffer.from(value) : value)

const copyToSend = ({ key, value = 'body', headers = [] }: SentRecord): Copy => ({
  key: key === undefined ? null : bytesOf(key),
  value: value === null ? null : bytesOf(value),
  headers: headers.map(([name, content]) => [
    Buffer.from(name),
    content === null ? null : bytesOf(content),
  ]),
})

export const textOf = ({ value }: KafkaRecord): string => value?.toString() ?? ''

// ---- receiving --------------------------------------------------------------------------------

export class Inbox implements Receiver<KafkaDelivery> {
  readonly deliveries: KafkaDelivery[] = []
  readonly lostOnes: KafkaDelivery[] = []

  deliver(delivery: KafkaDelivery): void {
    this.deliveries.push(delivery)
  }

  lost(delivery: KafkaDelivery): void {
    this.lostOnes.push(delivery)
  }

  get bodies(): readonly string[] {
    return this.deliveries.map(({ raw }) => textOf(raw))
  }

  /** Waits until this number of deliveries has arrived, and returns the last one. */
  async nth(count: number, options?: WaitOptions): Promise<KafkaDelivery> {
    const accept = (seen: number) => seen >= count
    await until(`${count} deliveries`, () => this.deliveries.length, { ...options, accept })
    return this.deliveries[count - 1] as KafkaDelivery
  }
}

export interface Started {
  readonly transport: KafkaTransport
  readonly inbox: Inbox
}

export interface RigOptions {
  readonly partitions?: number
  /** Whether to create the topic. */
  readonly isMade?: boolean
}

/** A separate topic and group, with helpers for a test. */
export class Rig {
  readonly brokers: readonly string[]
  readonly topic: string = `rig-${randomUUID()}`
  // Group names are shared by the whole cluster.
  readonly group: string = `group-${randomUUID()}`
  readonly partitions: number
  readonly admin: Admin
  readonly #client: Client
  readonly #producer: KafkaProducer
  readonly #ends: (() => Promise<unknown>)[] = []
  readonly #topics = new Set<string>()

  private constructor(brokers: readonly string[], { partitions = 1 }: RigOptions) {
    const base = { clientId: 'rig', bootstrapBrokers: [...brokers], retries: 50, retryDelay: 100 }
    this.brokers = brokers
    this.partitions = partitions
    this.admin = new Admin(base)
    this.#client = new Client(base)
    this.#producer = producerOf(base)
    const { topic, retries, deadLetters, replayed } = topologyOf(this.topic, this.group, 0)
    const specs = [deadLetters, replayed, ...retries]
    for (const name of [topic, ...specs.map(({ name }) => name)]) {
      this.#topics.add(name)
    }
  }

  static async open(brokers: readonly string[], options: RigOptions = {}): Promise<Rig> {
    const rig = new Rig(brokers, options)
    if (options.isMade !== false) await rig.makeTopic(rig.topic)
    return rig
  }

  /** Runs when the rig is cleared, last one first. */
  atEnd(work: () => Promise<unknown>): void {
    this.#ends.unshift(work)
  }

  async makeTopic(
    name: string,
    configs: Readonly<Record<string, string>> = {},
    partitions: number = this.partitions,
  ): Promise<void> {
    this.#topics.add(name)
    await this.admin.createTopics({
      topics: [name],
      partitions,
      replicas: 1,
      configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
    })
    await until(`${name} is known`, async () => (await this.admin.listTopics()).includes(name))
  }

  /** Deletes the topic and waits until the broker has done it. */
  async deleteTopic(name: string = this.topic): Promise<void> {
    await this.admin.deleteTopics({ topics: [name] })
    await until(`${name} is gone`, async () => !(await this.admin.listTopics()).includes(name))
  }

  /** Stores a record and returns its offset. */
  async send(sent: SentRecord, topic: string = this.topic): Promise<number> {
    const topicPartition = { topic, partition: sent.partition ?? 0 }
    const { message } = messageOf(topicPartition, copyToSend(sent))
    forgetIfOutdated(this.#producer, [message])
    const { offsets = [] } = await this.#producer.send({ messages: [message] })
    return Number(offsets[0]?.offset ?? -1n)
  }

  /** Stores records in a separate transaction, which is then committed or aborted. */
  async sendTransaction(
    producer: KafkaProducer,
    all: readonly SentRecord[],
    isCommitted: boolean,
  ): Promise<void> {
    const transaction = await this.begin(producer, all)
    await (isCommitted ? transaction.commit() : transaction.abort())
  }

  /** Stores records in a transaction that the test ends. A broker needs some time after the previous one. */
  async begin(
    producer: KafkaProducer,
    all: readonly SentRecord[],
  ): ReturnType<KafkaProducer['beginTransaction']> {
    const messages = all.map((sent) => {
      const topicPartition = { topic: this.topic, partition: sent.partition ?? 0 }
      return messageOf(topicPartition, copyToSend(sent)).message
    })
    const transaction = await producer.beginTransaction()
    await transaction.send({ messages })
    return transaction
  }

  transactional(): KafkaProducer {
    const base = { clientId: 'rig', bootstrapBrokers: [...this.brokers] }
    const producer = producerOf(base, { transactionalId: randomUUID(), retries: 50 })
    this.atEnd(() => closing(producer))
    return producer
  }

  /** Returns all records of a topic except time records, as they are stored. */
  async read(topic: string): Promise<readonly KafkaRecord[]> {
    const found: KafkaRecord[] = []
    for (const topicPartition of this.topicPartitions(topic)) {
      found.push(...(await this.#readPartition(topicPartition)))
    }
    return found.filter((record) => !isTimeRecord(record))
  }

  topicPartitions(topic: string = this.topic): readonly TopicPartition[] {
    return Array.from({ length: this.partitions }, (_, partition) => ({ topic, partition }))
  }

  async #readPartition(topicPartition: TopicPartition): Promise<readonly KafkaRecord[]> {
    const name = nameOf(topicPartition)
    const first = await endsOf(this.#client, [topicPartition], EARLIEST)
    const end = (await endsOf(this.#client, [topicPartition], LATEST)).get(name) ?? 0
    const found: KafkaRecord[] = []
    const reading = {
      ...topicPartition,
      position: first.get(name) ?? 0,
      take(records: readonly KafkaRecord[], next: number) {
        found.push(...records)
        this.position = next
      },
      outOfRange: () => Promise.resolve(),
    }
    const fetcher = new Fetcher({
      client: this.#client,
      topics: [topicPartition.topic],
      wanted: () => (reading.position < end ? [reading] : []),
      onResult: () => undefined,
      onMissing: () => undefined,
    })
    fetcher.wake()
    await until(`all of ${name}`, () => reading.position >= end)
    fetcher.stop()
    return found
  }

  /** Returns the commits of the group, by partition. */
  async committed(topic: string = this.topic): Promise<readonly CommittedOffset[]> {
    const topicPartitions = this.topicPartitions(topic)
    const committed = await new Offsets(this.#client, this.group).read(topicPartitions)
    return topicPartitions.map(
      (topicPartition) =>
        committed.get(nameOf(topicPartition)) ?? { offset: undefined, metadata: null },
    )
  }

  /** Commits for the group without being a member; the group must have no members. */
  async commit(offset: number, metadata = '', partition = 0): Promise<void> {
    const noMember = { member: '', generation: -1 }
    const commits = [{ topic: this.topic, partition, offset, metadata }]
    await new Offsets(this.#client, this.group).commit(noMember, commits)
  }

  transport(options: Partial<KafkaOptions> = {}, process: Process = new Process()): KafkaTransport {
    const transport = kafka({
      brokers: this.brokers,
      topic: this.topic,
      group: this.group,
      sessionTimeout: '6s',
      drainTimeout: '1s',
      confirmTimeout: '5s',
      ...options,
      client: { context: process, retryDelay: 100 },
    })
    this.atEnd(() => transport.close())
    return transport
  }

  /** Returns a transport that receives. */
  async start(
    options: Partial<KafkaOptions> & { readonly process?: Process; readonly limit?: number } = {},
  ): Promise<Started> {
    const { process, limit = 100, ...rest } = options
    const transport = this.transport(rest, process)
    const inbox = new Inbox()
    await transport.open()
    transport.limit(limit)
    // Not awaited: a test may hold the request that joins the group.
    void transport.receive(inbox)
    return { transport, inbox }
  }

  source(options: Partial<KafkaSourceOptions> = {}): KafkaSource {
    const { brokers, topic, group } = this
    const source = kafkaSource({ brokers, topic, group, ...options })
    this.atEnd(() => source.close())
    return source
  }

  /** Collects the events of this topic from now on. */
  events(): RedriveEvent[] {
    const events: RedriveEvent[] = []
    const off = onEvent((event) => {
      if ('source' in event && event.source === this.topic) events.push(event)
    })
    this.atEnd(() => Promise.resolve(off()))
    return events
  }

  async clear(): Promise<void> {
    for (const end of this.#ends) await end()
    const all = await this.admin.listTopics()
    const own = [...this.#topics].filter((name) => all.includes(name))
    if (own.length > 0) await this.admin.deleteTopics({ topics: own })
    await Promise.all([this.admin.close(), closing(this.#producer), this.#client.close()])
  }
}

/** Runs the test on a separate rig. */
export const onRig =
  (brokers: readonly string[], test: (rig: Rig) => Promise<void>, options: RigOptions = {}) =>
  async (): Promise<void> => {
    const rig = await Rig.open(brokers, options)
    try {
      await test(rig)
    } finally {
      await rig.clear()
    }
  }
