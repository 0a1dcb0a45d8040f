import { randomUUID } from 'node:crypto'
import type { Admin } from '@platformatic/kafka'
import type { adoptedPrefix, applyTopology, topologyOf } from '@redrive/rabbitmq'
import type { SQSClient } from '@aws-sdk/client-sqs'
import type { Outbox, PostgresTransport } from '@redrive/postgres'
import type { DrainedDeadLetter, DrainedQueue } from '@redrive/runtime'
import type { Pool } from 'pg'
import { CommandError, EXIT } from './exit.ts'
import { reasonOf } from './failure.ts'
import type { PeekTarget } from './peek/read-queue.ts'
import type { Certificates } from './server/certificates.ts'

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

/** Opens the broker or database at an address. Each client library is loaded only when it is needed. */
export async function openPeekTarget(
  address: string,
  queue: string,
  tls?: Certificates,
): Promise<PeekTarget> {
  const url = URL.parse(address)
  const open = url === null ? undefined : OPENERS[url.protocol]
  if (url === null || open === undefined) {
    throw new CommandError(
      EXIT.usage,
      'Expected an address such as amqp://user:password@host:5672, kafka://host:9092, nats://host:4222, postgres://user@host/database, redis://host:6379 or sqs://eu-central-1.',
    )
  }
  return open(url, queue, tls)
}

type Open = (url: URL, queue: string, tls: Certificates | undefined) => Promise<PeekTarget>

const OPENERS: Readonly<Record<string, Open>> = {
  'amqp:': openRabbitMq,
  'amqps:': openRabbitMq,
  'kafka:': openKafka,
  'kafkas:': openKafka,
  'nats:': openNats,
  'tls:': openNats,
  'postgres:': openPostgres,
  'postgresql:': openPostgres,
  'redis:': openRedis,
  'rediss:': openRedis,
  'sqs:': openSqs,
}

