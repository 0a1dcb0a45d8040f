import type {
  DiagnoseOptions,
  KafkaOptions,
  KafkaSource,
  NatsOptions,
  PostgresOptions,
  RabbitmqOptions,
  RedisOptions,
  SqsOptions,
} from '@redrive/doctor'
import type { Config } from '@redrive/server'
import { CommandError, EXIT } from '../exit.ts'
import type { Certificates } from './certificates.ts'

/** The brokers to diagnose. */
export type Brokers = Omit<DiagnoseOptions, 'accept'>
type Client = NonNullable<KafkaOptions['client']>

/** The reader for each protocol of an address. */
const READERS: Readonly<Record<string, (url: URL) => Brokers>> = {
  'http:': managementAt,
  'https:': managementAt,
  'amqp:': ({ href }) => ({ rabbitmq: { amqp: href, vhost: vhostIn(href) } }),
  'amqps:': ({ href }) => ({ rabbitmq: { amqp: href, vhost: vhostIn(href) } }),
  'kafka:': kafkaAt,
  'kafkas:': kafkaAt,
  'nats:': natsAt,
  'tls:': natsAt,
  'postgres:': ({ href }) => ({ postgres: { url: href } }),
  'postgresql:': ({ href }) => ({ postgres: { url: href } }),
  'redis:': ({ href }) => ({ redis: { url: href } }),
  'rediss:': ({ href }) => ({ redis: { url: href } }),
  'sqs:': sqsAt,
}

/** Reads `http://host:15672?vhost=/orders&queue=new`. */
function managementAt({ href, searchParams }: URL): Brokers {
  const vhost = searchParams.get('vhost')
  const queues = searchParams.getAll('queue')
  return {
    rabbitmq: {
      management: href.replace(/\/?(\?.*)?$/, ''),
      ...(vhost === null ? {} : { vhost }),
      ...(queues.length === 0 ? {} : { queues }),
    },
  }
}

const MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const

/** Reads `kafka://user:password@host:9092?mechanism=SCRAM-SHA-512&topic=orders&group=billing`. */
function kafkaAt({ host, username, password, protocol, searchParams }: URL): Brokers {
  const requested = searchParams.get('mechanism') ?? 'PLAIN'
  const mechanism = MECHANISMS.find((one) => one === requested.toUpperCase())
  if (mechanism === undefined)
    throw new CommandError(
      EXIT.usage,
      `Expected "mechanism" to be one of ${MECHANISMS.join(', ')}, got "${requested}".`,
    )
  const sasl = {
    mechanism,
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
  }
  const client = {
    ...(protocol === 'kafkas:' ? { tls: {} } : {}),
    ...(username === '' ? {} : { sasl }),
  }
  return { kafka: { brokers: [host], client, ...sourcesIn(searchParams) } }
}

/** Reads `nats://user:password@host:4222?monitor=http://host:8222&stream=ORDERS&consumer=billing`. */
function natsAt({ href, searchParams }: URL): Brokers {
  const sources = pairsIn(searchParams, 'stream', 'consumer').map(([stream, consumer]) => ({
    stream,
    consumer,
  }))
  const monitors = searchParams.getAll('monitor')
  return {
    nats: {
      servers: [href.replace(/\?.*$/, '')],
      ...(monitors.length === 0 ? {} : { monitors }),
      ...(sources.length === 0 ? {} : { sources }),
    },
  }
}

/** Pairs the first topic with the first group, and so on. */
function sourcesIn(params: URLSearchParams): Pick<KafkaOptions, 'sources'> {
  const pairs = pairsIn(params, 'topic', 'group')
  return pairs.length === 0 ? {} : { sources: pairs.map(([topic, group]) => ({ topic, group })) }
}

/** Pairs the first value of one parameter with the first value of the other, and so on. */
function pairsIn(
  params: URLSearchParams,
  one: string,
  other: string,
): readonly (readonly [string, string])[] {
  const [first, second] = [params.getAll(one), params.getAll(other)]
  if (first.length !== second.length)
    throw new CommandError(
      EXIT.usage,
      `Expected one ${other} per ${one}, such as ${one}=orders&${other}=billing; got ${first.length} ${one}s and ${second.length} ${other}s.`,
    )
  return first.map((value, at) => [value, second[at] ?? ''])
}

