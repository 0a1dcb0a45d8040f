import { type Duration, FAILURE_CLASSES } from '@redrive/core'
import { type Check, FUNCTION, named, readOptions, type Section } from '@redrive/core/internal'
import type { OutboundEvent } from '@redrive/runtime'
import { type ChannelModel, type ConsumeMessage, connect } from 'amqplib'
import { gatherWrites } from './connection/socket.ts'
import {
  adoptedPrefix,
  deadLetterQueue,
  type QueueType,
  quarantineQueue,
  replayedQueue,
} from './topology.ts'

export interface RabbitMqOptions {
  /** The address, `amqp://` or `amqps://`. List several for a cluster: if a node is unreachable, the next is tried. */
  readonly url: string | readonly string[]
  /** The queue to consume. */
  readonly queue: string
  /**
   * `'declare'` creates missing queues and exchanges. `'adopt'` is for a queue that exists: it is not changed, and
   * only the queues of Redrive are created next to it. `'verify'` only checks them, for brokers where an application
   * may not declare. `topologyOf` lists what must exist. Default `'declare'`.
   */
  readonly topology?: TopologyMode
  /**
   * The text that the names of the queues of Redrive begin with, another one for each queue. Default: the name of
   * the queue; with `adopt` the name of the queue and `.redrive`.
   */
  readonly prefix?: string
  /** Type of the source queue. All queues for failed messages are quorum queues. Default `'quorum'`. */
  readonly queueType?: QueueType
  /**
   * `'lane'` handles the messages of one lane one after the other, even when one fails and is retried. The queue must
   * have a single active consumer (`x-single-active-consumer`); `'declare'` creates it that way. Default `'none'`.
   */
  readonly order?: 'none' | 'lane'
  /**
   * Returns the lane of a message, for example a header with the id of a customer. Messages for which it returns
   * undefined have no order. Default: the header `redrive-key`; all messages without it are one lane.
   */
  readonly laneOf?: (message: ConsumeMessage) => string | undefined
  /** Maximum wait for the broker's confirm of a copy. After it, the outcome is unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
  /** Opens a connection, for custom TLS or credentials. Default: `connect` of amqplib with a heartbeat of 10 s. */
  readonly connect?: Connect
}

export type LaneOf = NonNullable<RabbitMqOptions['laneOf']>

export type TopologyMode = 'declare' | 'adopt' | 'verify'

/** The purpose of a connection. Consuming and publishing never share one. */
export type Purpose = 'consume' | 'publish' | 'drain'
export type Connect = (url: string, purpose: Purpose) => Promise<ChannelModel>

export interface RabbitMqSourceOptions {
  /** The address, as in `RabbitMqOptions`. */
  readonly url: string | readonly string[]
  /** The queue whose dead letters are drained. Replays without a known origin are published to it. */
  readonly queue: string
  /** Queues to drain. Default: the dead-letter queue and the quarantine of `queue`. */
  readonly deadLetterQueues?: readonly string[]
  /** How the consumer treats its queue. With `adopt`, the default of `prefix` is another one. Default `'declare'`. */
  readonly topology?: TopologyMode
  /** The text that the names of the queues of Redrive begin with. Default: as for the consumer. */
  readonly prefix?: string
  /**
   * Destination of a replay. `'queue'`: the queue it was consumed from, so that only the consumer that
   * failed receives it again. `'exchange'`: the exchange it was published to, so that every consumer of
   * the event receives it again. Default `'queue'`.
   */
  readonly replayTo?: 'queue' | 'exchange'
  /** Maximum wait for the broker's confirm of a replay. After it, the outcome is unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
  /** Opens a connection, for custom TLS or credentials. Default: `connect` of amqplib with a heartbeat of 10 s. */
  readonly connect?: Connect
}

export interface RabbitMqSinkOptions {
  /** The address, as in `RabbitMqOptions`. */
  readonly url: string | readonly string[]
  /** The exchange that events are published to; its owner declares it. Default: the default exchange, which routes to the queue named by the routing key. */
  readonly exchange?: string
  /** The routing key, or a function that returns it. Default: the type of the event. */
  readonly routingKey?: string | ((event: OutboundEvent) => string)
  /** Maximum wait for the broker's confirm of an event. After it, the outcome is unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
  /** Opens a connection, for custom TLS or credentials. Default: `connect` of amqplib with a heartbeat of 10 s. */
  readonly connect?: Connect
}

export interface ResolvedSinkOptions extends Omit<CommonOptions, 'queue'> {
  readonly exchange: string
  readonly routingKey: (event: OutboundEvent) => string
}

interface CommonOptions {
  readonly urls: readonly string[]
  readonly queue: string
  readonly confirmTimeoutMs: number
  readonly connect: Connect
}

export interface ResolvedOptions extends CommonOptions {
  readonly topology: TopologyMode
  readonly prefix: string
  readonly queueType: QueueType
  readonly order: 'none' | 'lane'
  readonly laneOf: LaneOf | undefined
}

export interface ResolvedSourceOptions extends CommonOptions {
  readonly deadLetterQueues: readonly string[]
  readonly quarantineQueues: readonly string[]
  readonly confirmationQueue: string
  readonly replayTo: 'queue' | 'exchange'
}

/** 10 s: much longer than a healthy confirm takes, and short enough to report a broker that does not answer. */
const CONFIRM_TIMEOUT_MS = 10_000
/** 10 s: a dead connection is detected after two missed heartbeats. */
const HEARTBEAT_S = 10
const CONNECT_TIMEOUT_MS = 10_000

