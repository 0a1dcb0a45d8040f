import { RedriveError } from '@redrive/core'
import type { Channel, ChannelModel } from 'amqplib'
import { answered, messageOf } from './connection/connection.ts'
import { onSeparateChannel } from './connection/separate-channel.ts'
import type { TopologyMode } from './options.ts'
import { codeOf, FORBIDDEN, isRefusal } from './refusal-codes.ts'
import { refuseAutoDelete } from './refuse-auto-delete.ts'
import { refuseStream } from './refuse-stream.ts'
import { requireSingleConsumer } from './require-single-consumer.ts'
import { type QueueSpec, SINGLE_ACTIVE_CONSUMER, type Topology } from './topology.ts'

/** A queue, exchange or binding, and whether this call created it. Bindings count as new: AMQP cannot query them. */
export interface DeclaredPart {
  readonly kind: 'queue' | 'exchange' | 'binding'
  readonly name: string
  readonly isNew: boolean
}

/**
 * Declares what every message may need immediately, or `all`: then nothing is left to declare when a message first
 * needs it. What exists comes first: if the broker refuses one of them, nothing was created.
 */
export async function declare(
  connection: ChannelModel,
  topology: Topology,
  mode: TopologyMode,
  which: 'first' | 'all' = 'first',
): Promise<readonly DeclaredPart[]> {
  if (mode === 'adopt') await requireAdopted(connection, topology.source)
  const found: (Declaration & { readonly isNew: boolean })[] = []
  for (const declaration of declarationsOf(topology, mode, which))
    found.push({ ...declaration, isNew: !(await doesExist(connection, declaration)) })
  for (const { make, isNew } of found) if (!isNew) await answered(make(connection))
  for (const { make, isNew } of found) if (isNew) await answered(make(connection))
  return found.map(({ kind, name, isNew }) => ({ kind, name, isNew }))
}

interface Declaration extends Pick<DeclaredPart, 'kind' | 'name'> {
  readonly make: (connection: ChannelModel) => Promise<void>
}

/** The source is the last one: some brokers fail when a queue is declared before its dead-letter exchange. */
function declarationsOf(
  topology: Topology,
  mode: TopologyMode,
  which: 'first' | 'all',
): readonly Declaration[] {
  const { exchange, source, deadLetters, later } = topology
  const queueOf = (spec: QueueSpec): Declaration => ({
    kind: 'queue',
    name: spec.name,
    make: (connection) => declareQueue(connection, spec, mode),
  })
  const own = [deadLetters, ...(which === 'all' ? later : [])].map(queueOf)
  if (mode === 'adopt') return own
  const make = (work: (channel: Channel) => Promise<void>) => (connection: ChannelModel) =>
    onSeparateChannel(connection, work)
  return [
    {
      kind: 'exchange',
      name: exchange,
      make: make((channel) => assertExchange(channel, exchange)),
    },
    ...own,
    { kind: 'binding', name: deadLetters.name, make: make((channel) => bind(channel, topology)) },
    queueOf(source),
  ]
}

async function doesExist(connection: ChannelModel, { kind, name }: Declaration): Promise<boolean> {
  if (kind === 'exchange') return hasExchange(connection, name)
  return kind === 'queue' && (await messageCount(connection, name)) !== undefined
}

/** Checks that an adopted queue exists and can be consumed. */
async function requireAdopted(connection: ChannelModel, source: QueueSpec): Promise<void> {
  const queue = source.name
  if ((await messageCount(connection, queue)) === undefined) {
    throw new RedriveError(
      'TOPOLOGY_MISMATCH',
      `The queue ${queue} does not exist, and topology: 'adopt' does not create it. Create it, or use topology: 'declare'.`,
    )
  }
  await checkSource(connection, source)
}

/** Checks that a queue which this process did not create can be consumed as requested. */
export async function checkSource(connection: ChannelModel, source: QueueSpec): Promise<void> {
  await refuseStream(connection, source.name)
  await refuseAutoDelete(connection, source.name)
  if (isOrdered(source)) await requireSingleConsumer(connection, source)
}