/** Reads `sqs://eu-central-1?queue=orders`. A host with a port is a server with the API of SQS, which needs any region. */
function sqsAt({ hostname, host, port, searchParams }: URL): Brokers {
  const queues = searchParams.getAll('queue')
  return {
    sqs:
      port === ''
        ? { queues, region: hostname }
        : { queues, region: 'us-east-1', endpoint: `http://${host}` },
  }
}

/** Returns the broker at an address. */
export function brokerAt(address: string, tls?: Certificates): Brokers {
  const url = URL.parse(address)
  const read = url === null ? undefined : READERS[url.protocol]
  if (url === null || read === undefined) throw notAnAddress()
  const { rabbitmq, kafka, nats, postgres, redis, sqs } = read(url)
  if (sqs !== undefined) return { sqs }
  const secure = withTls(tls)
  if (rabbitmq !== undefined) return { rabbitmq: { ...rabbitmq, ...secure } }
  if (postgres !== undefined) return { postgres: { ...postgres, ...secure } }
  if (redis !== undefined) return { redis: { ...redis, ...secure } }
  if (nats !== undefined) return { nats: { ...nats, ...secure } }
  if (kafka === undefined) throw notAnAddress()
  return { kafka: { ...kafka, client: { ...kafka.client, ...secure } } }
}

const notAnAddress = () =>
  new CommandError(
    EXIT.usage,
    'Expected an address such as http://user:password@host:15672 (RabbitMQ management API), kafka://host:9092, nats://host:4222, postgres://user@host/database, redis://host:6379 or sqs://eu-central-1?queue=orders.',
  )

/** Returns each broker of a config once, with its sources, and the database of the server. */
export async function brokersIn({ sources, database }: Config): Promise<readonly Brokers[]> {
  const { natsCredentials, tlsFilesOf } = await import('@redrive/server/internal')
  const rabbitmqs = Object.entries(sources).flatMap(([name, { rabbitmq }]) =>
    rabbitmq === undefined
      ? []
      : [rabbitmqOf(rabbitmq, tlsFilesOf(`sources.${name}.rabbitmq.tls`, rabbitmq.tls))],
  )
  const kafkas = Object.entries(sources).flatMap(([name, { kafka }]) => {
    if (kafka === undefined) return []
    const files = tlsFilesOf(`sources.${name}.kafka.tls`, kafka.tls)
    return [kafkaOf(kafka, files === undefined ? {} : { tls: { ...files } })]
  })
  const natses = Object.entries(sources).flatMap(([name, { nats }]) => {
    if (nats === undefined) return []
    const where = `sources.${name}.nats`
    const credentials = natsCredentials(where, nats.credentials?.reveal())
    return [natsOf(nats, { credentials, tls: tlsFilesOf(`${where}.tls`, nats.tls) })]
  })
  const postgresOf = (where: string, { url, tls, schema }: PostgresConfig): PostgresOptions => {
    const secure = tls === false ? { tls } : withTls(tlsFilesOf(where, tls))
    return { url: url.reveal(), ...secure, ...(schema && { outboxSchema: schema }) }
  }
  const postgreses = [
    ...Object.entries(sources).flatMap(([name, { postgres }]) => {
      if (postgres === undefined) return []
      const { url = database.url, tls, schema } = postgres
      // Without tls, the URL of the server has the settings of the server.
      const isOfServer = tls === undefined && url.reveal() === database.url.reveal()
      if (isOfServer) return schema ? [postgresOf('database.tls', { ...database, schema })] : []
      return [postgresOf(`sources.${name}.postgres.tls`, { ...postgres, url })]
    }),
    postgresOf('database.tls', database),
  ]
  const redises = Object.values(sources).flatMap(({ redis, bullmq, redisStore }): RedisOptions[] =>
    [redis, bullmq, redisStore].flatMap((one) =>
      one === undefined ? [] : [{ url: one.url.reveal() }],
    ),
  )
  const sqs = Object.values(sources).flatMap((one) => (one.sqs === undefined ? [] : [one.sqs]))
  return [
    ...groupsOf(rabbitmqs, ({ amqp, tls }) => [amqp, tls]).map(rabbitmqsTogether),
    ...groupsOf(kafkas, ({ brokers, client }) => [brokers, client]).map(kafkasTogether),
    ...groupsOf(natses, ({ sources: _, ...address }) => address).map(natsesTogether),
    ...groupsOf(postgreses, (one) => one).flatMap(([first]) =>
      first === undefined ? [] : [{ postgres: first }],
    ),
    ...groupsOf(redises, ({ url }) => url).flatMap(([first]) =>
      first === undefined ? [] : [{ redis: first }],
    ),
    ...groupsOf(sqs, ({ region, endpoint }) => [region, endpoint?.reveal()]).map(sqsTogether),
  ]
}

