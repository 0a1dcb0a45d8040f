import { type Duration, FAILURE_CLASSES, parseDuration, RedriveError } from '@redrive/core'
import type { OutboundEvent } from '@redrive/runtime'
import { type ChannelModel, connect } from 'amqplib'
import { gatherWrites } from './socket.ts'
import { deadLetterQueue, type QueueType, quarantineQueue, replayedQueue } from './topology.ts'

export interface RabbitMqOptions {
  /** `amqp://` or `amqps://`. Several for a cluster: when one node is gone, the next is tried. */
  readonly url: string | readonly string[]
  /** The queue to consume. */
  readonly queue: string
  /**
   * `'declare'` makes what is missing; `'verify'` only looks, for brokers where an application may
   * not declare. `topologyOf` says what must be there. Default `'declare'`.
   */
  readonly topology?: 'declare' | 'verify'
  /** Of the source queue; everything that holds failed messages is a quorum queue. Default `'quorum'`. */
  readonly queueType?: QueueType
  /** How long a copy may stay unconfirmed before it counts as unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
  /** How to connect: your own TLS or credentials. Default: `connect` of amqplib, heartbeat 10 s. */
  readonly connect?: Connect
}

/** What the connection is for; consuming and publishing never share one. */
export type Purpose = 'consume' | 'publish' | 'drain'
export type Connect = (url: string, purpose: Purpose) => Promise<ChannelModel>

export interface RabbitMqSourceOptions {
  /** As for `rabbitmq`. */
  readonly url: string | readonly string[]
  /** The queue whose dead letters these are; a replay that does not know better goes there. */
  readonly queue: string
  /** Queues to drain. Default: the dead-letter queue and the quarantine of `queue`. */
  readonly deadLetterQueues?: readonly string[]
  /**
   * Where a replay goes: straight to the `'queue'` it was consumed from, so that only the consumer
   * that failed sees it again, or through the `'exchange'` it was published to, with every other
   * consumer of that event. Default `'queue'`.
   */
  readonly replayTo?: 'queue' | 'exchange'
  readonly confirmTimeout?: Duration
  readonly connect?: Connect
}

export interface RabbitMqSinkOptions {
  /** As for `rabbitmq`. */
  readonly url: string | readonly string[]
  /** Where events are published; declared by whoever owns it. Default: the default exchange, which routes to the queue of that name. */
  readonly exchange?: string
  /** Default: the type of the event. */
  readonly routingKey?: string | ((event: OutboundEvent) => string)
  readonly confirmTimeout?: Duration
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

/** 10 s: far beyond any healthy confirm, short enough that a silent broker is noticed by a person on call. */
const CONFIRM_TIMEOUT_MS = 10_000
/** 10 s: a dead connection is noticed after two of them missed, before people notice. */
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
    const message = `${what} cannot be set up:\n- ${problems.join('\n- ')}`
    throw new RedriveError('POLICY_INVALID', message, { problems })
  }
  const connect = options.connect ?? connecting(`redrive ${queue}`)
  return { urls, queue, confirmTimeoutMs, connect }
}

const isAmqp = (url: string) => /^amqps?:\/\//.test(url)

function connecting(name: string): Connect {
  return async (url, purpose) => {
    const model = await connect(withHeartbeat(url), {
      // Small frames must not wait for each other: an acknowledgement frees a place in the window.
      noDelay: true,
      keepAlive: true,
      timeout: CONNECT_TIMEOUT_MS,
      clientProperties: { connection_name: `${name} (${purpose})` },
    })
    return gatherWrites(model)
  }
}

/** The broker's own suggestion is a minute, which means two until a dead connection is noticed. */
function withHeartbeat(url: string): string {
  const parsed = new URL(url)
  if (!parsed.searchParams.has('heartbeat')) {
    parsed.searchParams.set('heartbeat', String(HEARTBEAT_S))
  }
  return parsed.href
}
