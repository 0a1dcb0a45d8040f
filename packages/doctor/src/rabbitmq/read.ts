import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { text } from 'node:stream/consumers'
import type { Severity, Unreadable } from '../finding.ts'
import { ANSWER_MS, firstAnswer, Reading } from '../reading.ts'
import type { TlsOptions } from '../tls.ts'
import { askAmqp } from './amqp.ts'
import type {
  BindingFacts,
  ExchangeFacts,
  NodeFacts,
  PolicyFacts,
  QueueFacts,
  RabbitmqFacts,
  Settings,
} from './facts.ts'

export interface RabbitmqOptions {
  /**
   * The management API with credentials: `http://user:password@host:15672`. It is only read: the tag
   * `monitoring` and empty permissions on the vhost are enough.
   */
  readonly management?: string
  /**
   * The address `amqp://…`, for a broker without the management API; then only the version is known. With
   * several addresses, the next one is tried when one does not answer.
   */
  readonly amqp?: string | readonly string[]
  /**
   * The vhost. Default: with the management API and without `queues` and `deadLetterQueues`, every vhost that the user
   * may access; otherwise `'/'`.
   */
  readonly vhost?: string
  /** Source queues to check, with the queues that belong to them. Default: all queues that dead-letter or have a `.dlq`. */
  readonly queues?: readonly string[]
  /** Dead-letter queues that cannot be recognised by their name or route. Default none. */
  readonly deadLetterQueues?: readonly string[]
  /** Maximum duration of a handler, in ms; compared with the consumer timeout of the broker. Default: not compared. */
  readonly handlerTimeoutMs?: number
  /** Certificates for `https://` and `amqps://`. Default: the authorities of Node.js, and no client certificate. */
  readonly tls?: TlsOptions
  /** Maximum time for one answer of the broker, in ms. Default 10,000. */
  readonly timeoutMs?: number
}

/** 10,000 queues. With more, check one vhost or some `queues` at a time. */
const MAX_QUEUES = 10_000

const NEEDS_MONITORING =
  'give the user the tag: rabbitmqctl set_user_tags USER monitoring; and access to the vhost: rabbitmqctl set_permissions --vhost VHOST USER "" "" ""'
const NEEDS_MANAGEMENT =
  'turn the management API on: rabbitmq-plugins enable rabbitmq_management; and set its address'

/** Reads the live settings of the broker, including policies. Changes nothing, and does not throw when a fact cannot be read. */
export async function readRabbitmq(options: RabbitmqOptions): Promise<RabbitmqFacts> {
  const { vhost = '/', queues = [], deadLetterQueues = [] } = options
  const [amqp = 'amqp://guest@localhost'] = [options.amqp ?? []].flat()
  const address = new URL(options.management ?? amqp)
  const known = {
    vhost,
    user: decodeURIComponent(address.username),
    isLoopback: isLoopback(address.hostname),
    sources: queues,
    deadLetterQueues,
    handlerTimeoutMs: options.handlerTimeoutMs,
  }
  return options.management === undefined
    ? { ...known, ...(await readByAmqp(options)) }
    : { ...known, ...(await readByManagement(options, options.management, vhost)) }
}

type Live = Pick<
  RabbitmqFacts,
  'version' | 'nodes' | 'queues' | 'exchanges' | 'bindings' | 'policies' | 'unreadable'
>

const UNKNOWN = {
  nodes: undefined,
  queues: undefined,
  exchanges: undefined,
  bindings: undefined,
  policies: undefined,
} as const

async function readByAmqp({
  amqp,
  timeoutMs = ANSWER_MS,
  tls = {},
}: RabbitmqOptions): Promise<Live> {
  const reading = new Reading()
  const about = {
    what: 'version',
    allow: 'check the address, user and password',
    hides: 'loss',
  } as const
  const version = await reading.fact(about, () =>
    firstAnswer([amqp ?? 'amqp://localhost'].flat(), (url) => askAmqp(url, timeoutMs, tls)),
  )
  reading.unreadable.push({
    what: 'queues, policies and nodes',
    why: 'AMQP cannot read them, and no management API is configured',
    allow: NEEDS_MANAGEMENT,
    hides: 'loss',
  })
  return { version, ...UNKNOWN, unreadable: reading.unreadable }
}

async function readByManagement(
  options: RabbitmqOptions,
  url: string,
  vhost: string,
): Promise<Live> {
  const reading = new Reading()
  const ask = managementApi(url, options)
  const of = encodeURIComponent(vhost)
  const overview = await reading.fact(
    { what: 'management API', allow: `${NEEDS_MANAGEMENT}; ${NEEDS_MONITORING}`, hides: 'loss' },
    async () => (await ask('overview')) as { readonly rabbitmq_version?: string },
  )
  const version = overview?.rabbitmq_version
  // Without this answer, all other requests would fail too, so one reason is enough.
  if (overview === undefined) return { version, ...UNKNOWN, unreadable: reading.unreadable }
  const list = <T>(what: string, path: string, as: (row: Row) => T, hides: Severity = 'loss') =>
    reading.fact({ what, allow: NEEDS_MONITORING, hides }, async () =>
      rowsOf(await ask(path)).map(as),
    )
  return {
    version,
    nodes: await list('nodes', 'nodes', asNode),
    queues: await list('queues', `queues/${of}${COLUMNS}`, asQueue),
    exchanges: await list('exchanges', `exchanges/${of}`, asExchange),
    bindings: await list('bindings', `bindings/${of}`, asBinding),
    policies: await list('policies', `policies/${of}`, asPolicy, 'advice'),
    unreadable: reading.unreadable,
  }
}

