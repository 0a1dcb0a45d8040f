import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Transport } from '@redrive/runtime'
import type { SentMessage, TransportFault, TransportFixture } from '@redrive/testing'
import {
  type Channel,
  type ChannelModel,
  type ConfirmChannel,
  type ConsumeMessage,
  connect,
} from 'amqplib'
import {
  deadLetterQueue,
  type Purpose,
  type RabbitMqOptions,
  rabbitmq,
  rabbitmqSource,
  topologyOf,
} from '../src/index.ts'

export interface RabbitMqWorld extends TransportFixture {
  readonly queue: string
  /** A separate connection of the test. */
  readonly admin: ChannelModel
  transport(fault?: TransportFault, options?: Partial<RabbitMqOptions>): Transport
}

/** A new queue on the broker, with transports whose connections a test can observe and break. */
export async function rabbitmqWorld(
  urls: readonly string[],
  order: 'none' | 'lane' = 'none',
): Promise<RabbitMqWorld> {
  const queue = `orders-${randomUUID()}`
  const topology = topologyOf(queue, 'quorum', queue, order)
  const admin = await connect(urls[0] as string)
  // A broker restart closes this connection too; the next use reports the error.
  admin.on('error', () => undefined)
  const declared = new Set([queue, deadLetterQueue(queue)])
  // Only queues that exist: a queue that is being declared cannot be counted yet.
  const made = new Set([queue])
  const processes = new Map<Transport, Process>()
  let isRefusing = true

  const onChannel = async <T>(work: (channel: ConfirmChannel) => Promise<T>): Promise<T> => {
    const connection = await connect(urls[0] as string)
    connection.on('error', () => undefined)
    const channel = await connection.createConfirmChannel()
    channel.on('error', () => undefined)
    try {
      return await work(channel)
    } finally {
      await connection.close().catch(() => undefined)
    }
  }

  const declareAll = () =>
    onChannel(async (channel) => {
      await channel.assertExchange(topology.exchange, 'direct', { durable: true })
      for (const { name, arguments: args } of [topology.deadLetters, topology.source]) {
        await channel.assertQueue(name, { durable: true, arguments: args })
      }
      await channel.bindQueue(deadLetterQueue(queue), topology.exchange, queue)
    })
  await declareAll()

  return {
    queue,
    admin,
    transport(fault, options = {}) {
      const process = new Process({ declared, made }, fault, () => isRefusing)
      const transport = rabbitmq({
        url: urls,
        queue,
        ...(order === 'lane' ? { order, laneOf } : {}),
        confirmTimeout: '5s',
        connect: (url, purpose) => process.connect(url, purpose),
        ...options,
      })
      processes.set(transport, process)
      return transport
    },
    source: () => rabbitmqSource({ url: urls, queue }),
    send: (message) => onChannel((channel) => sendTo(channel, queue, message)),
    async backlog() {
      let ready = 0
      await onChannel(async (channel) => {
        for (const name of made) ready += (await channel.checkQueue(name)).messageCount
      })
      // Ready messages first, then received ones: otherwise a message on its way could be missed.
      const all = [...processes.values()]
      await Promise.all(all.map((process) => process.arrived(queue)))
      return all.reduce((sum, process) => sum + process.inFlight, ready)
    },
    async crash(transport) {
      processes.get(transport)?.die()
      // The broker has noticed it when its number of consumers has dropped.
      for (;;) {
        const left = [...processes.values()].reduce((sum, { consumers }) => sum + consumers, 0)
        const { consumerCount } = await onChannel((channel) => channel.checkQueue(queue))
        if (consumerCount <= left) return
      }
    },
    heal() {
      isRefusing = false
    },
    stealOwnership: (transport) => processes.get(transport)?.cut(),
    dropResponse: (transport) => processes.get(transport)?.dropResponse(),
    retentionMs: () =>
      onChannel(async (channel) => {
        // Not acknowledged: it returns when the connection ends.
        const message = await channel.get(deadLetterQueue(queue))
        const expiration: unknown = message === false ? undefined : message.properties.expiration
        return Number(expiration)
      }),
    cannot: {
      lease: 'the broker takes a message back when its connection ends, not after a time',
      otherGroup: 'each message of a queue goes to one consumer: there are no groups',
    },
    async close() {
      await onChannel(async (channel) => {
        for (const name of declared) await channel.deleteQueue(name)
        await channel.deleteExchange(topology.exchange)
      })
      await admin.close().catch(() => undefined)
    },
  }
}

const LANE = 'x-customer'
const laneOf = ({ properties }: ConsumeMessage) => properties.headers?.[LANE] as string | undefined

async function sendTo(
  channel: ConfirmChannel,
  queue: string,
  { bytes, key, lane, headers = {}, contentType, type }: SentMessage,
): Promise<string> {
  const messageId = randomUUID()
  channel.sendToQueue(queue, Buffer.from(bytes), {
    persistent: true,
    mandatory: true,
    messageId,
    headers: {
      ...headers,
      ...(key === undefined ? {} : { 'redrive-key': key }),
      ...(lane === undefined ? {} : { [LANE]: lane }),
    },
    ...(contentType === undefined ? {} : { contentType }),
    ...(type === undefined ? {} : { type }),
  })
  await channel.waitForConfirms()
  return messageId
}

