import { type Channel, type ChannelModel, connect, type GetMessage } from 'amqplib'
import type { FoundMessage, Place } from '../evidence/evidence.ts'
import { isAsSent } from '../evidence/message.ts'
import { repeated } from '../harness/wait.ts'

/**
 * The broker as an administrator sees it, with plain amqplib and the management API. It uses no
 * code of the transport under test, so a mistake there stays visible.
 */
export interface Broker {
  readonly urls: readonly string[]
  readonly managementUrls: readonly string[]
}

export function brokerAt(urls: readonly string[]): Broker {
  return {
    urls: urls.filter((url) => url.startsWith('amqp:')),
    managementUrls: urls.filter((url) => url.startsWith('http:')),
  }
}

/** Tries the nodes in turn, because any of them may be down. */
async function atAnyNode<T>(
  addresses: readonly string[],
  work: (address: string) => Promise<T>,
): Promise<T> {
  const problems: unknown[] = []
  for (const address of addresses) {
    try {
      return await work(address)
    } catch (error) {
      problems.push(error)
    }
  }
  throw problems[0]
}

const CONNECT_TIMEOUT_MS = 5_000
/** 30 s: longer than a node takes to restart. */
const REPEATED = { withinMs: 30_000, everyMs: 500 }

/** The connection of the harness ended during a task, or none was accepted. */
class ConnectionLost extends Error {}

/**
 * Runs an idempotent task on a separate connection to the first node that accepts it. The faults of
 * a scenario also break connections of the harness, so the task is then repeated on a new one.
 */
export const onChannel = <T>(broker: Broker, task: (channel: Channel) => Promise<T>): Promise<T> =>
  repeated(
    () => onConnection(broker, task),
    REPEATED,
    (error) => error instanceof ConnectionLost,
  )

async function onConnection<T>(
  { urls }: Broker,
  task: (channel: Channel) => Promise<T>,
): Promise<T> {
  const lost = (cause: unknown) =>
    new ConnectionLost(`No connection to RabbitMQ: ${String(cause)}`, { cause })
  const opening = atAnyNode(urls, (url) => connect(url, { timeout: CONNECT_TIMEOUT_MS }))
  const connection = await opening.catch((error: unknown) => {
    throw lost(error)
  })
  let isLost = false
  const onEnd = () => {
    isLost = true
  }
  connection.on('error', onEnd).on('close', onEnd)
  try {
    return await task(await quietChannel(connection))
  } catch (error) {
    // An error of the channel, such as a missing queue, would come again.
    throw isLost ? lost(error) : error
  } finally {
    await connection.close().catch(() => undefined)
  }
}

async function quietChannel(connection: ChannelModel): Promise<Channel> {
  const channel = await connection.createChannel()
  // Failed operations reject as well. Without a listener the error would end the process.
  channel.on('error', () => undefined)
  return channel
}

// ---- management -------------------------------------------------------------------------------

async function manage(
  { managementUrls }: Broker,
  method: 'GET' | 'PUT' | 'DELETE',
  path: string,
  body?: unknown,
): Promise<unknown> {
  const request = async (address: string) => {
    const { origin, username, password } = new URL(address)
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
    const response = await fetch(`${origin}/api${path}`, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS),
    })
    if (!response.ok) {
      const problem = `${method} ${path}: ${response.status}`
      throw response.status < 500 ? new Refusal(problem) : new Error(problem)
    }
    const text = await response.text()
    return text === '' ? undefined : (JSON.parse(text) as unknown)
  }
  return repeated(
    () => atAnyNode(managementUrls, request),
    REPEATED,
    (error) => !(error instanceof Refusal),
  )
}

/** The management API rejected a request. It would reject it again. */
class Refusal extends Error {}

/** Returns the names of all queues of a run. */
async function queuesOf(broker: Broker, run: string): Promise<readonly string[]> {
  const queues = (await manage(broker, 'GET', '/queues/%2F?columns=name')) as { name: string }[]
  return queues.map(({ name }) => name).filter((name) => name.startsWith(run))
}

/** Returns the settings of each queue of a run as text. */
export async function describeQueues(
  broker: Broker,
  run: string,
): Promise<ReadonlyMap<string, string>> {
  const path = '/queues/%2F?columns=name,type,durable,arguments'
  const queues = (await manage(broker, 'GET', path)) as { name: string }[]
  const own = queues.filter(({ name }) => name.startsWith(run))
  return new Map(own.map(({ name, ...settings }) => [name, JSON.stringify(settings)]))
}

/**
 * Returns the number of unfinished messages of a run, in-flight ones included. The broker's count
 * may be some seconds old.
 */
export async function unfinishedIn(broker: Broker, run: string): Promise<number> {
  const path = '/queues/%2F?columns=name,messages'
  const queues = (await manage(broker, 'GET', path)) as { name: string; messages?: number }[]
  return queues
    .filter(({ name }) => name.startsWith(run) && ['source', 'delay'].includes(placeOf(name)))
    .reduce((sum, { messages = 0 }) => sum + messages, 0)
}