const isOrdered = (source: QueueSpec) => SINGLE_ACTIVE_CONSUMER in source.arguments

/** Returns whether everything that `declare` creates still exists, except bindings: AMQP cannot query them. */
export async function isThere(
  connection: ChannelModel,
  { exchange, source, deadLetters }: Topology,
  mode: TopologyMode,
): Promise<boolean> {
  for (const { name } of [source, deadLetters]) {
    if ((await messageCount(connection, name)) === undefined) return false
  }
  return mode === 'adopt' || hasExchange(connection, exchange)
}

/** Declares one queue. An administrator may have created it for an application that may not declare queues. */
export async function declareQueue(
  connection: ChannelModel,
  spec: QueueSpec,
  mode: TopologyMode,
): Promise<void> {
  try {
    await onSeparateChannel(connection, (channel) => assertQueue(channel, spec, mode))
  } catch (error) {
    const isForbidden = codeOf((error as Error).cause) === FORBIDDEN
    const exists = isForbidden && (await messageCount(connection, spec.name)) !== undefined
    if (mode !== 'adopt' || !exists) throw error
  }
}

function bind(channel: Channel, { exchange, source, deadLetters }: Topology): Promise<void> {
  return explainRefusal(`binding of ${deadLetters.name}`, () =>
    channel.bindQueue(deadLetters.name, exchange, source.name),
  )
}

function assertExchange(channel: Channel, exchange: string): Promise<void> {
  return explainRefusal(`exchange ${exchange}`, () =>
    channel.assertExchange(exchange, 'direct', { durable: true }),
  )
}

async function assertQueue(
  channel: Channel,
  { name, arguments: args }: QueueSpec,
  mode: TopologyMode,
): Promise<void> {
  await explainRefusal(
    `queue ${name}`,
    () => channel.assertQueue(name, { durable: true, arguments: args }),
    mode,
  )
}

async function explainRefusal(
  what: string,
  make: () => Promise<unknown>,
  mode: TopologyMode = 'declare',
): Promise<void> {
  try {
    await make()
  } catch (cause) {
    // Every other error is a broken connection, and is retried.
    if (!isRefusal(cause)) throw cause
    const advice = mode === 'adopt' ? OTHER_PREFIX : ADOPT
    throw new RedriveError(
      'TOPOLOGY_MISMATCH',
      `The ${what} cannot be declared: ${messageOf(cause)}. ${advice} ${askAdministrator(mode)}`,
      { cause },
    )
  }
}

const askAdministrator = (mode: TopologyMode) =>
  `If the RabbitMQ user has no permission to declare it, ask an administrator to create all queues with redrive topology apply ADDRESS --queue NAME${mode === 'adopt' ? ' --adopt' : ''} (and --prefix, --type and --order, if you set prefix, queueType or order)${mode === 'adopt' ? '' : ", and use topology: 'verify'"}.`

const ADOPT =
  "If the queue already exists, add topology: 'adopt': Redrive then leaves it as it is (for a classic queue, also add queueType: 'classic')."
const OTHER_PREFIX =
  'If it exists and is not a queue of Redrive, or belongs to another consumer, set another prefix.'

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
  if (problems.length === 0) return
  throw new RedriveError(
    'TOPOLOGY_MISMATCH',
    `Queues or exchanges of this consumer are missing, and topology: 'verify' does not declare them:\n- ${problems.join('\n- ')}\nCreate what topologyOf('${source.name}', '${source.arguments['x-queue-type']}'${furtherParameters(topology)}) returns, or use topology: 'declare'.`,
    { problems },
  )
}

/** Returns the parameters of `topologyOf` that are not the default, as code. */
function furtherParameters({ prefix, source }: Topology): string {
  if (isOrdered(source)) return `, '${prefix}', 'lane'`
  return prefix === source.name ? '' : `, '${prefix}'`
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