async function openRabbitMq(
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

async function openKafka(
  url: URL,
  topic: string,
  tls: Certificates | undefined,
): Promise<PeekTarget> {
  const [kafka, { kafkaSource }] = await Promise.all([
    import('@platformatic/kafka'),
    import('@redrive/kafka'),
  ])
  const { host, username, password, protocol } = url
  const client = {
    ...(protocol === 'kafkas:' ? { tls: { ...tls } } : {}),
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
  // A separate consumer group: it commits nothing and is deleted afterwards.
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

/** Lists all topics. A request for a single topic may create it. */
async function missingTopic(admin: Admin, topic: string): Promise<string | undefined> {
  const topics = await admin.listTopics({ includeInternals: true })
  if (topics.includes(topic)) return undefined
  return `Topic "${topic}" does not exist, or your user has no permission to see it.`
}

async function deleteGroups(admin: Admin, prefix: string): Promise<void> {
  const groups = [...(await admin.listGroups()).keys()].filter((id) => id.startsWith(prefix))
  if (groups.length === 0) return
  try {
    await admin.deleteGroups({ groups })
  } catch (cause) {
    throw new Error(
      `Cannot delete the empty consumer group ${groups.join(', ')}: ${reasonOf(cause)}`,
      { cause },
    )
  }
}

/** Opens the stream of Redrive with the dead letters of a consumer. */
async function openNats(
  { href }: URL,
  queue: string,
  tls: Certificates | undefined,
): Promise<PeekTarget> {
  const [{ JetStreamApiError, jetstreamManager }, { connect }, { connectionOptions, natsPeek }] =
    await Promise.all([
      import('@nats-io/jetstream'),
      import('@nats-io/transport-node'),
      import('@redrive/nats'),
    ])
  const connection = await connect({
    ...connectionOptions(href),
    // A peek that loses its server fails.
    reconnect: false,
    ...(tls === undefined ? {} : { tls: { ...tls } }),
  })
  const close = () => connection.close()
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false })
    const peek = await natsPeek(manager, queue).catch((error: unknown) => {
      throw error instanceof JetStreamApiError && error.status === 404 ? noStream(queue) : error
    })
    if (peek === undefined) throw notOfRedrive(queue)
    const drain = async ({ limit }: { readonly limit: number }) => ({
      deadLetters: await peek.read(limit),
      ...NOTHING_HELD,
    })
    return { source: { drain, depth: () => peek.depth() }, trace: undefined, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** A peek that only reads has nothing to release. */
const NOTHING_HELD = { release: () => Promise.resolve(), abandon: () => Promise.resolve() }

const noStream = (name: string) =>
  new CommandError(
    EXIT.notFound,
    `Stream "${name}" does not exist. Expected a stream of Redrive with dead letters, such as "ORDERS-billing-dlq" for the consumer "billing" of the stream "ORDERS".`,
  )

const notOfRedrive = (name: string) =>
  new CommandError(
    EXIT.notFound,
    `Stream "${name}" is not a stream of Redrive with the dead letters of a consumer. Expected a name such as "ORDERS-billing-dlq".`,
  )

async function openPostgres(
  { href }: URL,
  queue: string,
  tls: Certificates | undefined,
): Promise<PeekTarget> {
  const [{ default: pg }, { postgresSource }] = await Promise.all([
    import('pg'),
    import('@redrive/postgres'),
  ])
  // One connection with one transaction, which is rolled back. The peek changes nothing.
  const pool = new pg.Pool({
    connectionString: href,
    // A copy, because the driver hides the key in its options.
    ...(tls === undefined ? {} : { ssl: { ...tls } }),
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

/** Opens the stream of dead letters with this key, or the failed jobs of a queue of BullMQ. */
async function openRedis(
  { href }: URL,
  queue: string,
  tls: Certificates | undefined,
): Promise<PeekTarget> {
  const [{ createClient }, { bullmqSource, redisStreamSource }] = await Promise.all([
    import('@redis/client'),
    import('@redrive/redis'),
  ])
  const secure = tls === undefined ? {} : { tls: true as const, ...tls }
  const client = createClient({ url: href, socket: { ...secure, reconnectStrategy: false } })
  // The request that fails reports why.
  client.on('error', () => undefined)
  await client.connect()
  const [, slot = '', group = ''] = DEAD_LETTERS.exec(queue) ?? []
  const isStream = group !== ''
  const stream = /^\{[^}]*\}$/.test(slot) ? slot.slice(1, -1) : slot
  const source = isStream
    ? redisStreamSource({ client, stream, group })
    : bullmqSource({ client, queue: failedJobsOf(queue), lease: false })
  return {
    source,
    trace: undefined,
    missing: async () => {
      const key = isStream ? queue : failedJobsOf(queue).toKey('meta')
      return (await client.exists(key)) === 1 ? undefined : noRedisKey(queue, key)
    },
    close: async () => {
      await source.close()
      client.destroy()
    },
  }
}

/** The key of a stream of dead letters: `{orders}:billing:dlq`. */
const DEAD_LETTERS = /^(.*\{[^}]+\}.*?):([^:]+):dlq$/

/** Returns a queue of BullMQ, by its name or with its prefix. A peek reads its keys and needs no package of it. */
function failedJobsOf(queue: string) {
  const [prefix, name] = queue.includes(':') ? splitLast(queue) : ['bull', queue]
  const unused = () => Promise.reject(new Error('A peek changes no job.'))
  return { name, toKey: (type: string) => `${prefix}:${name}:${type}`, getJob: unused, add: unused }
}

function splitLast(text: string): readonly [string, string] {
  const at = text.lastIndexOf(':')
  return [text.slice(0, at), text.slice(at + 1)]
}

const noRedisKey = (queue: string, key: string) =>
  `"${queue}" does not exist: there is no key "${key}". Expected a queue of BullMQ such as "orders", or the key of a stream of dead letters such as "{orders}:billing:dlq".`

/** Opens a dead-letter queue of Amazon SQS. The client reads credentials from the environment. */
async function openSqs(
  { hostname, host, port }: URL,
  queue: string,
  tls: Certificates | undefined,
): Promise<PeekTarget> {
  if (tls !== undefined)
    throw new CommandError(EXIT.usage, 'For SQS, set NODE_EXTRA_CA_CERTS instead of --ca.')
  const [{ SQSClient: Client }, { sqsSource }] = await Promise.all([
    import('@aws-sdk/client-sqs'),
    import('@redrive/sqs'),
  ])
  // A host with a port is a server with the API of SQS, which needs any region.
  const client = new Client(
    port === '' ? { region: hostname } : { endpoint: `http://${host}`, region: 'us-east-1' },
  )
  try {
    const place = await deadLettersAt(client, queue)
    const source = sqsSource({ client, ...place, topology: 'verify' })
    return {
      source,
      trace: 'SQS counts this read of a message as a delivery.',
      close: async () => {
        await source.close()
        client.destroy()
      },
    }
  } catch (error) {
    client.destroy()
    throw error
  }
}

/** Returns the address of a dead-letter queue, and a queue whose dead letters it contains. */
async function deadLettersAt(client: SQSClient, name: string) {
  const { GetQueueUrlCommand, ListDeadLetterSourceQueuesCommand, QueueDoesNotExist } = await import(
    '@aws-sdk/client-sqs'
  )
  const { QueueUrl: deadLetters = '' } = await client
    .send(new GetQueueUrlCommand({ QueueName: name }))
    .catch((error: unknown) => {
      throw error instanceof QueueDoesNotExist ? noSqsQueue(name) : error
    })
  const { queueUrls: [queue = OWN_DEAD_LETTERS.exec(name)?.slice(1).join('')] = [] } =
    await client.send(new ListDeadLetterSourceQueuesCommand({ QueueUrl: deadLetters }))
  if (queue === undefined) throw notForDeadLetters(name)
  return { queue, deadLetters }
}

/** A dead-letter queue that Redrive has created: `orders-dlq`, `orders-dlq.fifo`. */
const OWN_DEAD_LETTERS = /^(.+)-dlq(\.fifo)?$/

const noSqsQueue = (name: string) =>
  new CommandError(
    EXIT.notFound,
    `SQS has no queue "${name}". Correct the name, the region or the credentials.`,
  )

const notForDeadLetters = (name: string) =>
  new CommandError(
    EXIT.notFound,
    `The queue "${name}" is not a dead-letter queue: no redrive policy names it. Expected one, or a queue of Redrive such as "orders-dlq".`,
  )

/** A queue of the shop of `redrive dev`: the side of its consumer, and the side of its producer. */
export interface ShopQueue {
  readonly transport: PostgresTransport
  readonly orders: Outbox
}

/** Opens a queue in an outbox. */
export async function openShopQueue(pool: Pool, queue: string): Promise<ShopQueue> {
  const { outbox, postgres } = await import('@redrive/postgres')
  return { transport: postgres({ pool, queue }), orders: outbox({ pool, queue }) }
}

/** Where a consumer of RabbitMQ keeps its dead letters. */
export interface DeadLetterPlace {
  readonly url: string
  readonly queue: string
  readonly deadLetterQueues?: readonly string[]
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
