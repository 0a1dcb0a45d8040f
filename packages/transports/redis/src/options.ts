import type { Duration } from '@redrive/core'
import { type Check, named, readOptions, type Section } from '@redrive/core/internal'
import { isByteClient, type RedisClient } from '@redrive/redis-internal'
import type { OutboundEvent } from '@redrive/runtime'

export interface RedisStreamOptions {
  /**
   * A connected client of `ioredis` or of `@redis/client` (or `redis`), or a cluster of either. The caller owns it:
   * it is never closed. It must be connected to the primary, never to a replica.
   */
  readonly client: RedisClient
  /** The stream to consume. A missing stream is created. */
  readonly stream: string
  /** The consumer group. A missing group is created. Retries and dead letters belong to a stream and a group. */
  readonly group: string
  /** Start position of a new group. Default `'earliest'`, which skips nothing. */
  readonly from?: 'earliest' | 'latest'
  /**
   * The field of an entry that contains the body; the other fields are headers. The body of an entry without this
   * field is a JSON object of all its fields. Default `'body'`.
   */
  readonly body?: string
  /**
   * Time after which other consumers take over the messages of a crashed consumer. The lease is renewed while
   * handlers run ('1s'–'1d', default '30s').
   */
  readonly lease?: Duration
  /** Maximum wait for a response of the server. After it, the outcome is unknown ('1ms'–'1h', default '5s'). */
  readonly timeout?: Duration
}

export type RedisStreamSourceOptions = Pick<
  RedisStreamOptions,
  'client' | 'stream' | 'group' | 'body' | 'timeout'
>

export interface RedisStreamSinkOptions
  extends Pick<RedisStreamOptions, 'client' | 'body' | 'timeout'> {
  /** The stream for events, or a function that returns the stream of an event. */
  readonly stream: string | ((event: OutboundEvent) => string)
}

export interface ResolvedSourceOptions {
  readonly client: RedisClient
  readonly stream: string
  readonly group: string
  readonly body: string
  readonly timeoutMs: number
}

export interface ResolvedOptions extends ResolvedSourceOptions {
  readonly from: 'earliest' | 'latest'
  readonly leaseMs: number
}

export interface ResolvedSinkOptions {
  readonly client: RedisClient
  readonly name: string
  readonly stream: (event: OutboundEvent) => string
  readonly body: string
  readonly timeoutMs: number
}

/** 30 s: the default timeout of an attempt. A crashed consumer then delays messages no longer than a slow one. */
const LEASE_MS = 30_000
/**
 * At least 1 s: with less, a pause of Node.js would lose leases. At most a day, because the messages of a crashed
 * consumer wait for this time.
 */
const LEASE = { min: 1_000, max: 86_400_000 }
/** 5 s: much longer than any healthy response. */
const TIMEOUT_MS = 5_000
/** At most an hour: a longer one is a mistake in the unit. */
const TIMEOUT = { min: 1, max: 3_600_000 }
const BODY_FIELD = 'body'

export function resolveOptions(options: RedisStreamOptions): ResolvedOptions {
  return readOptions('redisStream()', options, (top) => ({
    ...readCommon(top),
    from: top.choice('from', 'earliest', ['earliest', 'latest']),
    leaseMs: top.duration('lease', LEASE_MS, LEASE),
  }))
}

/** Options of `redisStream()` that `redisStreamSource()` does not use. A program may pass one object to both. */
const OF_TRANSPORT = ['from', 'lease']

export function resolveSourceOptions(options: RedisStreamSourceOptions): ResolvedSourceOptions {
  return readOptions('redisStreamSource()', options, (top) => {
    for (const key of OF_TRANSPORT) top.raw(key)
    return readCommon(top)
  })
}

export function resolveSinkOptions(options: RedisStreamSinkOptions): ResolvedSinkOptions {
  return readOptions('redisStreamSink()', options, (top) => {
    const stream = top.required<RedisStreamSinkOptions['stream']>('stream', STREAM_OF_EVENT)
    return {
      ...readClient(top),
      body: top.ifGiven<string>('body', FIELD) ?? BODY_FIELD,
      name: typeof stream === 'string' ? `redis ${stream}` : 'redis',
      stream: typeof stream === 'string' ? () => stream : stream,
    }
  })
}

function readCommon(top: Section): ResolvedSourceOptions {
  return {
    ...readClient(top),
    stream: top.required('stream', STREAM),
    group: top.required('group', GROUP),
    body: top.ifGiven<string>('body', FIELD) ?? BODY_FIELD,
  }
}

/** Reads the client and the timeout, which all calls of this package have. */
export function readClient(top: Section): Pick<ResolvedSourceOptions, 'client' | 'timeoutMs'> {
  return {
    client: top.required('client', CLIENT),
    timeoutMs: top.duration('timeout', TIMEOUT_MS, TIMEOUT),
  }
}

const CLIENT: Check = { isValid: isByteClient, expected: 'a client of ioredis or @redis/client' }

/** A brace in a name selects the slot of a cluster. With a wrong one, the keys would be in two slots. */
const hasUsableBraces = (name: string) =>
  !/[{}]/.test(name) || /^[^{}]*\{[^{}]+\}[^{}]*$/.test(name)

const isStream = (value: unknown) =>
  typeof value === 'string' && value !== '' && hasUsableBraces(value)

const STREAM: Check = {
  isValid: isStream,
  expected: 'the name of a stream, without braces or with one text in braces',
}
const STREAM_OF_EVENT: Check = {
  isValid: (value) => typeof value === 'function' || isStream(value),
  expected: 'the name of a stream, or a function that returns it',
}
const GROUP: Check = {
  isValid: (value) => typeof value === 'string' && /^[^{}]+$/.test(value),
  expected: 'the name of a consumer group, without braces',
}
const FIELD: Check = named('the name of a field')
