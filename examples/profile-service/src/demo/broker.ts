import { FAILURE_CLASSES } from '@redrive/core'
import {
  deadLetterQueue,
  delayQueue,
  quarantineQueue,
  rabbitmqSource,
  STEPS_MS,
  topologyOf,
} from '@redrive/rabbitmq'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { type ChannelModel, type ConfirmChannel, connect } from 'amqplib'

/** The queue as a producer and an observer use it. */
export class Broker {
  readonly #url: string
  readonly #queue: string
  readonly #connection: ChannelModel
  readonly #channel: ConfirmChannel
  #published = 0

  private constructor(
    url: string,
    queue: string,
    connection: ChannelModel,
    channel: ConfirmChannel,
  ) {
    this.#url = url
    this.#queue = queue
    this.#connection = connection
    this.#channel = channel
  }

  static async connect(url: string, queue: string): Promise<Broker> {
    const connection = await connect(url, { timeout: 3_000 })
    return new Broker(url, queue, connection, await connection.createConfirmChannel())
  }

  /**
   * Publishes as a producer does: with type, id and content type. It waits until the broker has
   * confirmed.
   */
  async publish(
    events: readonly { readonly type: string; readonly data: unknown }[],
  ): Promise<void> {
    for (const { type, data } of events) {
      this.#channel.sendToQueue(this.#queue, Buffer.from(JSON.stringify(data)), {
        type,
        messageId: `event-${++this.#published}`,
        contentType: 'application/json',
        persistent: true,
        mandatory: true,
      })
    }
    await this.#channel.waitForConfirms()
  }

  /** Returns the number of messages that wait for the service, in the queue and in its delay queues. */
  waiting(): Promise<number> {
    const delays = STEPS_MS.map((stepMs) => delayQueue(this.#queue, stepMs))
    return this.#depth([this.#queue, ...delays])
  }

  /** Returns the number of dead letters, quarantine included. */
  deadLetters(): Promise<number> {
    const quarantines = FAILURE_CLASSES.map((name) => quarantineQueue(this.#queue, name))
    return this.#depth([deadLetterQueue(this.#queue), ...quarantines])
  }

  /** Reads the dead letters and leaves them in the queue. */
  async readDeadLetters(): Promise<readonly DrainedDeadLetter[]> {
    const source = rabbitmqSource({ url: this.#url, queue: this.#queue })
    try {
      const batch = await source.drain({ limit: 10 })
      await batch.abandon()
      return batch.deadLetters
    } finally {
      await source.close()
    }
  }

  async close(): Promise<void> {
    await this.#connection.close()
  }

  async cleanUp(): Promise<void> {
    const { source, deadLetters, later, exchange } = topologyOf(this.#queue, 'quorum')
    for (const { name } of [source, deadLetters, ...later]) await this.#channel.deleteQueue(name)
    await this.#channel.deleteExchange(exchange)
  }

  async #depth(names: readonly string[]): Promise<number> {
    const depths = await Promise.all(names.map((name) => this.#depthOf(name)))
    return depths.reduce((sum, depth) => sum + depth, 0)
  }

  /** Uses a separate channel, because a check of a missing queue closes the channel. */
  async #depthOf(name: string): Promise<number> {
    const channel = await this.#connection.createChannel()
    channel.on('error', () => undefined)
    try {
      const { messageCount } = await channel.checkQueue(name)
      await channel.close()
      return messageCount
    } catch (error) {
      if ((error as { code?: unknown }).code === NOT_FOUND) return 0
      throw error
    }
  }
}

const NOT_FOUND = 404
