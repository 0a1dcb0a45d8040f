import { RedriveError } from '@redrive/core'
import type { Channel, ChannelModel } from 'amqplib'
import { answered, closeChannel, messageOf } from './connection/connection.ts'
import { codeOf, isRefusal } from './refusal-codes.ts'
import type { QueueSpec, Topology } from './topology.ts'

/** Declares what every message may need immediately. The rest is declared when a message first needs it. */
export async function declare(connection: ChannelModel, topology: Topology): Promise<void> {
  const { exchange, source, deadLetters } = topology
  await onSeparateChannel(connection, async (channel) => {
    await explainRefusal(`exchange ${exchange}`, () =>
      channel.assertExchange(exchange, 'direct', { durable: true }),
    )
    await assertQueue(channel, deadLetters)
    await explainRefusal(`binding of ${deadLetters.name}`, () =>
      channel.bindQueue(deadLetters.name, exchange, source.name),
    )
    await assertQueue(channel, source)
  })
}

/** Returns whether everything that `declare` creates still exists, except bindings: AMQP cannot query them. */
export async function isThere(connection: ChannelModel, topology: Topology): Promise<boolean> {
  const { exchange, source, deadLetters } = topology
  for (const { name } of [source, deadLetters]) {
    if ((await messageCount(connection, name)) === undefined) return false
  }
  return hasExchange(connection, exchange)
}

/** Declares one queue. */
export async function declareQueue(connection: ChannelModel, spec: QueueSpec): Promise<void> {
  await onSeparateChannel(connection, (channel) => assertQueue(channel, spec))
}

async function assertQueue(channel: Channel, { name, arguments: args }: QueueSpec): Promise<void> {
  await explainRefusal(`queue ${name}`, () =>
    channel.assertQueue(name, { durable: true, arguments: args }),
  )
}

async function explainRefusal(what: string, make: () => Promise<unknown>): Promise<void> {
  try {
    await make()
  } catch (cause) {
    // Every other error is a broken connection, and is retried.
    if (!isRefusal(cause)) throw cause
    throw new RedriveError(
      'TOPOLOGY_MISMATCH',
      `The ${what} cannot be declared: ${messageOf(cause)}. If it exists with other arguments, keep it and use topology: 'verify'. If the RabbitMQ user has no permission to declare it, ask an administrator to create what topologyOf() returns.`,
      { cause },
    )
  }
}

/** Checks that everything exists. The error lists all missing queues and exchanges. */
export async function verify(connection: ChannelModel, topology: Topology): Promise<void> {
  const problems: string[] = []
  const { exchange, source, deadLetters, later } = topology
  for (const { name } of [source, deadLetters, ...later]) {
    if ((await messageCount(connection, name)) === undefined) {
      problems.push(`queue ${name} is missing`)
    }
  }
  if (!(await hasExchange(connection, exchange))) {
    problems.push(`exchange ${exchange} is missing`)
  }
  if (problems.length === 0) return refuseStream(connection, source.name)
  throw new RedriveError(
    'TOPOLOGY_MISMATCH',
    `Queues or exchanges of this consumer are missing, and topology: 'verify' does not declare them:\n- ${problems.join('\n- ')}\nCreate what topologyOf('${source.name}', '${source.arguments['x-queue-type']}') returns, or use topology: 'declare'.`,
    { problems },
  )
}

/**
 * Rejects for a stream. The broker accepts the declaration of a queue that exists with the same arguments, so this
 * changes nothing. A user without the permission to declare learns nothing: then the check is left out.
 */
async function refuseStream(connection: ChannelModel, queue: string): Promise<void> {
  try {
    await onSeparateChannel(connection, (channel) =>
      channel.assertQueue(queue, { durable: true, arguments: { 'x-queue-type': 'stream' } }),
    )
  } catch (error) {
    if (isRefusal(error)) return
    throw error
  }
  throw new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The queue ${queue} is a stream. A stream keeps its messages: they cannot be acknowledged, retried or removed one by one. Consume a quorum queue or a classic queue.`,
  )
}

/** Returns the number of ready messages in a queue, or undefined when the queue does not exist. */
export async function messageCount(
  connection: ChannelModel,
  queue: string,
): Promise<number | undefined> {
  const found = await checkExistence(connection, (channel) => channel.checkQueue(queue))
  return found?.messageCount
}

async function hasExchange(connection: ChannelModel, name: string): Promise<boolean> {
  return (await checkExistence(connection, (channel) => channel.checkExchange(name))) !== undefined
}

/** 404: the AMQP reply code for a missing queue or exchange. */
const NOT_FOUND = 404

async function checkExistence<T>(
  connection: ChannelModel,
  check: (channel: Channel) => Promise<T>,
): Promise<T | undefined> {
  try {
    return await answered(onSeparateChannel(connection, check))
  } catch (error) {
    if (codeOf(error) === NOT_FOUND) return undefined
    throw error
  }
}

/** Runs `work` on a separate channel, because a rejected request closes the channel it was sent on. */
async function onSeparateChannel<T>(
  connection: ChannelModel,
  work: (channel: Channel) => Promise<T>,
): Promise<T> {
  const channel = await connection.createChannel()
  let isClosed = false
  channel.on('error', () => undefined)
  channel.on('close', () => {
    isClosed = true
  })
  try {
    return await work(channel)
  } finally {
    if (!isClosed) await closeChannel(channel)
  }
}
