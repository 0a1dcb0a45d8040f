import { type Duration, FAILURE_CLASSES, parseDuration, RedriveError } from '@redrive/core'
import type { OutboundEvent } from '@redrive/runtime'
import { type ChannelModel, connect } from 'amqplib'
import { gatherWrites } from './connection/socket.ts'
import { deadLetterQueue, type QueueType, quarantineQueue, replayedQueue } from './topology.ts'

export interface RabbitMqOptions {
  /** The address, `amqp://` or `amqps://`. List several for a cluster: if a node is unreachable, the next is tried. */
  readonly url: string | readonly string[]
  /** The queue to consume. */
  readonly queue: string
  /**
   * `'declare'` creates missing queues and exchanges. `'verify'` only checks them, for brokers where an
   * application may not declare. `topologyOf` lists what must exist. Default `'declare'`.
   */
  readonly topology?: 'declare' | 'verify'
  /** Type of the source queue. All queues for failed messages are quorum queues. Default `'quorum'`. */
  readonly queueType?: QueueType
  /** Maximum wait for the broker's confirm of a copy. After it, the outcome is unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
  /** Opens a connection, for custom TLS or credentials. Default: `connect` of amqplib with a heartbeat of 10 s. */
  readonly connect?: Connect
}

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
  readonly isDeclaring: boolean
  readonly queueType: QueueType
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

export function resolveOptions(options: RabbitMqOptions): ResolvedOptions {
  const { topology = 'declare', queueType = 'quorum' } = options
  const problems: string[] = []
  if (topology !== 'declare' && topology !== 'verify') {
    problems.push(`topology: expected 'declare' or 'verify', got '${String(topology)}'`)
  }
  if (queueType !== 'quorum' && queueType !== 'classic') {
    problems.push(`queueType: expected 'quorum' or 'classic', got '${String(queueType)}'`)
  }
  const common = resolveCommon('rabbitmq()', options, problems)
  return { ...common, isDeclaring: topology === 'declare', queueType }
}

export function resolveSourceOptions(options: RabbitMqSourceOptions): ResolvedSourceOptions {
  const { queue, deadLetterQueues, replayTo = 'queue' } = options
  const problems: string[] = []
  if (replayTo !== 'queue' && replayTo !== 'exchange') {
    problems.push(`replayTo: expected 'queue' or 'exchange', got '${String(replayTo)}'`)
  }
  const common = resolveCommon('rabbitmqSource()', options, problems)
  const quarantineQueues = FAILURE_CLASSES.map((name) => quarantineQueue(queue, name))
  return {
    ...common,
    deadLetterQueues: deadLetterQueues ?? [deadLetterQueue(queue), ...quarantineQueues],
    quarantineQueues,
    confirmationQueue: replayedQueue(queue),
    replayTo,
  }
}

export function resolveSinkOptions(options: RabbitMqSinkOptions): ResolvedSinkOptions {
  const { exchange = '', routingKey = ({ type }) => type } = options
  const { queue: _, ...common } = resolveCommon('rabbitmqSink()', { ...options, queue: 'sink' }, [])
  const keyOf = typeof routingKey === 'string' ? () => routingKey : routingKey
  return { ...common, exchange, routingKey: keyOf }
}

function resolveCommon(
  what: string,
  options: Pick<RabbitMqOptions, 'url' | 'queue' | 'confirmTimeout' | 'connect'>,
  problems: string[],
): CommonOptions {
  const { url, queue, confirmTimeout = CONFIRM_TIMEOUT_MS } = options
  const urls = typeof url === 'string' ? [url] : url
  if (urls.length === 0 || !urls.every(isAmqp)) {
    problems.push(
      "url: expected 'amqp://user:password@host:5672' or 'amqps://…', or a list of them",
    )
  }
  if (queue === '') problems.push('queue: expected the name of the source queue')
  const confirmTimeoutMs = parseDuration(confirmTimeout)
  if (confirmTimeoutMs === undefined || confirmTimeoutMs === 0) {
    problems.push(`confirmTimeout: expected a duration such as '10s', got ${confirmTimeout}`)
  }
  if (confirmTimeoutMs === undefined || problems.length > 0) {
    const message = `The options of ${what} are invalid:\n- ${problems.join('\n- ')}`
    throw new RedriveError('POLICY_INVALID', message, { problems })
  }
  const connect = options.connect ?? defaultConnect(`redrive ${queue}`)
  return { urls, queue, confirmTimeoutMs, connect }
}

const isAmqp = (url: string) => /^amqps?:\/\//.test(url)

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
