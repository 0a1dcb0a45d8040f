// The broker of `dev/services` and what a benchmark does to it outside of the timed part.
import { randomUUID } from 'node:crypto'
import { urlOf } from '@redrive/dev-support'
import { deadLetterExchange, topologyOf } from '@redrive/rabbitmq'
import { type ChannelModel, type ConfirmChannel, connect, type Options } from 'amqplib'
import { PATIENCE_MS } from '../patience.ts'

/** What Redrive connects with by default, for everyone: Nagle's delay would be measured otherwise. */
export const SOCKET: { noDelay: true; keepAlive: true; timeout: number } = {
  noDelay: true,
  keepAlive: true,
  timeout: 10_000,
}

const BODY = Buffer.alloc(1_024, 'x')
/** Published before their confirms are awaited: bounds what waits in this process. */
const FILL_BATCH = 1_000

export interface Look {
  readonly ready: number
  readonly consumers: number
}

export async function brokerUrl(): Promise<string> {
  return `${await urlOf('rabbitmq', 'amqp')}?heartbeat=10`
}

/** The broker is shared: a name that no test uses, so that what an aborted run leaves can be told apart. */
export const ownQueue = (): string => `redrive-benchmark-${randomUUID()}`

export function connection(url: string): Promise<ChannelModel> {
  return connect(url, SOCKET)
}

/** A connection of the benchmark's own: declares, fills, counts and cleans up. */
export class Broker {
  readonly url: string
  readonly #connection: ChannelModel
  readonly #channel: ConfirmChannel
  #sent = 0

  private constructor(url: string, opened: ChannelModel, channel: ConfirmChannel) {
    this.url = url
    this.#connection = opened
    this.#channel = channel
  }

  static async open(url: string): Promise<Broker> {
    const opened = await connection(url)
    return new Broker(url, opened, await opened.createConfirmChannel())
  }

  /** A source and its dead letters as Redrive would declare them; `changed` for those who cannot use that. */
  async declare(queue: string, changed: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const { exchange, source, deadLetters } = topologyOf(queue, 'quorum')
    await this.#channel.assertExchange(exchange, 'direct', { durable: true })
    await this.#assert(deadLetters.name, deadLetters.arguments)
    await this.#channel.bindQueue(deadLetters.name, exchange, queue)
    await this.#assert(queue, { ...source.arguments, ...changed })
  }

  async #assert(name: string, args: Readonly<Record<string, unknown>>): Promise<void> {
    const given = Object.entries(args).filter(([, value]) => value !== undefined)
    const options = { durable: true, arguments: Object.fromEntries(given) }
    await this.#channel.assertQueue(name, options)
  }

  /** Puts `count` messages of 1 KB into the queue and waits until the broker has stored them. */
  async fill(queue: string, count: number): Promise<void> {
    for (let sent = 0; sent < count; sent += 1) {
      this.send(queue)
      if (sent % FILL_BATCH === FILL_BATCH - 1) await this.#channel.waitForConfirms()
    }
    await this.#channel.waitForConfirms()
  }

  /** Answers the id of the message; `onStored` is called when the broker has confirmed it. */
  send(queue: string, options: Options.Publish = {}, onStored?: () => void): string {
    this.#sent += 1
    const messageId = `m-${this.#sent}`
    this.#channel.sendToQueue(
      queue,
      BODY,
      // Not JSON: nobody in the comparison should decode a body that the handler does not read.
      {
        contentType: 'application/octet-stream',
        persistent: true,
        mandatory: true,
        messageId,
        ...options,
      },
      onStored,
    )
    return messageId
  }

  async look(queue: string): Promise<Look> {
    const { messageCount, consumerCount } = await this.#channel.checkQueue(queue)
    return { ready: messageCount, consumers: consumerCount }
  }

  /** Asks again and again, without a pause: this is about the last few milliseconds of a sample. */
  async until(queue: string, isReached: (look: Look) => boolean): Promise<void> {
    const endsAt = performance.now() + PATIENCE_MS
    for (;;) {
      const look = await this.look(queue)
      if (isReached(look)) return
      if (performance.now() > endsAt) {
        throw new Error(`${queue} stays at ${look.ready} messages, ${look.consumers} consumers`)
      }
    }
  }

  /** Answers how many messages there were. */
  async purge(queue: string): Promise<number> {
    const { messageCount } = await this.#channel.purgeQueue(queue)
    return messageCount
  }

  /** Everything that belongs to the queue; what was never made counts as deleted. */
  async delete(queue: string): Promise<void> {
    const { source, deadLetters, later } = topologyOf(queue, 'quorum')
    for (const { name } of [source, deadLetters, ...later]) await this.#channel.deleteQueue(name)
    await this.#channel.deleteExchange(deadLetterExchange(queue))
  }

  close(): Promise<void> {
    return this.#connection.close()
  }
}
