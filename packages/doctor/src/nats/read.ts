import type { ConsumerInfo, JetStreamManager, StreamInfo } from '@nats-io/jetstream'
import type { NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node'
import { ANSWER_MS, answerWithin, Reading } from '../reading.ts'
import type { TlsOptions } from '../tls.ts'
import { MIN_REPLICAS } from './checks-server.ts'
import type { ConsumerFacts, NatsFacts, StreamFacts, SyncFacts } from './facts.ts'
import { placedIn } from './look.ts'
import { type NatsSource, retryStream, sourceOf } from './names.ts'

export interface NatsOptions {
  /** Addresses with credentials: `nats://user:password@host:4222`; `tls://` requires TLS. */
  readonly servers: string | readonly string[]
  /** Addresses of the monitoring ports of all servers, such as `http://host:8222`: only they show `sync_interval`. Default none. */
  readonly monitors?: readonly string[]
  /** Streams and their durable consumers. Default: every consumer with streams of Redrive. */
  readonly sources?: readonly NatsSource[]
  /** Text of a file with the credentials of a user (`.creds`). Default: those of the address. */
  readonly credentials?: string
  /** Certificates for `tls://`. Default: the authorities of Node.js, and no client certificate. */
  readonly tls?: TlsOptions
  /** Maximum time for one answer of the server, in ms. Default 10,000. */
  readonly timeoutMs?: number
}

const NANOS_PER_MS = 1_000_000
const ALLOW = 'allow the user to publish to $JS.API.> and to subscribe to _INBOX.>'

/** Reads the live settings of the server. Changes nothing, and does not throw when a fact cannot be read. */
export async function readNats(options: NatsOptions): Promise<NatsFacts> {
  const { timeoutMs = ANSWER_MS, sources = [] } = options
  const reading = new Reading()
  const { unreadable } = reading
  const about = {
    allow: `check the address, TLS and credentials; ${ALLOW}`,
    hides: 'loss',
  } as const
  const nothing = { version: undefined, streams: undefined, consumers: [], servers: [] }
  const connection = await reading.fact({ what: 'server', ...about }, () =>
    open(options, timeoutMs),
  )
  if (connection === undefined) return { ...nothing, account: undefined, sources, unreadable }
  try {
    const { jetstreamManager } = await import('@nats-io/jetstream')
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: timeoutMs })
    const jetstream = await readJetStream(manager, sources, reading)
    const known: NatsFacts = {
      ...nothing,
      ...jetstream,
      version: connection.info?.version,
      unreadable,
    }
    return { ...known, servers: await readServers(known, options, reading) }
  } finally {
    await connection.close()
  }
}

async function open(options: NatsOptions, timeout: number): Promise<NatsConnection> {
  // Loaded only here: a doctor of other brokers needs no client of NATS.
  const { connect, credsAuthenticator } = await import('@nats-io/transport-node')
  const { tls, credentials } = options
  const urls = [options.servers].flat().map((one) => new URL(one))
  const [named] = urls.filter(({ username }) => username !== '')
  const isSecure = tls !== undefined || urls.some(({ protocol }) => protocol === 'tls:')
  return connect({
    servers: urls.map(({ host }) => host),
    name: 'redrive-doctor',
    timeout,
    reconnect: false,
    ...(named === undefined ? {} : loginIn(named)),
    ...(isSecure ? { tls: { ...tls } } : {}),
    ...(credentials === undefined
      ? {}
      : { authenticator: credsAuthenticator(new TextEncoder().encode(credentials)) }),
  })
}

function loginIn({ username, password }: URL): NodeConnectionOptions {
  const user = decodeURIComponent(username)
  return password === '' ? { token: user } : { user, pass: decodeURIComponent(password) }
}

type JetStream = Pick<NatsFacts, 'streams' | 'consumers' | 'account' | 'sources'>

async function readJetStream(
  manager: JetStreamManager,
  named: readonly NatsSource[],
  reading: Reading,
): Promise<JetStream> {
  const read = <T>(what: string, work: () => Promise<T>) =>
    reading.fact({ what, allow: ALLOW, hides: 'loss' }, work)
  const infos = await read('streams', () => allOf(manager))
  const account = await read('account', () => manager.getAccountInfo())
  const sources = named.length > 0 ? named : sourcesIn(infos ?? [])
  const names = new Set(infos?.map(({ config }) => config.name))
  const consumers = await Promise.all(
    sources.flatMap((source) =>
      consumersOf(source)
        .filter(({ stream }) => names.has(stream))
        .map(({ stream, consumer }) =>
          read(`consumer ${stream} > ${consumer}`, () => manager.consumers.info(stream, consumer)),
        ),
    ),
  )
  const most = account?.limits.max_storage ?? -1
  return {
    streams: infos?.map(streamFacts),
    consumers: consumers.filter((one) => one !== undefined).map(consumerFacts),
    account: account === undefined || most < 0 ? undefined : { used: account.storage, most },
    sources,
  }
}