type SourceConfig = Config['sources'][string]
type PostgresConfig = Pick<Config['database'], 'url' | 'tls'> &
  Pick<NonNullable<SourceConfig['postgres']>, 'schema'>

/** Returns the option `tls` with a copy of the texts, because a driver may change its options. */
const withTls = (tls: Certificates | undefined): { readonly tls?: Certificates } =>
  tls === undefined ? {} : { tls: { ...tls } }

/** Groups items by address. Items with the same address belong to the same broker. */
const groupsOf = <T>(all: readonly T[], addressOf: (one: T) => unknown): readonly T[][] => [
  ...Map.groupBy(all, (one) => JSON.stringify(addressOf(one))).values(),
]

function rabbitmqOf(
  { url, queue, deadLetterQueues }: NonNullable<SourceConfig['rabbitmq']>,
  tls: Certificates | undefined,
) {
  return {
    amqp: [url].flat().map((one) => one.reveal()),
    queue,
    deadLetterQueues,
    ...withTls(tls),
  }
}

function rabbitmqsTogether(all: readonly ReturnType<typeof rabbitmqOf>[]): Brokers {
  const amqp = all[0]?.amqp ?? []
  const rabbitmq: RabbitmqOptions = {
    amqp,
    ...withTls(all[0]?.tls),
    vhost: vhostIn(amqp[0] ?? ''),
    queues: all.map(({ queue }) => queue),
    deadLetterQueues: all.flatMap(({ deadLetterQueues = [] }) => deadLetterQueues),
  }
  return { rabbitmq }
}

/** Returns the virtual host of the address: its path, or `/` without one. */
export function vhostIn(amqp: string): string {
  const path = new URL(amqp).pathname.slice(1)
  try {
    return decodeURIComponent(path) || '/'
  } catch {
    throw new CommandError(
      EXIT.usage,
      `The virtual host "${path}" in the address has a % that does not begin an escape sequence. Write %25 for a percent sign.`,
    )
  }
}

function kafkaOf(config: NonNullable<SourceConfig['kafka']>, secure: Pick<Client, 'tls'>) {
  const { brokers, topic, group, deadLetterTopics, sasl } = config
  const client: Client = {
    ...secure,
    ...(sasl === undefined ? {} : { sasl: { ...sasl, password: sasl.password.reveal() } }),
  }
  const source: KafkaSource = {
    topic,
    group,
    ...(deadLetterTopics === undefined ? {} : { deadLetterTopics }),
  }
  return { brokers, client, source }
}

function natsOf(
  { url, stream, consumer, prefix }: NonNullable<SourceConfig['nats']>,
  {
    credentials,
    tls,
  }: { readonly credentials: string | undefined; readonly tls: Certificates | undefined },
): NatsOptions & Required<Pick<NatsOptions, 'sources'>> {
  return {
    servers: [url].flat().map((one) => one.reveal()),
    sources: [{ stream, consumer, ...(prefix === undefined ? {} : { prefix }) }],
    ...(credentials === undefined ? {} : { credentials }),
    ...withTls(tls),
  }
}

function natsesTogether(all: readonly ReturnType<typeof natsOf>[]): Brokers {
  const { sources: _, ...address } = all[0] ?? { servers: [], sources: [] }
  return { nats: { ...address, sources: all.flatMap(({ sources }) => sources) } }
}

function kafkasTogether(all: readonly ReturnType<typeof kafkaOf>[]): Brokers {
  const { brokers = [], client = {} } = all[0] ?? {}
  return { kafka: { brokers, client, sources: all.map(({ source }) => source) } }
}

function sqsTogether(all: readonly NonNullable<SourceConfig['sqs']>[]): Brokers {
  const { region, endpoint } = all[0] ?? {}
  const sqs: SqsOptions = {
    queues: all.map(({ queue }) => queue),
    deadLetters: Object.fromEntries(
      all.flatMap(({ queue, deadLetters }) =>
        deadLetters === undefined ? [] : [[queue, deadLetters]],
      ),
    ),
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint: endpoint.reveal() }),
  }
  return { sqs }
}
