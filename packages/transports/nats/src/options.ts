import type { Duration } from '@redrive/core'
import { type Check, FUNCTION, named, readOptions, type Section } from '@redrive/core/internal'
import type { OutboundEvent } from '@redrive/runtime'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { connectionOptions, isAddress } from './address.ts'
import { type Topology, topologyOf } from './topology.ts'

export interface NatsOptions {
  /**
   * The address, such as `nats://user:password@localhost:4222`; `tls://` requires TLS. List several for a cluster.
   * Default: none; required without `connect`.
   */
  readonly servers?: string | readonly string[]
  /** The stream to consume. An existing one is not changed. */
  readonly stream: string
  /** Name of the durable consumer. It is created if it is missing, and reads the stream from its first message. */
  readonly consumer: string
  /** Subjects of the stream. With them, a missing stream is created as a work queue. Default: none, and the stream must exist. */
  readonly subjects?: readonly string[]
  /** Subjects that a new consumer reads. Default: all of the stream. */
  readonly filterSubjects?: readonly string[]
  /**
   * `'declare'` creates the missing streams and consumers of Redrive. `'verify'` only checks them, for users that may
   * not declare. Default `'declare'`.
   */
  readonly topology?: TopologyMode
  /** The text that the names of the streams of Redrive begin with. Default: `<stream>-<consumer>`. */
  readonly prefix?: string
  /** Copies of each message in new streams of Redrive (1–5, default: as in the stream). */
  readonly replicas?: number
  /**
   * Time after which other consumers get the messages of a crashed consumer. The lease is renewed while handlers run.
   * Only for new consumers: it is their `ack_wait` (at least '1s', default '30s').
   */
  readonly lease?: Duration
  /** Maximum wait for the server's confirmation of a copy. After it, the outcome is unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
  /** Opens a connection, for TLS or credentials. Redrive closes it. Default: `connect` of `@nats-io/transport-node`. */
  readonly connect?: Connect
}

export type TopologyMode = 'declare' | 'verify'
export type Connect = () => Promise<NatsConnection>

export interface NatsSourceOptions {
  /** The address, as in `NatsOptions`. Default: none; required without `connect`. */
  readonly servers?: string | readonly string[]
  /** The stream whose dead letters are drained. */
  readonly stream: string
  /** The consumer that gave them up, of Redrive or of another program. */
  readonly consumer: string
  /** `'declare'` creates the missing streams of Redrive; `'verify'` changes nothing. Default `'declare'`. */
  readonly topology?: TopologyMode
  /** The text that the names of the streams of Redrive begin with. Default: as for the consumer. */
  readonly prefix?: string
  /** Copies of each message in new streams of Redrive (1–5, default: as in the stream). */
  readonly replicas?: number
  /** Maximum wait for the server's confirmation of a replay. After it, the outcome is unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
  /** Opens a connection, as in `NatsOptions`. Default: `connect` of `@nats-io/transport-node`. */
  readonly connect?: Connect
}

export interface NatsSinkOptions {
  /** The address, as in `NatsOptions`. Default: none; required without `connect`. */
  readonly servers?: string | readonly string[]
  /** The subject, or a function that returns it. A stream must contain it. Default: the type of the event. */
  readonly subject?: string | ((event: OutboundEvent) => string)
  /** Maximum wait for the server's confirmation of an event. After it, the outcome is unknown. Default '10s'. */
  readonly confirmTimeout?: Duration
  /** Opens a connection, as in `NatsOptions`. Default: `connect` of `@nats-io/transport-node`. */
  readonly connect?: Connect
}

export interface ConnectionOptions {
  readonly connect: Connect
  /** The function of the user, or the addresses without credentials. They identify the servers. */
  readonly server: Connect | string
  readonly confirmTimeoutMs: number
}

export interface TopologyOptions extends ConnectionOptions {
  readonly topology: Topology
  readonly mode: TopologyMode
  readonly replicas: number | undefined
}

export interface ResolvedOptions extends TopologyOptions {
  readonly subjects: readonly string[] | undefined
  readonly filterSubjects: readonly string[] | undefined
  readonly leaseMs: number
}

export interface ResolvedSinkOptions extends ConnectionOptions {
  readonly subject: (event: OutboundEvent) => string
}

