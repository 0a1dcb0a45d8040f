import { RedriveError } from '@redrive/core'
import type { Channel, ChannelModel } from 'amqplib'
import { answered, closeChannel, messageOf } from './link.ts'
import type { QueueSpec, Topology } from './topology.ts'

/** Makes what every message may need at once; the rest is made when the first one needs it. */
export async function declare(connection: ChannelModel, topology: Topology): Promise<void> {
  const { exchange, source, deadLetters } = topology
  await onItsOwnChannel(connection, async (channel) => {
    await refusable(`exchange ${exchange}`, () =>
      channel.assertExchange(exchange, 'direct', { durable: true }),
    )
    await assertQueue(channel, deadLetters)
    await refusable(`binding of ${deadLetters.name}`, () =>
      channel.bindQueue(deadLetters.name, exchange, source.name),
    )
    await assertQueue(channel, source)
  })
}

/** Whether what every message may need at once is still there. A binding cannot be asked for. */
export async function isThere(connection: ChannelModel, topology: Topology): Promise<boolean> {
  const { exchange, source, deadLetters } = topology
  for (const { name } of [source, deadLetters]) {
    if ((await messageCount(connection, name)) === undefined) return false
  }
  return hasExchange(connection, exchange)
}

/** Makes one queue. */
export async function declareQueue(connection: ChannelModel, spec: QueueSpec): Promise<void> {
  await onItsOwnChannel(connection, (channel) => assertQueue(channel, spec))
}

async function assertQueue(channel: Channel, { name, arguments: args }: QueueSpec): Promise<void> {
  await refusable(`queue ${name}`, () =>
    channel.assertQueue(name, { durable: true, arguments: args }),
  )
}

/** What AMQP says about something that may not be, or is not as we want it: refused, missing, locked, different. */
const REFUSALS: readonly unknown[] = [403, 404, 405, 406]

async function refusable(what: string, make: () => Promise<unknown>): Promise<void> {
  try {
    await make()
  } catch (cause) {
    // Everything else is a broken connection, and is tried again.
    if (!REFUSALS.includes(codeOf(cause))) throw cause
    throw new RedriveError(
      'TOPOLOGY_MISMATCH',
      `The ${what} cannot be declared: ${messageOf(cause)}. If it exists and is different, keep it and use topology: 'verify'; if we may not declare it, have an administrator make what topologyOf lists.`,
      { cause },
    )
  }
}

const codeOf = (error: unknown) => (error as { readonly code?: unknown }).code

/** Looks for everything and names all that is missing at once. */
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
  if (problems.length === 0) return
  throw new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The broker lacks what this consumer needs, and topology: 'verify' does not make it:\n- ${problems.join('\n- ')}\nDeclare them as topologyOf('${source.name}') says, or use topology: 'declare'.`,
    { problems },
  )
}

/** Messages ready in a queue; undefined when there is no such queue. */
export async function messageCount(
  connection: ChannelModel,
  queue: string,
): Promise<number | undefined> {
  const found = await lookFor(connection, (channel) => channel.checkQueue(queue))
  return found?.messageCount
}

async function hasExchange(connection: ChannelModel, name: string): Promise<boolean> {
  return (await lookFor(connection, (channel) => channel.checkExchange(name))) !== undefined
}

/** 404: what AMQP says about something that is not there. */
const NOT_FOUND = 404

async function lookFor<T>(
  connection: ChannelModel,
  look: (channel: Channel) => Promise<T>,
): Promise<T | undefined> {
  try {
    return await answered(onItsOwnChannel(connection, look))
  } catch (error) {
    if (codeOf(error) === NOT_FOUND) return undefined
    throw error
  }
}

/** A refusal closes the channel it happened on, with everything else on it. */
async function onItsOwnChannel<T>(
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