/** The vhosts of a broker, or why they cannot be read. */
export interface Vhosts {
  readonly names: readonly string[]
  readonly unreadable: readonly Unreadable[]
}

/** Reads the vhosts that the user may access, `/` first. */
export async function readVhosts(options: RabbitmqOptions, url: string): Promise<Vhosts> {
  const reading = new Reading()
  const rows = await reading.fact(
    { what: 'vhosts', allow: NEEDS_MONITORING, hides: 'loss' },
    async () => rowsOf(await managementApi(url, options)('vhosts?columns=name')),
  )
  const names = (rows ?? []).map(({ name }) => String(name))
  return {
    names: names.toSorted((one, other) => Number(other === '/') - Number(one === '/')),
    unreadable: reading.unreadable,
  }
}

/** Columns without statistics, which make this answer slow. */
const COLUMNS =
  '?columns=name,type,durable,auto_delete,exclusive,arguments,effective_policy_definition,policy,members,online'

type Row = Readonly<Record<string, unknown>>

function rowsOf(answer: unknown): readonly Row[] {
  if (!Array.isArray(answer)) throw new Error('the response is not a list')
  if (answer.length > MAX_QUEUES)
    throw new Error(`more than ${MAX_QUEUES} entries: set the option "queues"`)
  return answer as readonly Row[]
}

const asNode = (row: Row): NodeFacts => ({
  name: String(row['name']),
  isRunning: row['running'] === true,
  memoryAlarm: row['mem_alarm'] === true,
  diskAlarm: row['disk_free_alarm'] === true,
  cutOffFrom: namesIn(row['partitions']) ?? [],
})

const asQueue = (row: Row): QueueFacts => ({
  name: String(row['name']),
  type: typeof row['type'] === 'string' ? row['type'] : 'classic',
  isDurable: row['durable'] === true,
  isAutoDelete: row['auto_delete'] === true,
  isExclusive: row['exclusive'] === true,
  arguments: withoutX((row['arguments'] ?? {}) as Settings),
  policy: (row['effective_policy_definition'] ?? {}) as Settings,
  policyName: typeof row['policy'] === 'string' ? row['policy'] : undefined,
  members: namesIn(row['members']),
  online: namesIn(row['online']),
})

const asExchange = (row: Row): ExchangeFacts => ({
  name: String(row['name']),
  type: String(row['type']),
  isDurable: row['durable'] === true,
  isAutoDelete: row['auto_delete'] === true,
})

const asBinding = (row: Row): BindingFacts => ({
  exchange: String(row['source']),
  to: String(row['destination']),
  toKind: row['destination_type'] === 'exchange' ? 'exchange' : 'queue',
  key: String(row['routing_key']),
})

const asPolicy = (row: Row): PolicyFacts => ({
  name: String(row['name']),
  pattern: String(row['pattern']),
  applyTo: String(row['apply-to']),
  priority: Number(row['priority'] ?? 0),
  definition: (row['definition'] ?? {}) as Settings,
})

const namesIn = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) ? value.map(String) : undefined

const withoutX = (settings: Settings): Settings =>
  Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [name.replace(/^x-/, ''), value]),
  )

function managementApi(
  url: string,
  { timeoutMs = ANSWER_MS, tls }: RabbitmqOptions,
): (path: string) => Promise<unknown> {
  const { username, password, origin, pathname } = new URL(url)
  const base = new URL(`${pathname.replace(/\/$/, '')}/api/`, origin)
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
  const request = tls === undefined || base.protocol === 'http:' ? fetched : requested(tls)
  return async (path) => {
    const signal = AbortSignal.timeout(timeoutMs)
    const { status, json } = await request(new URL(path, base), {
      headers: { authorization },
      signal,
    })
    if (status < 200 || status > 299)
      throw new Error(`${base.origin} returned status ${status} for /api/${path.split('?')[0]}`)
    return json()
  }
}

interface RequestOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

interface Answer {
  readonly status: number
  readonly json: () => Promise<unknown>
}

async function fetched(url: URL, init: RequestOptions): Promise<Answer> {
  const response = await fetch(url, init)
  return { status: response.status, json: () => response.json() }
}

/** Returns a function that requests with certificates, which `fetch` has no option for. */
const requested =
  (tls: TlsOptions) =>
  async (url: URL, init: RequestOptions): Promise<Answer> => {
    const sent = get(url, { ...init, ...tls })
    // An error after the response is an error of the response, too.
    sent.on('error', () => undefined)
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    const body = await text(response)
    return { status: response.statusCode ?? 0, json: async () => JSON.parse(body) as unknown }
  }

const isLoopback = (host: string) => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host)
