import { type Channel, type ChannelModel, connect, type GetMessage } from 'amqplib'
import type { Found, Place } from '../evidence.ts'
import { isAsSent } from '../message.ts'

/**
 * The broker as an administrator sees it: plain amqplib and the management API. Nothing here comes
 * from the transport under test, so that a mistake of it cannot hide itself.
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

/** Tries the nodes in turn: any of them may be down. */
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

/** A connection for one piece of work, on the first node that takes it. */
export async function onChannel<T>(
  { urls }: Broker,
  work: (channel: Channel) => Promise<T>,
): Promise<T> {
  const connection = await atAnyNode(urls, (url) => connect(url, { timeout: CONNECT_TIMEOUT_MS }))
  connection.on('error', () => undefined)
  try {
    return await work(await quietChannel(connection))
  } finally {
    await connection.close().catch(() => undefined)
  }
}

async function quietChannel(connection: ChannelModel): Promise<Channel> {
  const channel = await connection.createChannel()
  // What fails on it rejects as well; without a listener it would end the process.
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
  return atAnyNode(managementUrls, async (address) => {
    const { origin, username, password } = new URL(address)
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
    const response = await fetch(`${origin}/api${path}`, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`)
    const text = await response.text()
    return text === '' ? undefined : (JSON.parse(text) as unknown)
  })
}

/** Names of all queues that belong to a run. */
async function queuesOf(broker: Broker, run: string): Promise<readonly string[]> {
  const queues = (await manage(broker, 'GET', '/queues/%2F?columns=name')) as { name: string }[]
  return queues.map(({ name }) => name).filter((name) => name.startsWith(run))
}

/** Messages of a run that have not come to an end, in hand or on their way included, as counted lately. */
export async function unfinishedIn(broker: Broker, run: string): Promise<number> {
  const path = '/queues/%2F?columns=name,messages'
  const queues = (await manage(broker, 'GET', path)) as { name: string; messages?: number }[]
  return queues
    .filter(({ name }) => name.startsWith(run) && ['source', 'delay'].includes(placeOf(name)))
    .reduce((sum, { messages = 0 }) => sum + messages, 0)
}

/** The queue refuses what is beyond that length. */
export async function limitQueue(broker: Broker, queue: string, most: number): Promise<void> {
  await manage(broker, 'PUT', policyPath(queue), {
    pattern: `^${queue.replaceAll('.', '\\.')}$`,
    definition: { 'max-length': most },
    'apply-to': 'queues',
  })
}

const policyPath = (queue: string) => `/policies/%2F/${encodeURIComponent(queue)}`

// ---- what is where ----------------------------------------------------------------------------

function placeOf(queue: string): Place {
  if (queue.includes('.dlq.quarantine')) return 'quarantine'
  if (queue.endsWith('.dlq')) return 'dlq'
  return queue.includes('.delay') ? 'delay' : 'source'
}

export type Depths = Readonly<Record<Place, number>>

/** Delays before sources: what leaves a delay meanwhile is then found in its source. */
const IN_TURN: readonly Place[] = ['delay', 'source', 'dlq', 'quarantine']

/** Messages ready in the queues of a run. What is in somebody's hands is not among them. */
export async function depthsOf(broker: Broker, run: string): Promise<Depths> {
  const turnOf = (name: string) => IN_TURN.indexOf(placeOf(name))
  const names = (await queuesOf(broker, run)).toSorted((a, b) => turnOf(a) - turnOf(b))
  const depths: Record<Place, number> = { source: 0, delay: 0, dlq: 0, quarantine: 0 }
  await onChannel(broker, async (channel) => {
    for (const name of names) depths[placeOf(name)] += (await channel.checkQueue(name)).messageCount
  })
  return depths
}

/** Takes everything out of the queues of a run. All of them only when all consumers have gone. */
export async function drainRun(
  broker: Broker,
  run: string,
  places: readonly Place[] = IN_TURN,
): Promise<readonly Found[]> {
  const found: Found[] = []
  const names = (await queuesOf(broker, run)).filter((name) => places.includes(placeOf(name)))
  // Delays first, and once more after the rest: what comes out of them goes to the source.
  const delays = names.filter((name) => placeOf(name) === 'delay')
  const others = names.filter((name) => placeOf(name) !== 'delay')
  await onChannel(broker, async (channel) => {
    for (const name of [...delays, ...others, ...delays, ...others]) {
      for (;;) {
        const message = await channel.get(name, { noAck: true })
        if (message === false) break
        found.push(foundIn(name, message))
      }
    }
  })
  return found
}

function foundIn(queue: string, { properties, content }: GetMessage): Found {
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
