import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import {
  type Awaitable,
  type Enactment,
  onEvent,
  type Receiver,
  type RedriveEvent,
} from '@redrive/runtime'
import { until, type WaitOptions } from '@redrive/testing'
import {
  type Channel,
  type ChannelModel,
  type ConfirmChannel,
  connect,
  type GetMessage,
  type Options,
} from 'amqplib'
import {
  type Connect,
  type Purpose,
  type RabbitMqDelivery,
  type RabbitMqOptions,
  type RabbitMqSource,
  type RabbitMqSourceOptions,
  type RabbitMqTransport,
  rabbitmq,
  rabbitmqSource,
  topologyOf,
} from '../src/index.ts'

export { deadLetter, failedCycle, giveBack, quarantine, retryIn } from '@redrive/dev-support'
export { until, within } from '@redrive/testing'

// ---- connections ------------------------------------------------------------------------------

/** A connection that the transport opened, and its channels. */
export interface Line {
  readonly purpose: Purpose
  readonly model: ChannelModel
  readonly channels: Channel[]
}

export interface Hooks {
  /** Called before connecting; throws to reject the connection. */
  readonly onConnect?: (purpose: Purpose, lines: readonly Line[]) => Promise<void> | void
  readonly onChannel?: (
    channel: Channel,
    line: Line,
    lines: readonly Line[],
  ) => Promise<void> | void
  readonly onConfirmChannel?: (channel: ConfirmChannel, line: Line) => Promise<void> | void
}

/** Connects like the transport, and records the connections. */
export function watched(lines: Line[], hooks: Hooks = {}): Connect {
  return async (url, purpose) => {
    await hooks.onConnect?.(purpose, lines)
    const model = await connect(url, { noDelay: true })
    const line: Line = { purpose, model, channels: [] }
    lines.push(line)
    const { createChannel, createConfirmChannel } = {
      createChannel: model.createChannel.bind(model),
      createConfirmChannel: model.createConfirmChannel.bind(model),
    }
    model.createChannel = async (options) => {
      const channel = await createChannel(options)
      line.channels.push(channel)
      await hooks.onChannel?.(channel, line, lines)
      return channel
    }
    model.createConfirmChannel = async (options) => {
      const channel = await createConfirmChannel(options)
      line.channels.push(channel)
      await hooks.onConfirmChannel?.(channel, line)
      return channel
    }
    return model
  }
}

/** Returns the newest connection for that purpose. */
export function lineOf(lines: readonly Line[], purpose: Purpose): Line {
  const line = lines.findLast((one) => one.purpose === purpose)
  if (line === undefined) throw new Error(`no connection for '${purpose}' yet`)
  return line
}

/** Returns the socket, which amqplib does not declare in its types. */
export function socketOf({ connection }: ChannelModel): Socket {
  return (connection as unknown as { stream: Socket }).stream
}

/** A frame without its end mark: the broker closes the connection with code 501. */
const BROKEN_FRAME = Buffer.from([1, 0, 1, 0, 0, 0, 1, 0, 0])

export const closedByBroker = ({ model }: Line): boolean => socketOf(model).write(BROKEN_FRAME)

export const isOpen = ({ model }: Line): boolean => !socketOf(model).writableEnded

// ---- receiving --------------------------------------------------------------------------------

export class Inbox implements Receiver<RabbitMqDelivery> {
  readonly deliveries: RabbitMqDelivery[] = []
  readonly lostOnes: RabbitMqDelivery[] = []
  readonly arrivedAt: number[] = []

  deliver(delivery: RabbitMqDelivery): void {
    this.deliveries.push(delivery)
    this.arrivedAt.push(performance.now())
  }

  lost(delivery: RabbitMqDelivery): void {
    this.lostOnes.push(delivery)
  }

  get bodies(): readonly string[] {
    return this.deliveries.map(({ bytes }) => Buffer.from(bytes).toString())
  }

  /** Waits until this number of deliveries has arrived, and returns the last one. */
  async nth(count: number, options?: WaitOptions): Promise<RabbitMqDelivery> {
    const accept = (seen: number) => seen >= count
    await until(`${count} deliveries`, () => this.deliveries.length, { ...options, accept })
    return this.deliveries[count - 1] as RabbitMqDelivery
  }
}

export interface Started {
  readonly transport: RabbitMqTransport
  readonly inbox: Inbox
  readonly lines: Line[]
}

/** A separate queue on the broker, with helpers for a test. */
export class Rig {
  readonly queue: string
  readonly #url: string
  readonly #admin: ChannelModel
  readonly #ends: (() => Promise<unknown>)[] = []
  readonly #queues = new Set<string>()
  readonly #exchanges = new Set<string>()

  private constructor(url: string, admin: ChannelModel) {
    this.#url = url
    this.#admin = admin
    this.queue = `rig-${randomUUID()}`
    this.owns(this.queue)
  }

  static async open(url: string): Promise<Rig> {
    const admin = await connect(url)
    admin.on('error', () => undefined)
    return new Rig(url, admin)
  }

  get url(): string {
    return this.#url
  }

