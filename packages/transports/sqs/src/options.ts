import type { Duration } from '@redrive/core'
import { type Check, readOptions, type Section, withMethods } from '@redrive/core/internal'
import type { OutboundEvent } from '@redrive/runtime'
import { SQSClient } from '@aws-sdk/client-sqs'
import { isUrl, nameOf } from './topology.ts'

/** The part of `SQSClient` that Redrive uses. */
export type SqsClient = Pick<SQSClient, 'send'>

export interface SqsOptions {
  /** The queue to consume: its name or its URL. It must exist, and is not changed. */
  readonly queue: string
  /**
   * The client. The caller owns it: it is never closed. Default: `new SQSClient({})`, which reads region and
   * credentials from the environment.
   */
  readonly client?: SqsClient
  /**
   * Name or URL of the dead-letter queue. Default: that of the redrive policy of the queue, else `<queue>-dlq`, which
   * is created.
   */
  readonly deadLetters?: string
  /**
   * `'declare'` creates the missing queues of Redrive. `'verify'` only checks them, for roles that may not create
   * queues. Default `'declare'`.
   */
  readonly topology?: TopologyMode
  /**
   * Time after which other consumers get the messages of a crashed consumer: the visibility timeout of each message.
   * It is renewed while handlers run ('2s'–'6h', default '30s').
   */
  readonly lease?: Duration
  /**
   * Maximum wait of one request for messages ('1s'–'20s', default '5s'). An idle consumer sends a request after each.
   * A pause and a stop take as long. At most half of the lease.
   */
  readonly wait?: Duration
  /** Maximum wait for a response of SQS. After it, the outcome is unknown ('100ms'–'1h', default '10s'). */
  readonly timeout?: Duration
  /**
   * True: a message that Amazon SNS forwarded is unwrapped. The handler gets the message and the attributes that its
   * producer published. Default false.
   */
  readonly unwrapSns?: boolean
}

export type TopologyMode = 'declare' | 'verify'

export type SqsSourceOptions = Pick<
  SqsOptions,
  'queue' | 'client' | 'deadLetters' | 'topology' | 'timeout'
>

export type SqsHandlerOptions = SqsSourceOptions & Pick<SqsOptions, 'unwrapSns'>

export interface SqsSinkOptions extends Pick<SqsOptions, 'client' | 'timeout'> {
  /** Name or URL of the queue for events, or a function that returns it. */
  readonly queue: string | ((event: OutboundEvent) => string)
}

export interface ResolvedSourceOptions {
  readonly queue: string
  readonly client: SqsClient
  /** Ends the client, unless the caller owns it. */
  readonly closeClient: () => void
  readonly deadLetters: string | undefined
  readonly mode: TopologyMode
  readonly timeoutMs: number
}

export interface ResolvedOptions extends ResolvedSourceOptions {
  readonly leaseMs: number
  readonly waitMs: number
  readonly unwrapSns: boolean
}

export interface ResolvedSinkOptions {
  readonly client: SqsClient
  readonly closeClient: () => void
  readonly queue: (event: OutboundEvent) => string
  readonly timeoutMs: number
}

/** 30 s: the default of SQS, and the default timeout of an attempt. */
const LEASE_MS = 30_000
/** At least 2 s: with less, a pause of Node.js would lose leases. At most 6 h: SQS allows 12 h for all leases of a delivery. */
const LEASE = { min: 2_000, max: 21_600_000 }
/** 5 s: an idle consumer sends 12 requests per minute, and a stop takes no longer. */
const WAIT_MS = 5_000
/** At least 1 s: with 0, SQS reads only a part of its servers. At most 20 s, the limit of SQS. */
const WAIT = { min: 1_000, max: 20_000 }
/** 10 s: much longer than any healthy response. */
const TIMEOUT_MS = 10_000
/** At least 100 ms: with less, healthy responses are late. At most an hour: a longer one is a mistake in the unit. */
const TIMEOUT = { min: 100, max: 3_600_000 }

export function resolveOptions(options: SqsOptions): ResolvedOptions {
  return readOptions('sqs()', options, (top) => {
    const resolved = {
      ...readQueue(top),
      leaseMs: top.duration('lease', LEASE_MS, LEASE),
      waitMs: top.duration('wait', WAIT_MS, WAIT),
      unwrapSns: top.boolean('unwrapSns', false),
    }
    if (resolved.waitMs * 2 > resolved.leaseMs) {
      top.problem(
        'wait',
        'must be at most half of "lease": a message may be as old when it arrives',
      )
    }
    return resolved
  })
}

/** Options of `sqs()` that `sqsSource()` does not use. A program may pass one object to both. */
const OF_TRANSPORT = ['lease', 'wait', 'unwrapSns']

export function resolveSourceOptions(options: SqsSourceOptions): ResolvedSourceOptions {
  return readOptions('sqsSource()', options, (top) => {
    for (const key of OF_TRANSPORT) top.raw(key)
    return readQueue(top)
  })
}

export function resolveSinkOptions(options: SqsSinkOptions): ResolvedSinkOptions {
  return readOptions('sqsSink()', options, (top) => {
    const queue = top.required<SqsSinkOptions['queue']>('queue', QUEUE_OF_EVENT)
    return {
      ...readClient(top),
      queue: typeof queue === 'function' ? queue : () => queue,
    }
  })
}

/** Reads the options of a queue, which the transport, its handler for Lambda and the source have. */
export function readQueue(top: Section): ResolvedSourceOptions {
  return {
    ...readClient(top),
    queue: top.required('queue', QUEUE),
    deadLetters: top.ifGiven<string>('deadLetters', QUEUE),
    mode: top.choice('topology', 'declare', ['declare', 'verify']),
  }
}

function readClient(
  top: Section,
): Pick<ResolvedSourceOptions, 'client' | 'closeClient' | 'timeoutMs'> {
  const timeoutMs = top.duration('timeout', TIMEOUT_MS, TIMEOUT)
  const given = top.ifGiven<SqsClient>('client', CLIENT)
  if (given !== undefined) return { timeoutMs, client: given, closeClient: () => undefined }
  const client = new SQSClient({})
  return { timeoutMs, client, closeClient: () => client.destroy() }
}

const CLIENT: Check = withMethods('a client of @aws-sdk/client-sqs', ['send'])

const isQueue = (value: unknown) =>
  typeof value === 'string' &&
  (isUrl(value) || !/[/:]/.test(value)) &&
  /^[\w-]{1,80}(\.fifo)?$/.test(nameOf(value))

const QUEUE: Check = {
  isValid: isQueue,
  expected: "the name or the URL of a queue, such as 'orders'",
}
const QUEUE_OF_EVENT: Check = {
  isValid: (value) => typeof value === 'function' || isQueue(value),
  expected: 'the name or the URL of a queue, or a function that returns it',
}