/** Bounds of a wait for the broker. An hour: a longer one is a mistake in the unit. */
const WAIT = { min: 1, max: 3_600_000 }

export const resolveOptions = (options: RabbitMqOptions): ResolvedOptions =>
  readOptions('rabbitmq()', options, readTransportOptions)

export function readTransportOptions(top: Section): ResolvedOptions {
  const queue = readQueue(top)
  const topology = top.choice('topology', 'declare', ['declare', 'adopt', 'verify'])
  return {
    ...readCommon(top, queue),
    topology,
    prefix: readPrefix(top, queue, topology),
    queueType: top.choice('queueType', 'quorum', ['quorum', 'classic']),
    ...readOrder(top),
  }
}

function readOrder(top: Section): Pick<ResolvedOptions, 'order' | 'laneOf'> {
  const order = top.choice('order', 'none', ['none', 'lane'])
  const laneOf = top.ifGiven<LaneOf>('laneOf', FUNCTION)
  if (laneOf !== undefined && order === 'none') {
    top.problem('laneOf', "is used only with order: 'lane'. Add it, also to the policy.")
  }
  return { order, laneOf }
}

const readPrefix = (top: Section, queue: string, topology: unknown): string =>
  top.ifGiven<string>('prefix', named('the beginning of names of queues')) ??
  (topology === 'adopt' ? adoptedPrefix(queue) : queue)

/** Options of `rabbitmq()` that `rabbitmqSource()` does not use. A program may pass one object to both. */
const OF_TRANSPORT = ['queueType', 'order', 'laneOf']

export function resolveSourceOptions(options: RabbitMqSourceOptions): ResolvedSourceOptions {
  return readOptions('rabbitmqSource()', options, (top) => {
    for (const key of OF_TRANSPORT) top.raw(key)
    const queue = readQueue(top)
    const topology = top.choice('topology', 'declare', ['declare', 'adopt', 'verify'])
    const prefix = readPrefix(top, queue, topology)
    const quarantineQueues = FAILURE_CLASSES.map((name) => quarantineQueue(prefix, name))
    return {
      ...readCommon(top, queue),
      deadLetterQueues: top.ifGiven<readonly string[]>('deadLetterQueues', QUEUES) ?? [
        deadLetterQueue(prefix),
        ...quarantineQueues,
      ],
      quarantineQueues,
      confirmationQueue: replayedQueue(prefix),
      replayTo: top.choice('replayTo', 'queue', ['queue', 'exchange']),
    }
  })
}

export function resolveSinkOptions(options: RabbitMqSinkOptions): ResolvedSinkOptions {
  return readOptions('rabbitmqSink()', options, (top) => {
    const { queue: _, ...common } = readCommon(top, 'sink')
    const key = top.ifGiven<NonNullable<RabbitMqSinkOptions['routingKey']>>('routingKey', KEY)
    const routingKey = typeof key === 'string' ? () => key : (key ?? (({ type }) => type))
    return { ...common, exchange: top.ifGiven<string>('exchange', EXCHANGE) ?? '', routingKey }
  })
}

function readCommon(top: Section, queue: string): CommonOptions {
  const url = top.required<RabbitMqOptions['url']>('url', URLS)
  return {
    urls: typeof url === 'string' ? [url] : url,
    queue,
    confirmTimeoutMs: top.duration('confirmTimeout', CONFIRM_TIMEOUT_MS, WAIT),
    connect: top.ifGiven<Connect>('connect', FUNCTION) ?? defaultConnect(`redrive ${queue}`),
  }
}

const readQueue = (top: Section): string => top.required('queue', named('the name of a queue'))

const isAmqp = (url: unknown) => typeof url === 'string' && /^amqps?:\/\//.test(url)

const isList = (value: unknown, isItem: (item: unknown) => boolean) =>
  Array.isArray(value) && value.length > 0 && value.every(isItem)

const URLS: Check = {
  isValid: (value) => isAmqp(value) || isList(value, isAmqp),
  expected: "'amqp://user:password@host:5672' or 'amqps://…', or a list of them",
  isSecret: true,
  variables: ['RABBITMQ_URL', 'AMQP_URL'],
}

const QUEUES: Check = {
  isValid: (value) => isList(value, (item) => typeof item === 'string' && item !== ''),
  expected: "a list of queues such as ['orders.dlq']",
}

const KEY: Check = {
  isValid: (value) => typeof value === 'string' || typeof value === 'function',
  expected: 'a routing key, or a function that returns it',
}

const EXCHANGE: Check = {
  isValid: (value) => typeof value === 'string',
  expected: "the name of an exchange, or '' for the default exchange",
}

function defaultConnect(name: string): Connect {
  return async (url, purpose) => {
    const model = await connect(withHeartbeat(url), {
      // Small frames must not wait for each other: an acknowledgement allows the next delivery.
      noDelay: true,
      keepAlive: true,
      timeout: CONNECT_TIMEOUT_MS,
      clientProperties: { connection_name: `${name} (${purpose})` },
    })
    return gatherWrites(model)
  }
}

/** Adds the heartbeat. The broker's default is 60 s, and a dead connection would be detected after 120 s. */
function withHeartbeat(url: string): string {
  const parsed = new URL(url)
  if (!parsed.searchParams.has('heartbeat')) {
    parsed.searchParams.set('heartbeat', String(HEARTBEAT_S))
  }
  return parsed.href
}
