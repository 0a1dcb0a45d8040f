import { isDeepStrictEqual } from 'node:util'
import {
  type ChannelModel,
  type ConfirmChannel,
  connect,
  type ConsumeMessage,
  type Options,
} from 'amqplib'
import { until } from '../../../harness/wait.ts'
import type { Where } from '../../options.ts'
import { type App, bodyOf, indexOf, isRedrive } from './app.ts'

const DRAINED_MS = 60_000
/** One in ten messages expires before it is delivered. */
const EXPIRES_EVERY = 10

/** A queue with a dead-letter exchange and a consumer that rejects, as in every tutorial. */
export class RabbitMqApp implements App {
  readonly deadLetters: string
  readonly wrong: string[] = []
  readonly labels: string[] = []
  readonly secondReason = 'broker_rejected'
  readonly #queue: string
  readonly #connection: ChannelModel
  readonly #channel: ConfirmChannel
  readonly #handled = new Set<number>()
  /** Undefined while everything fails. */
  #again: Set<number> | undefined

  static async open({ amqpUrl, queue }: Where): Promise<RabbitMqApp> {
    const connection = await connect(amqpUrl)
    const channel = await connection.createConfirmChannel()
    return new RabbitMqApp(queue, connection, channel)
  }

  private constructor(queue: string, connection: ChannelModel, channel: ConfirmChannel) {
    this.#queue = queue
    this.deadLetters = `${queue}-dead`
    this.#connection = connection
    this.#channel = channel
  }

  async fail(count: number): Promise<void> {
    const channel = this.#channel
    const dead = { 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': this.deadLetters }
    await channel.assertQueue(this.deadLetters, { durable: true })
    await channel.assertQueue(this.#queue, { durable: true, arguments: dead })
    for (let index = 0; index < count; index++) {
      channel.sendToQueue(this.#queue, bodyOf(index), propertiesOf(index))
      this.labels.push(isExpiring(index) ? 'expired' : 'rejected')
    }
    await channel.waitForConfirms()
    await channel.prefetch(100)
    await channel.consume(this.#queue, (message) => message && this.#take(message))
    const isAside = async () => (await channel.checkQueue(this.deadLetters)).messageCount === count
    await until(`${count} dead letters`, isAside, { withinMs: DRAINED_MS })
  }

  async fix(again: ReadonlySet<number>): Promise<void> {
    this.#again = new Set(again)
  }

  get handled(): number {
    return this.#handled.size
  }

  #take(message: ConsumeMessage): void {
    const index = indexOf(message.content)
    if (this.#again === undefined || this.#again.has(index)) {
      this.#again?.delete(index)
      this.#channel.nack(message, false, false)
      return
    }
    const problem = this.#handled.has(index) ? 'came twice' : difference(index, message)
    if (problem !== undefined) this.wrong.push(`${index} ${problem}`)
    this.#handled.add(index)
    this.#channel.ack(message)
  }

  async end(): Promise<void> {
    await this.#channel.deleteQueue(this.#queue)
    await this.#channel.deleteQueue(this.deadLetters)
    await this.#connection.close()
  }
}

const isExpiring = (index: number) => index % EXPIRES_EVERY === 3

/** Every second message has no id, as most messages in practice. */
const propertiesOf = (index: number): Options.Publish => ({
  persistent: true,
  ...(index % 2 === 0 ? { messageId: `message-${index}` } : {}),
  ...(isExpiring(index) ? { expiration: '0' } : {}),
  contentType: 'application/octet-stream',
  type: 'order.placed',
  correlationId: `of ${index}`,
  timestamp: 1_760_000_000 + index,
  headers: headersOf(index),
})

const headersOf = (index: number) => ({
  tenant: 'Zoë',
  number: index,
  share: 0.5,
  isUrgent: index % 3 === 0,
  bytes: Buffer.from([0, 255, index % 256]),
  list: [1, 'two', { three: 3 }],
})

const KEPT = [
  'messageId',
  'contentType',
  'type',
  'correlationId',
  'timestamp',
  'deliveryMode',
] as const

/** Describes what differs from the sent message. */
function difference(index: number, { content, properties }: ConsumeMessage): string | undefined {
  if (!content.equals(bodyOf(index))) return 'has another body'
  const entries = Object.entries(properties.headers ?? {}).filter(([name]) => !isRedrive(name))
  const headers = Object.fromEntries(entries)
  if (!isDeepStrictEqual(headers, headersOf(index))) return `has headers ${JSON.stringify(headers)}`
  const sent: Readonly<Record<string, unknown>> = { ...propertiesOf(index), deliveryMode: 2 }
  const got: Readonly<Record<string, unknown>> = { ...properties }
  const changed = KEPT.filter((name) => got[name] !== sent[name])
  return changed.length === 0 ? undefined : `has another ${changed.join(', ')}`
}
