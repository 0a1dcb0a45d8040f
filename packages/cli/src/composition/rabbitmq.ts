import type { adoptedPrefix, applyTopology, topologyOf } from '@redrive/rabbitmq'
import type { DrainedDeadLetter, DrainedQueue } from '@redrive/runtime'
import { CommandError, EXIT } from '../exit.ts'
import type { PeekTarget } from '../peek/read-queue.ts'
import type { Certificates } from '../server/certificates.ts'

export type { DeclaredPart, QueueSpec, QueueType, Topology } from '@redrive/rabbitmq'

/** Loads the topology of consumers of RabbitMQ. */
export async function loadRabbitMqTopology(): Promise<RabbitMqTopology> {
  const {
    adoptedPrefix: prefix,
    applyTopology: apply,
    topologyOf: describe,
  } = await import('@redrive/rabbitmq')
  return { adoptedPrefix: prefix, applyTopology: apply, topologyOf: describe }
}

interface RabbitMqTopology {
  readonly adoptedPrefix: typeof adoptedPrefix
  readonly applyTopology: typeof applyTopology
  readonly topologyOf: typeof topologyOf
}

export async function openRabbitMq(
  { href }: URL,
  queue: string,
  tls: Certificates | undefined,
): Promise<PeekTarget> {
  const { rabbitmqSource } = await import('@redrive/rabbitmq')
  const { isQuorum, major } = await queueAt(href, queue, tls)
  const source = rabbitmqSource({
    url: href,
    queue,
    deadLetterQueues: [queue],
    ...(tls === undefined ? {} : { connect: (url: string) => connectWith(url, tls) }),
  })
  return {
    source,
    trace: isQuorum
      ? 'This is a quorum queue: RabbitMQ counts each peek on each message. Do not peek often.'
      : 'RabbitMQ marks the messages that were read as redelivered.',
    ...(isQuorum
      ? { refuseSome: wouldReorder, refuseMore: (first) => nearLimit(first, major) }
      : {}),
    close: () => source.close(),
  }
}

/** Refuses to read a part: a quorum queue without a delivery limit puts returned messages at its end. */
function wouldReorder(limit: number, total: number): string | undefined {
  if (total <= limit) return undefined
  return `This is a quorum queue with ${total} messages, and messages that are read may move to its end. To keep the order, read all of them: --limit ${total}.`
}

/** 15 of the 20 returns that RabbitMQ 4 allows by default. It counts only crashes, and ours would add one. */
const NEAR_LIMIT = 15
/** Before RabbitMQ 4 each peek counts, and the limit is not visible here. Users set no lower limit than 2. */
const NEAR_UNKNOWN_LIMIT = 2

/** Refuses to read more near the limit: a quorum queue drops or dead-letters messages beyond it. */
function nearLimit({ delivery }: DrainedDeadLetter, major: number): string | undefined {
  const returned = delivery.deliveryCount - 1
  if (returned < (major >= 4 ? NEAR_LIMIT : NEAR_UNKNOWN_LIMIT)) return undefined
  return `The first message was already returned ${returned} times, and a quorum queue drops or dead-letters messages beyond its delivery limit. No more messages were read.`
}

/** AMQP code for a feature that the broker does not support. */
const NOT_IMPLEMENTED = 540
/** AMQP code for a queue that does not exist. */
const NOT_FOUND = 404

/**
 * Returns whether a queue is a quorum queue. AMQP has no request for this. But a quorum queue rejects a
 * consumer on a channel with a shared prefetch, before it delivers a message. Any other queue accepts the
 * consumer, and later puts its deliveries back in their old position. The rejection closes the connection,
 * so this function opens a separate one.
 */
async function queueAt(
  url: string,
  queue: string,
  tls: Certificates | undefined,
): Promise<{ isQuorum: boolean; major: number }> {
  const model = await connectWith(url, tls)
  const { serverProperties } = model.connection as unknown as Connection
  const major = Number.parseInt(serverProperties?.version ?? '', 10)
  let connectionError: unknown
  let channelError: unknown
  model.on('error', ({ code }: AmqpError) => {
    connectionError = code
  })
  try {
    const channel = await model.createChannel()
    channel.on('error', ({ code }: AmqpError) => {
      channelError = code
    })
    await channel.prefetch(1, true)
    await channel.consume(queue, () => undefined)
  } catch {
    // The error events above have already delivered the code. Any other error also fails the peek itself,
    // which then reports it.
  }
  if (connectionError === undefined) await model.close()
  if (channelError === NOT_FOUND) throw noQueue(url, queue)
  return { isQuorum: connectionError === NOT_IMPLEMENTED, major }
}

/** 10 s, as other connections of Redrive. */
const CONNECT_TIMEOUT_MS = 10_000

async function connectWith(url: string, tls: Certificates | undefined) {
  const { connect } = await import('amqplib')
  return connect(url, {
    ...tls,
    timeout: CONNECT_TIMEOUT_MS,
    clientProperties: { connection_name: 'redrive peek' },
  })
}

interface AmqpError {
  readonly code?: unknown
}

function noQueue(url: string, queue: string): CommandError {
  const vhost = decodeURIComponent(new URL(url).pathname.slice(1)) || '/'
  return new CommandError(
    EXIT.notFound,
    `Queue "${queue}" does not exist in virtual host "${vhost}". Check the name and the address.`,
  )
}

/** Properties of the broker that are missing in the types of the client library. */
interface Connection {
  readonly serverProperties?: { readonly version?: string }
}

/** Where a consumer of RabbitMQ keeps its dead letters. */
export interface DeadLetterPlace {
  readonly url: string
  readonly queue: string
  readonly deadLetterQueues?: readonly string[]
  /** The same value as in the consumer. Default `declare`. */
  readonly topology?: 'declare' | 'adopt'
}

/** Returns the dead-letter queues of a consumer and their messages. It takes no message and creates nothing. */
export async function countDeadLetters(place: DeadLetterPlace): Promise<readonly DrainedQueue[]> {
  const { rabbitmqSource } = await import('@redrive/rabbitmq')
  const source = rabbitmqSource(place)
  try {
    return await source.queues()
  } finally {
    await source.close()
  }
}
