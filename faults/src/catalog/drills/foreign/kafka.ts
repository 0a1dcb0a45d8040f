import { Consumer, Producer } from '@platformatic/kafka'
import { SEEN, sampleOf } from '../../../families/families.ts'
import { brokerAt, createTopics } from '../../../kafka/broker.ts'
import { until } from '../../../harness/wait.ts'
import type { Where } from '../../options.ts'
import { type App, bodyOf, indexOf, isRedrive } from './app.ts'

const DRAINED_MS = 60_000
const PARTITIONS = 2
const SPRING = SEEN.filter(({ name }) => name.startsWith('spring: '))
const LISTENER = 'org.springframework.kafka.listener.ListenerExecutionFailedException'

type Pair = readonly [name: string, value: Buffer]
interface Incoming {
  readonly partition: number
  readonly offset: bigint
  readonly key: Buffer | undefined
  readonly value: Buffer
  readonly headers: ReadonlyMap<Buffer, Buffer>
}

/**
 * A listener whose error handler publishes to a dead-letter topic, with the headers that Spring
 * Kafka writes.
 */
export class KafkaApp implements App {
  readonly deadLetters: string
  readonly wrong: string[] = []
  readonly labels: string[] = []
  readonly secondReason = 'spring_kafka_failed'
  readonly #where: Where
  readonly #producer: Producer<Buffer, Buffer, Buffer, Buffer>
  readonly #consumer: Consumer<Buffer, Buffer, Buffer, Buffer>
  readonly #handled = new Set<number>()
  #aside = 0
  /** Undefined while everything fails. */
  #again: Set<number> | undefined

  static async open(where: Where): Promise<KafkaApp> {
    const app = new KafkaApp(where)
    const broker = brokerAt([where.kafkaBroker])
    await createTopics(broker, [app.deadLetters], PARTITIONS, 1)
    await broker.close()
    return app
  }

  private constructor(where: Where) {
    const client = { clientId: 'spring', bootstrapBrokers: [where.kafkaBroker] }
    this.#where = where
    this.deadLetters = `${where.queue}-dlt`
    this.#producer = new Producer({ ...client, autocreateTopics: false })
    this.#consumer = new Consumer({ ...client, groupId: `spring-${where.queue}`, maxWaitTime: 100 })
  }

  async fail(count: number): Promise<void> {
    const topic = this.#where.queue
    const messages = Array.from({ length: count }, (_, index) => ({
      topic,
      partition: index % PARTITIONS,
      ...(index % 3 === 0 ? {} : { key: keyOf(index) }),
      value: bodyOf(index),
      headers: asMap(headersOf(index)),
    }))
    await this.#producer.send({ messages })
    this.labels.push(...messages.map((_, index) => familyOf(index).name))
    const stream = await this.#consumer.consume({
      topics: [topic],
      mode: 'committed',
      fallbackMode: 'earliest',
      autocommit: 100,
    })
    stream.on('data', (record: Incoming) => void this.#take(record))
    await until(`${count} dead letters`, () => this.#aside === count, { withinMs: DRAINED_MS })
  }

  async fix(again: ReadonlySet<number>): Promise<void> {
    this.#again = new Set(again)
  }

  get handled(): number {
    return this.#handled.size
  }

  async #take(record: Incoming): Promise<void> {
    const index = indexOf(record.value)
    if (this.#again === undefined || this.#again.has(index)) {
      const isSecond = this.#again?.delete(index) ?? false
      await this.#putAside(record, isSecond ? SECOND : toldOf(index))
      return
    }
    const problem = this.#handled.has(index) ? 'came twice' : difference(index, record)
    if (problem !== undefined) this.wrong.push(`${index} ${problem}`)
    this.#handled.add(index)
  }

  /**
   * Publishes a record to the dead-letter topic. It replaces the previous exception and adds the
   * origin again.
   */
  async #putAside(record: Incoming, { type, message, stack }: ReportedException): Promise<void> {
    const { partition, offset, key, value, headers } = record
    const before = pairsOf(headers).filter(([name]) => !name.startsWith('kafka_dlt-exception'))
    const added: readonly Pair[] = [
      ['kafka_dlt-original-topic', Buffer.from(this.#where.queue)],
      ['kafka_dlt-original-partition', int32(partition)],
      ['kafka_dlt-original-offset', int64(offset)],
      ['kafka_dlt-exception-fqcn', Buffer.from(LISTENER)],
      ['kafka_dlt-exception-cause-fqcn', Buffer.from(type)],
      ['kafka_dlt-exception-message', Buffer.from(message)],
      ['kafka_dlt-exception-stacktrace', Buffer.from(stack)],
    ]
    const copy = {
      topic: this.deadLetters,
      partition,
      value,
      headers: asMap([...before, ...added]),
    }
    await this.#producer.send({ messages: [key === undefined ? copy : { ...copy, key }] })
    this.#aside += 1
  }

  async end(): Promise<void> {
    await Promise.all([this.#consumer.close(true), this.#producer.close(true)])
  }
}

interface ReportedException {
  readonly type: string
  readonly message: string
  readonly stack: string
}

const familyOf = (index: number) => SPRING[index % SPRING.length] as (typeof SPRING)[number]

function toldOf(index: number): ReportedException {
  const sample = sampleOf(familyOf(index), index)
  if (!('told' in sample))
    throw new Error('Expected a failure reported in headers, but the sample throws.')
  const { type = '', message = '', stack = '' } = sample.told
  return { type, message, stack }
}

const SECOND_MESSAGE = 'the warehouse does not know the article'
const SECOND: ReportedException = {
  type: 'com.acme.StockException',
  message: SECOND_MESSAGE,
  stack: `com.acme.StockException: ${SECOND_MESSAGE}\n\tat com.acme.Stock.take(Stock.java:12)`,
}

const keyOf = (index: number) => Buffer.from([255, index % 256])

/** Returns headers; some values are bytes that are not text. */
const headersOf = (index: number): readonly Pair[] => [
  ['tenant', Buffer.from('Zoë')],
  ['bytes', Buffer.from([0, 254, index % 256])],
  ['empty', Buffer.alloc(0)],
]

const pairsOf = (headers: ReadonlyMap<Buffer, Buffer>): readonly Pair[] =>
  [...headers].map(([name, value]) => [name.toString(), value])

/** Uses a separate Buffer as each key, because a name may occur twice. */
const asMap = (pairs: readonly Pair[]): Map<Buffer, Buffer> =>
  new Map(pairs.map(([name, value]) => [Buffer.from(name), value]))

/**
 * Describes what differs from the sent message. Headers that the listener wrote stay: the control
 * plane must not remove them.
 */
function difference(
  index: number,
  { partition, key, value, headers }: Incoming,
): string | undefined {
  if (!value.equals(bodyOf(index))) return 'has another body'
  if (partition !== index % PARTITIONS) return `is in partition ${partition}`
  const isSameKey = index % 3 === 0 ? (key?.length ?? 0) === 0 : key?.equals(keyOf(index))
  if (isSameKey !== true) return `has key ${key?.toString('hex')}`
  const own = pairsOf(headers).filter(
    ([name]) => !isRedrive(name) && !name.startsWith('kafka_dlt-'),
  )
  const text = (pairs: readonly Pair[]) =>
    pairs.map(([name, one]) => `${name}=${one.toString('hex')}`)
  const [got, sent] = [text(own).join(), text(headersOf(index)).join()]
  return got === sent ? undefined : `has headers ${got}`
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function int64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(value)
  return bytes
}