/** 10 s: much longer than a healthy confirmation takes, and short enough to report a server that does not answer. */
const CONFIRM_TIMEOUT_MS = 10_000
/** 30 s: the default of the server, and the default timeout of an attempt. */
const LEASE_MS = 30_000
/** At least 1 s: with less, a pause of Node.js would lose leases. At most a day: the messages of a crashed consumer wait that long. */
const LEASE = { min: 1_000, max: 86_400_000 }
/** Bounds of a wait for the server. An hour: a longer one is a mistake in the unit. */
const WAIT = { min: 1, max: 3_600_000 }

export const resolveOptions = (options: NatsOptions): ResolvedOptions =>
  readOptions('nats()', options, (top) => ({
    ...readTopology(top),
    subjects: top.ifGiven<readonly string[]>('subjects', SUBJECTS),
    filterSubjects: top.ifGiven<readonly string[]>('filterSubjects', SUBJECTS),
    leaseMs: top.duration('lease', LEASE_MS, LEASE),
  }))

/** Options of `nats()` that `natsSource()` does not use. A program may pass one object to both. */
const OF_TRANSPORT = ['subjects', 'filterSubjects', 'lease']

export const resolveSourceOptions = (options: NatsSourceOptions): TopologyOptions =>
  readOptions('natsSource()', options, (top) => {
    for (const key of OF_TRANSPORT) top.raw(key)
    return readTopology(top)
  })

export const resolveSinkOptions = (options: NatsSinkOptions): ResolvedSinkOptions =>
  readOptions('natsSink()', options, (top) => {
    const subject = top.ifGiven<NonNullable<NatsSinkOptions['subject']>>(
      'subject',
      SUBJECT_OR_FUNCTION,
    )
    return {
      ...readConnection(top),
      subject:
        typeof subject === 'function' ? subject : ({ type }: OutboundEvent) => subject ?? type,
    }
  })

function readTopology(top: Section): TopologyOptions {
  const stream = top.required<string>('stream', NAME)
  const consumer = top.required<string>('consumer', NAME)
  const prefix = top.ifGiven<string>('prefix', NAME)
  const isSet = top.raw('replicas') !== undefined
  return {
    ...readConnection(top),
    topology: topologyOf(stream, consumer, prefix),
    mode: top.choice('topology', 'declare', ['declare', 'verify']),
    replicas: isSet ? top.integer('replicas', 1, { min: 1, max: 5 }) : undefined,
  }
}

function readConnection(top: Section): ConnectionOptions {
  const own = top.ifGiven<Connect>('connect', FUNCTION)
  const servers =
    own === undefined
      ? top.required<string | readonly string[]>('servers', SERVERS)
      : top.ifGiven<string | readonly string[]>('servers', SERVERS)
  return {
    connect: own ?? (() => connect(connectionOptions(servers ?? []))),
    // Wrong values are reported together, after all options are read.
    server: own ?? (SERVERS.isValid(servers) ? addressesOf(servers ?? []) : ''),
    confirmTimeoutMs: top.duration('confirmTimeout', CONFIRM_TIMEOUT_MS, WAIT),
  }
}

const addressesOf = (servers: string | readonly string[]): string =>
  [servers]
    .flat()
    .map((server) => server.replace(/[^/]*@/, ''))
    .sort()
    .join()

const SERVERS: Check = {
  isValid: (value) =>
    isAddress(value) || (Array.isArray(value) && value.length > 0 && value.every(isAddress)),
  expected: "an address such as 'nats://localhost:4222', or several for a cluster",
  isSecret: true,
  variables: ['NATS_URL'],
}

/** The server rejects other characters in names, which are parts of subjects and of file names. */
const NAME: Check = {
  isValid: (value) => typeof value === 'string' && /^[^\s.*>/\\]+$/.test(value),
  expected: 'a name without spaces, dots, asterisks, slashes and ">"',
}

const isText = (value: unknown) => typeof value === 'string' && value !== ''

const SUBJECTS: Check = {
  isValid: (value) => Array.isArray(value) && value.length > 0 && value.every(isText),
  expected: "a list of subjects such as ['orders.>']",
}

const SUBJECT_OR_FUNCTION: Check = {
  isValid: (value) => typeof value === 'function' || named('').isValid(value),
  expected: 'a subject, or a function that returns it',
}
