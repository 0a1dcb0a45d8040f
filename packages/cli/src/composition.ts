import { randomUUID } from 'node:crypto'
import type { Admin } from '@platformatic/kafka'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { CommandError, EXIT } from './exit.ts'
import { reasonOf } from './failure.ts'
import type { Place } from './peek/look.ts'

/** The concrete choices of the command line: which broker is behind an address. Each is loaded when it is needed. */
export async function openPlace(address: string, queue: string): Promise<Place> {
  const url = URL.parse(address)
  const open = url === null ? undefined : PLACES[url.protocol]
  if (url === null || open === undefined) {
    throw new CommandError(
      EXIT.usage,
      'Expected an address such as amqp://user:password@host:5672, kafka://host:9092 or postgres://user@host/database.',
    )
  }
  return open(url, queue)
}

type Open = (url: URL, queue: string) => Promise<Place>

const PLACES: Readonly<Record<string, Open>> = {
  'amqp:': openRabbitMq,
  'amqps:': openRabbitMq,
  'kafka:': openKafka,
  'kafkas:': openKafka,
  'postgres:': openPostgres,
  'postgresql:': openPostgres,
}

async function openRabbitMq({ href }: URL, queue: string): Promise<Place> {
  const { rabbitmqSource } = await import('@redrive/rabbitmq')
  const { isQuorum, major } = await queueAt(href, queue)
  const source = rabbitmqSource({ url: href, queue, deadLetterQueues: [queue] })
  return {
    source,
    trace: isQuorum
      ? 'The queue is a quorum queue: RabbitMQ counts each look on each message. Better not to look often.'
      : 'RabbitMQ marks what was looked at as redelivered.',
    ...(isQuorum
      ? { refuseSome: behindTheRest, refuseMore: (first) => nearLimit(first, major) }
      : {}),
    close: () => source.close(),
  }
}

/** A quorum queue without a delivery limit puts what is given back behind everything else. */
function behindTheRest(most: number, total: number): string | undefined {
  if (total <= most) return undefined
  return `This is a quorum queue with ${total} messages, and what is looked at may go behind the rest. To look at all and keep their order: --limit ${total}.`
}

/** Of the 20 that RabbitMQ 4 allows by default. It counts crashes alone, and ours would be one more. */
const NEAR_LIMIT = 15
/** Before RabbitMQ 4 each look counts, and the limit cannot be seen from here: people set no lower one. */
const NEAR_UNKNOWN_LIMIT = 2

/** A quorum queue drops or dead-letters what was returned more often than its limit. */
function nearLimit({ delivery }: DrainedDeadLetter, major: number): string | undefined {
  const returned = delivery.deliveryCount - 1
  if (returned < (major >= 4 ? NEAR_LIMIT : NEAR_UNKNOWN_LIMIT)) return undefined
  return `The first message was returned ${returned} times already, and a quorum queue gives up what was returned too often: nothing more was looked at.`
}

/** AMQP's code for what a broker cannot do. */
const NOT_IMPLEMENTED = 540
/** And for a queue that is not there. */
const NOT_FOUND = 404

/**
 * AMQP has no question for the type of a queue. But a quorum queue refuses a consumer on a channel whose
 * prefetch is shared, before it hands out anything; any other queue accepts it, and takes back what it handed
 * out into its place. A refusal ends the connection, so it has one of its own.
 */
async function queueAt(url: string, queue: string): Promise<{ isQuorum: boolean; major: number }> {
  const { connect } = await import('amqplib')
  const model = await connect(url, { clientProperties: { connection_name: 'redrive peek' } })
  const { serverProperties } = model.connection as unknown as Connection
  const major = Number.parseInt(serverProperties?.version ?? '', 10)
  let refused: unknown
  let missing: unknown
  model.on('error', ({ code }: Coded) => {
    refused = code
  })
  try {
    const channel = await model.createChannel()
    channel.on('error', ({ code }: Coded) => {
      missing = code
    })
    await channel.prefetch(1, true)
    await channel.consume(queue, () => undefined)
  } catch {
    // The events have said why, before this. Whatever is not told apart here keeps the look itself from
    // consuming, which then says so.
  }
  if (refused === undefined) await model.close()
  if (missing === NOT_FOUND) throw noQueue(url, queue)
  return { isQuorum: refused === NOT_IMPLEMENTED, major }
}

interface Coded {
  readonly code?: unknown
}

function noQueue(url: string, queue: string): CommandError {
  const vhost = decodeURIComponent(new URL(url).pathname.slice(1)) || '/'
  return new CommandError(EXIT.notFound, `There is no queue ${queue} in the virtual host ${vhost}.`)
}

/** What the client library knows of the broker and does not have in its types. */
interface Connection {
  readonly serverProperties?: { readonly version?: string }
}

async function openKafka(url: URL, topic: string): Promise<Place> {
  const [kafka, { kafkaSource }] = await Promise.all([
    import('@platformatic/kafka'),
    import('@redrive/kafka'),
  ])
  const { host, username, password, protocol } = url
  const client = {
    ...(protocol === 'kafkas:' ? { tls: {} } : {}),
    ...(username === ''
      ? {}
      : {
          sasl: {
            mechanism: 'PLAIN' as const,
            username: decodeURIComponent(username),
            password: decodeURIComponent(password),
          },
        }),
  }
  const brokers = [host]
  const withAdmin = async <T>(work: (admin: Admin) => Promise<T>): Promise<T> => {
    const admin = new kafka.Admin({
      clientId: 'redrive-peek',
      bootstrapBrokers: brokers,
      ...client,
    })
    try {
      return await work(admin)
    } finally {
      await admin.close()
    }
  }
  // A group of its own, which nobody else is in: it commits nothing, and is gone afterwards.
  const drainGroup = `redrive-peek-${randomUUID()}`
  const source = kafkaSource({
    brokers,
    topic,
    group: 'peek',
    deadLetterTopics: [topic],
    drainGroup,
    client,
  })
  return {
    source,
    trace: undefined,
    missing: () => withAdmin((admin) => missingTopic(admin, topic)),
    close: async () => {
      await source.close()
      await withAdmin((admin) => deleteGroups(admin, drainGroup))
    },
  }
}

/** All are asked for: to ask for one may make it. */
async function missingTopic(admin: Admin, topic: string): Promise<string | undefined> {
  const topics = await admin.listTopics({ includeInternals: true })
  return topics.includes(topic) ? undefined : `There is no topic ${topic}, or you may not see it.`
}

async function deleteGroups(admin: Admin, prefix: string): Promise<void> {
  const groups = [...(await admin.listGroups()).keys()].filter((id) => id.startsWith(prefix))
  if (groups.length === 0) return
  try {
    await admin.deleteGroups({ groups })
  } catch (cause) {
    throw new Error(
      `The consumer group ${groups.join(', ')} is still there, with nobody in it: ${reasonOf(cause)}`,
      { cause },
    )
  }
}

async function openPostgres({ href }: URL, queue: string): Promise<Place> {
  const [{ default: pg }, { postgresSource }] = await Promise.all([
    import('pg'),
    import('@redrive/postgres'),
  ])
  // One connection, and one transaction on it that is rolled back: nothing that is done to look ever happened.
  const pool = new pg.Pool({
    connectionString: href,
    max: 1,
    idleTimeoutMillis: 0,
    application_name: 'redrive peek',
  })
  pool.on('error', () => undefined)
  await pool.query('begin')
  return {
    source: postgresSource({ pool, queue }),
    trace: undefined,
    close: async () => {
      await pool.query('rollback')
      await pool.end()
    },
  }
}
