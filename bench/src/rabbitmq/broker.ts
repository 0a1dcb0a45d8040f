// The broker of `dev/services`, and the untimed steps of a benchmark on it.
import { randomUUID } from 'node:crypto'
import { urlOf } from '@redrive/dev-support'
import { deadLetterExchange, topologyOf } from '@redrive/rabbitmq'
import { type ChannelModel, type ConfirmChannel, connect, type Options } from 'amqplib'
import { PATIENCE_MS } from '../patience.ts'

/** Redrive's default socket options, for all candidates. Otherwise Nagle's delay would be measured. */
export const SOCKET: { noDelay: true; keepAlive: true; timeout: number } = {
  noDelay: true,
  keepAlive: true,
  timeout: 10_000,
}

const BODY = Buffer.alloc(1_024, 'x')
/**
 * Number of publishes before their confirms are awaited; limits the waiting messages in this
 * process.
 */
const FILL_BATCH = 1_000

export interface Look {
  readonly ready: number
  readonly consumers: number
}

export async function brokerUrl(): Promise<string> {
  return `${await urlOf('rabbitmq', 'amqp')}?heartbeat=10`
}

/**
 * Returns a name that no test uses, because the broker is shared. So leftovers of an aborted run
 * can be recognised.
 */
export const ownQueue = (): string => `redrive-benchmark-${randomUUID()}`

export function connection(url: string): Promise<ChannelModel> {
  return connect(url, SOCKET)
}

/** A separate connection of the benchmark: declares, fills, counts and cleans up. */
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

  /**
   * Declares a source and its dead-letter queue as Redrive does; `changed` contains other
   * arguments.
   */
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

  /** Returns the id of the message; calls `onStored` when the broker has confirmed it. */
  send(queue: string, options: Options.Publish = {}, onStored?: () => void): string {
    this.#sent += 1
    const messageId = `m-${this.#sent}`
    this.#channel.sendToQueue(
      queue,
      BODY,
      // Not JSON, so that no candidate decodes a body that the handler does not read.
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

  /** Polls without a pause, because the last few milliseconds of a sample matter. */
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

  /** Returns the number of deleted messages. */
  async purge(queue: string): Promise<number> {
    const { messageCount } = await this.#channel.purgeQueue(queue)
    return messageCount
  }

  /** Deletes all queues of the source; a missing queue counts as deleted. */
  async delete(queue: string): Promise<void> {
    const { source, deadLetters, later } = topologyOf(queue, 'quorum')
    for (const { name } of [source, deadLetters, ...later]) await this.#channel.deleteQueue(name)
    await this.#channel.deleteExchange(deadLetterExchange(queue))
  }

  close(): Promise<void> {
    return this.#connection.close()
  }
}