/** Makes the queue reject messages above this length. */
export async function limitQueue(broker: Broker, queue: string, most: number): Promise<void> {
  await manage(broker, 'PUT', policyPath(queue), {
    pattern: `^${queue.replaceAll('.', '\\.')}$`,
    definition: { 'max-length': most },
    'apply-to': 'queues',
  })
}

const policyPath = (queue: string) => `/policies/%2F/${encodeURIComponent(queue)}`

// ---- content of queues ------------------------------------------------------------------------

function placeOf(queue: string): Place {
  if (queue.includes('.dlq.quarantine')) return 'quarantine'
  if (queue.endsWith('.dlq')) return 'dlq'
  return queue.includes('.delay') ? 'delay' : 'source'
}

export type Depths = Readonly<Record<Place, number>>

/** Delays before sources: a message that leaves a delay during this is then found in its source. */
const IN_TURN: readonly Place[] = ['delay', 'source', 'dlq', 'quarantine']

/** Returns the number of ready messages in the queues of a run, without those in flight. */
export async function depthsOf(broker: Broker, run: string): Promise<Depths> {
  const turnOf = (name: string) => IN_TURN.indexOf(placeOf(name))
  const names = (await queuesOf(broker, run)).toSorted((a, b) => turnOf(a) - turnOf(b))
  const depths: Record<Place, number> = { source: 0, delay: 0, dlq: 0, quarantine: 0 }
  await onChannel(broker, async (channel) => {
    for (const name of names) depths[placeOf(name)] += (await channel.checkQueue(name)).messageCount
  })
  return depths
}

/**
 * Takes all messages out of the queues of a run. It is complete only after all consumers have
 * ended.
 */
export async function drainRun(
  broker: Broker,
  run: string,
  places: readonly Place[] = IN_TURN,
): Promise<readonly FoundMessage[]> {
  const names = (await queuesOf(broker, run)).filter((name) => places.includes(placeOf(name)))
  // Delays first, and again after the rest, because their messages move to the source.
  const delays = names.filter((name) => placeOf(name) === 'delay')
  const others = names.filter((name) => placeOf(name) !== 'delay')
  const found: FoundMessage[] = []
  for (const name of [...delays, ...others, ...delays, ...others]) {
    found.push(...(await emptied(broker, name).catch((error) => noneIn(broker, name, error))))
  }
  return found
}

/** 405: messages of a queue with a single active consumer can only be consumed. */
const LOCKED = 405

/** Returns no messages if the queue is empty. Otherwise throws why they cannot be taken out. */
async function noneIn(
  broker: Broker,
  queue: string,
  error: unknown,
): Promise<readonly FoundMessage[]> {
  if ((error as { readonly code?: unknown }).code !== LOCKED) throw error
  const { messageCount } = await onChannel(broker, (channel) => channel.checkQueue(queue))
  if (messageCount === 0) return []
  throw new Error(`${queue} still has ${messageCount} messages.`, { cause: error })
}

/**
 * Takes all messages out of a queue. They are acknowledged together when all have arrived. So a
 * repeated task finds those of a lost connection again.
 */
async function emptied(broker: Broker, queue: string): Promise<readonly FoundMessage[]> {
  const taken: FoundMessage[] = []
  /** Acknowledged on a connection that was lost before the broker confirmed it. */
  let unconfirmed: readonly FoundMessage[] = []
  return onChannel(broker, async (channel) => {
    const found: FoundMessage[] = []
    for (;;) {
      const message = await channel.get(queue)
      if (message === false) break
      found.push(foundIn(queue, message))
    }
    // They did not come again, so the broker had received the acknowledgement.
    const ids = new Set(found.map(({ id }) => id))
    if (!unconfirmed.some(({ id }) => ids.has(id))) taken.push(...unconfirmed)
    unconfirmed = found
    if (found.length === 0) return taken
    channel.ackAll()
    // The broker handles requests of a channel in order. Its response confirms the acknowledgement.
    await channel.checkQueue(queue)
    return [...taken, ...found]
  })
}

function foundIn(queue: string, { properties, content }: GetMessage): FoundMessage {
  const id = String(properties.messageId)
  const reason: unknown = properties.headers?.['redrive-reason']
  return {
    id,
    queue,
    place: placeOf(queue),
    reason: typeof reason === 'string' ? reason : undefined,
    isWhole: isAsSent(id, content),
  }
}

export async function deleteRun(broker: Broker, run: string): Promise<void> {
  const names = await queuesOf(broker, run)
  const exchanges = (await manage(broker, 'GET', '/exchanges/%2F?columns=name')) as {
    name: string
  }[]
  const policies = (await manage(broker, 'GET', '/policies/%2F')) as { name: string }[]
  for (const { name } of policies) {
    if (name.startsWith(run)) await manage(broker, 'DELETE', policyPath(name))
  }
  await onChannel(broker, async (channel) => {
    for (const name of names) await channel.deleteQueue(name)
    for (const { name } of exchanges) {
      if (name.startsWith(run)) await channel.deleteExchange(name)
    }
  })
}