  /** Deletes everything that belongs to that source at the end. */
  owns(queue: string): string {
    const { source, deadLetters, later, exchange } = topologyOf(queue, 'quorum')
    for (const { name } of [source, deadLetters, ...later]) this.#queues.add(name)
    this.#exchanges.add(exchange)
    return queue
  }

  /** Runs when the rig is cleared, last one first. */
  atEnd(work: () => Promise<unknown>): void {
    this.#ends.unshift(work)
  }

  async onChannel<T>(work: (channel: ConfirmChannel) => Promise<T>): Promise<T> {
    const channel = await this.#admin.createConfirmChannel()
    let isClosed = false
    channel.on('error', () => undefined)
    channel.on('close', () => {
      isClosed = true
    })
    try {
      return await work(channel)
    } finally {
      if (!isClosed) await channel.close()
    }
  }

  async makeQueue(name: string, args: Readonly<Record<string, unknown>> = {}): Promise<void> {
    this.#queues.add(name)
    await this.onChannel((channel) =>
      channel.assertQueue(name, { durable: true, arguments: { ...args } }),
    )
  }

  async makeExchange(name: string, type: string): Promise<void> {
    this.#exchanges.add(name)
    await this.onChannel((channel) => channel.assertExchange(name, type, { durable: true }))
  }

  /** Declares everything a source needs, like an administrator. */
  async makeTopology(
    except: readonly string[] = [],
    order: 'none' | 'lane' = 'none',
  ): Promise<void> {
    const topology = topologyOf(this.queue, 'quorum', this.queue, order)
    const { source, deadLetters, later, exchange } = topology
    await this.makeExchange(exchange, 'direct')
    for (const { name, arguments: args } of [deadLetters, source, ...later]) {
      if (!except.includes(name)) await this.makeQueue(name, args)
    }
    if (except.includes(deadLetters.name)) return
    await this.onChannel((channel) => channel.bindQueue(deadLetters.name, exchange, this.queue))
  }

  deleteQueue(name: string): Promise<unknown> {
    return this.onChannel((channel) => channel.deleteQueue(name))
  }

  send(body: string | Buffer, options: Options.Publish = {}): Promise<void> {
    return this.publish('', this.queue, body, options)
  }

  publish(
    exchange: string,
    routingKey: string,
    body: string | Buffer,
    options: Options.Publish = {},
  ): Promise<void> {
    return this.onChannel(async (channel) => {
      channel.publish(exchange, routingKey, Buffer.from(body), { persistent: true, ...options })
      await channel.waitForConfirms()
    })
  }

  /** Returns the number of ready messages; undefined when the queue is missing. */
  async count(queue: string): Promise<number | undefined> {
    try {
      const { messageCount } = await this.onChannel((channel) => channel.checkQueue(queue))
      return messageCount
    } catch (error) {
      if ((error as { code?: unknown }).code === 404) return undefined
      throw error
    }
  }

  /** Takes the first message of a queue. */
  async take(queue: string): Promise<GetMessage> {
    const message = await this.onChannel((channel) => channel.get(queue, { noAck: true }))
    if (message === false) throw new Error(`nothing in ${queue}`)
    return message
  }

  transport(options: Partial<RabbitMqOptions> = {}): RabbitMqTransport {
    const transport = rabbitmq({ url: this.#url, queue: this.queue, ...options })
    this.atEnd(() => transport.close())
    return transport
  }

  /** Returns a transport that receives. */
  async start(
    options: Partial<RabbitMqOptions> & { readonly hooks?: Hooks; readonly limit?: number } = {},
  ): Promise<Started> {
    const { hooks, limit = 100, ...rest } = options
    const lines: Line[] = []
    const transport = this.transport({ connect: watched(lines, hooks), ...rest })
    const inbox = new Inbox()
    await transport.open()
    transport.limit(limit)
    await transport.receive(inbox)
    return { transport, inbox, lines }
  }

  source(options: Partial<RabbitMqSourceOptions> = {}): RabbitMqSource {
    const source = rabbitmqSource({ url: this.#url, queue: this.queue, ...options })
    this.atEnd(() => source.close())
    return source
  }

  /** Collects the events of this queue from now on. */
  events(): RedriveEvent[] {
    const events: RedriveEvent[] = []
    const off = onEvent((event) => {
      if ('source' in event && event.source === this.queue) events.push(event)
    })
    this.atEnd(() => Promise.resolve(off()))
    return events
  }

  async clear(): Promise<void> {
    for (const end of this.#ends) await end()
    await this.onChannel(async (channel) => {
      for (const name of this.#queues) await channel.deleteQueue(name)
      for (const name of this.#exchanges) await channel.deleteExchange(name)
    })
    await this.#admin.close()
  }
}

/** Runs the test on a separate rig. */
export const onRig = (url: string, test: (rig: Rig) => Promise<void>) => async () => {
  const rig = await Rig.open(url)
  try {
    await test(rig)
  } finally {
    await rig.clear()
  }
}

/** Repeats the enactment until it is done; each attempt may use another connection. */
export const handedOff = (enact: () => Awaitable<Enactment>): Promise<unknown> =>
  until('the hand-off is done', async () => (await enact()).kind === 'done')