/** The process of a transport: its deliveries in flight, and ways to end it. */
class Process {
  readonly #queues: { readonly declared: Set<string>; readonly made: Set<string> }
  readonly #fault: TransportFault | undefined
  readonly #isRefusing: () => boolean
  readonly #connections = new Set<ChannelModel>()
  readonly #tags = new Map<Channel, Set<number>>()
  #isAlive = true
  #isResponseDropped = false
  consumers = 0

  constructor(
    queues: { readonly declared: Set<string>; readonly made: Set<string> },
    fault: TransportFault | undefined,
    isRefusing: () => boolean,
  ) {
    this.#queues = queues
    this.#fault = fault
    this.#isRefusing = isRefusing
  }

  get inFlight(): number {
    return [...this.#tags.values()].reduce((sum, tags) => sum + tags.size, 0)
  }

  /** Resolves when everything that the broker had sent has arrived, because it responds in order. */
  async arrived(queue: string): Promise<void> {
    const asked = [...this.#tags.keys()].map((channel) => channel.checkQueue(queue))
    // A closed channel has no messages on their way.
    await Promise.allSettled(asked)
  }

  /** Ends the process like `kill -9`: without a close, and nothing more is sent. */
  die(): void {
    this.#isAlive = false
    this.consumers = 0
    this.#tags.clear()
    for (const { connection } of this.#connections)
      socketOf(connection).destroy(new Error('killed'))
  }

  /** Interrupts the connection, like a cable that is pulled and plugged in again. */
  cut(): void {
    for (const { connection } of this.#connections) socketOf(connection).destroy(new Error('cut'))
  }

  /** Stores the next copy, but loses its confirm. */
  dropResponse(): void {
    this.#isResponseDropped = true
  }

  async connect(url: string, _purpose: Purpose): Promise<ChannelModel> {
    if (!this.#isAlive) throw new Error('This process is dead.')
    const model = await connect(url, { noDelay: true })
    this.#connections.add(model)
    const createChannel = model.createChannel.bind(model)
    model.createChannel = async (options) => this.#watch(await createChannel(options))
    const createConfirmChannel = model.createConfirmChannel.bind(model)
    model.createConfirmChannel = async (options) => {
      const channel = await createConfirmChannel(options)
      this.#watchPublish(channel)
      return channel
    }
    return model
  }

  #watchPublish(channel: ConfirmChannel): void {
    const publish = channel.publish.bind(channel)
    if (this.#fault === 'dies_halfway') {
      channel.publish = (exchange, key, content, options) =>
        publish(exchange, key, content, options, () => this.die())
    }
    if (this.#fault === 'copies_refused') {
      // The broker returns what it cannot route, and confirms it.
      channel.publish = (exchange, key, content, options, confirmed) =>
        publish(exchange, this.#isRefusing() ? `${key}.gone` : key, content, options, confirmed)
    }
    if (this.#fault === undefined) {
      channel.publish = (exchange, key, content, options, confirmed) => {
        const isDropped = this.#isResponseDropped
        this.#isResponseDropped = false
        return publish(exchange, key, content, options, isDropped ? () => undefined : confirmed)
      }
    }
  }

  #watch(channel: Channel): Channel {
    const tags = new Set<number>()
    const forget = () => this.#tags.delete(channel)
    channel.on('close', forget)
    this.#tags.set(channel, tags)
    const { assertQueue, consume, cancel, ack, nack } = bound(channel)
    channel.assertQueue = async (name, options) => {
      const { declared, made } = this.#queues
      if (name !== undefined) declared.add(name)
      const answer = await assertQueue(name, options)
      // Neither dead letters nor confirmations wait for a consumer.
      if (!/\.(?:dlq|replayed)/.test(answer.queue)) made.add(answer.queue)
      return answer
    }
    channel.consume = async (queue, onMessage, options) => {
      const answer = await consume(
        queue,
        (message) => {
          if (message !== null) tags.add(message.fields.deliveryTag)
          onMessage(message)
        },
        options,
      )
      this.consumers += 1
      return answer
    }
    channel.cancel = async (tag) => {
      const answer = await cancel(tag)
      this.consumers -= 1
      return answer
    }
    const settled = (tag: number, allUpTo: boolean | undefined) => {
      for (const one of tags) if (one === tag || (allUpTo === true && one <= tag)) tags.delete(one)
    }
    channel.ack = (message, allUpTo) => {
      if (!this.#isAlive) return
      ack(message, allUpTo)
      settled(message.fields.deliveryTag, allUpTo)
      // An answer to the next request shows that the acknowledgement has arrived.
      if (this.#fault === 'dies_halfway') void channel.prefetch(1).then(() => this.die())
    }
    channel.nack = (message, allUpTo, requeue) => {
      if (!this.#isAlive) return
      nack(message, allUpTo, requeue)
      settled(message.fields.deliveryTag, allUpTo)
    }
    return channel
  }
}

function bound(
  channel: Channel,
): Pick<Channel, 'assertQueue' | 'consume' | 'cancel' | 'ack' | 'nack'> {
  return {
    assertQueue: channel.assertQueue.bind(channel),
    consume: channel.consume.bind(channel),
    cancel: channel.cancel.bind(channel),
    ack: channel.ack.bind(channel),
    nack: channel.nack.bind(channel),
  }
}

/** Returns the socket to break a connection; amqplib does not declare it in its types. */
function socketOf(connection: unknown): Socket {
  return (connection as { stream: Socket }).stream
}