async function allOf(manager: JetStreamManager): Promise<readonly StreamInfo[]> {
  const all: StreamInfo[] = []
  for await (const info of manager.streams.list()) all.push(info)
  return all
}

const sourcesIn = (infos: readonly StreamInfo[]): readonly NatsSource[] =>
  infos.flatMap(({ config: { name, metadata = {} } }) => sourceOf(name, metadata) ?? [])

const consumersOf = (source: NatsSource) => [
  { stream: source.stream, consumer: source.consumer },
  { stream: retryStream(source), consumer: 'redrive' },
]

const limited = (value = -1): number | undefined => (value > 0 ? value : undefined)

function streamFacts({ config, state, cluster }: StreamInfo): StreamFacts {
  const maxAge = limited(config.max_age)
  const replicas = cluster?.replicas ?? []
  return {
    name: config.name,
    storage: config.storage,
    replicas: config.num_replicas,
    retention: config.retention,
    discard: config.discard,
    maxMessages: limited(config.max_msgs),
    maxMessagesPerSubject: limited(config.max_msgs_per_subject),
    maxBytes: limited(config.max_bytes),
    maxAgeMs: maxAge === undefined ? undefined : maxAge / NANOS_PER_MS,
    maxMessageBytes: limited(config.max_msg_size),
    messages: state.messages,
    bytes: state.bytes,
    // A single server has no information about a cluster.
    hasLeader: cluster === undefined || (cluster.leader ?? '') !== '',
    behind: replicas
      .filter(({ current, offline }) => !current || offline === true)
      .map(({ name }) => name),
  }
}

const consumerFacts = ({
  stream_name,
  name,
  config,
  num_ack_pending,
}: ConsumerInfo): ConsumerFacts => ({
  stream: stream_name,
  name,
  isInMemory: config.mem_storage === true,
  maxAckPending: limited(config.max_ack_pending),
  ackPending: num_ack_pending,
})

const MONITOR =
  'set the monitoring addresses of all servers: option "monitors", or nats://HOST:4222?monitor=http://HOST:8222; the port is "http" in nats-server.conf'

/** Reads when the servers call `fsync`. Only streams with few replicas depend on it. */
async function readServers(
  facts: NatsFacts,
  { monitors = [], timeoutMs = ANSWER_MS }: NatsOptions,
  reading: Reading,
): Promise<readonly SyncFacts[]> {
  const isNeeded = placedIn(facts).some(
    ({ stream: { storage, replicas } }) => storage === 'file' && replicas < MIN_REPLICAS,
  )
  if (!isNeeded) return []
  const about = { allow: MONITOR, hides: 'loss' } as const
  if (monitors.length === 0) {
    await reading.fact({ what: 'sync_interval', ...about }, () =>
      Promise.reject(new Error('no monitoring address is set')),
    )
    return []
  }
  const found = await Promise.all(
    monitors.map((monitor) =>
      reading.fact({ what: `sync_interval of ${new URL(monitor).host}`, ...about }, () =>
        answerWithin(timeoutMs, syncAt(monitor, timeoutMs)),
      ),
    ),
  )
  return found.filter((one) => one !== undefined)
}

interface Varz {
  readonly server_name?: string
  readonly jetstream?: {
    readonly config?: { readonly sync_interval?: number; readonly sync_always?: boolean }
  }
}

async function syncAt(monitor: string, timeoutMs: number): Promise<SyncFacts> {
  const response = await fetch(new URL('/varz', monitor), {
    signal: AbortSignal.timeout(timeoutMs),
  })
  if (!response.ok) throw new Error(`HTTP ${response.status}`)
  const { server_name: name, jetstream } = (await response.json()) as Varz
  const config = jetstream?.config
  if (config === undefined) throw new Error('the server runs without JetStream')
  const intervalMs = config.sync_always === true ? 0 : (config.sync_interval ?? 0) / NANOS_PER_MS
  return { server: name ?? new URL(monitor).host, intervalMs }
}
