import { RedriveError } from '@redrive/core'
import { isRecord } from '@redrive/core/internal'
import type { ResolvedSourceOptions } from './options.ts'
import { isMissingQueue, type Requests } from './requests.ts'
import { accountOf, isFifoName, isUrl, nameOf, topologyOf } from './topology.ts'

/** The addresses and limits of the queues of one source. */
export interface DeclaredQueues {
  readonly url: string
  /** Undefined: it does not exist, and may not be created. */
  readonly deadLetters: string | undefined
  readonly replayed: string | undefined
  /** The largest message that the queue stores. */
  readonly maxBytes: number
  /** The largest message that the dead-letter queue stores. */
  readonly maxDeadLetterBytes: number
  /** Deliveries after which SQS moves a message to the dead-letter queue. Undefined: it does not. */
  readonly maxReceives: number | undefined
}

/** 1 minute to 14 days: the limits of SQS. */
const RETENTION = { min: 60_000, max: 1_209_600_000 }
const MS_PER_SECOND = 1_000

export interface DeclareOptions extends ResolvedSourceOptions {
  /** How long a new dead-letter queue keeps messages. */
  readonly deadLetterRetentionMs: number
  /** Whether missing queues of Redrive are an error. A control plane waits for them. */
  readonly mustExist: boolean
}

/** Finds the queues, and creates the missing ones of Redrive. Existing queues are not changed. */
export async function declareQueues(
  requests: Requests,
  options: DeclareOptions,
): Promise<DeclaredQueues> {
  const topology = topologyOf(options.queue)
  const url = await existing(requests, options.queue)
  const { RedrivePolicy, MaximumMessageSize } = await read(requests, options.queue, url)
  const policy = policyIn(RedrivePolicy)
  const place = options.deadLetters ?? policy.target ?? topology.deadLetters
  if (isFifoName(nameOf(place)) !== topology.isFifo) throw otherType(topology.queue, nameOf(place))
  const deadLetters = await ensure(requests, place, options, {
    MessageRetentionPeriod: secondsOf(options.deadLetterRetentionMs),
    ...(topology.isFifo ? { FifoQueue: 'true' } : {}),
    ...(MaximumMessageSize === undefined ? {} : { MaximumMessageSize }),
  })
  const replayed = await ensure(requests, topology.replayed, options, {
    MessageRetentionPeriod: secondsOf(RETENTION.max),
  })
  const taken = [url, replayed].find((other) => isSameQueue(other, deadLetters))
  if (taken !== undefined) throw sameQueue(nameOf(taken))
  return {
    url,
    deadLetters,
    replayed,
    maxBytes: Number(MaximumMessageSize ?? DEFAULT_MAX_BYTES),
    maxDeadLetterBytes: await maxBytesOf(requests, deadLetters),
    maxReceives: policy.maxReceives,
  }
}

/** 1 MiB: the default of SQS. */
const DEFAULT_MAX_BYTES = 1_048_576

async function maxBytesOf(requests: Requests, url: string | undefined): Promise<number> {
  if (url === undefined) return DEFAULT_MAX_BYTES
  const { MaximumMessageSize } = await read(requests, nameOf(url), url)
  return Number(MaximumMessageSize ?? DEFAULT_MAX_BYTES)
}

/** Compares account and name: an address can have several hosts. */
const isSameQueue = (one: string | undefined, other: string | undefined) =>
  one !== undefined && other !== undefined && new URL(one).pathname === new URL(other).pathname

const secondsOf = (ms: number) =>
  String(Math.floor(Math.min(RETENTION.max, Math.max(RETENTION.min, ms)) / MS_PER_SECOND))

async function existing(requests: Requests, queue: string): Promise<string> {
  const url = isUrl(queue) ? queue : await requests.urlOf(queue)
  if (url !== undefined) return url
  throw missing(queue, 'Create it, or correct the name, the region or the account.')
}

async function read(requests: Requests, queue: string, url: string) {
  try {
    return await requests.attributes(url, ['RedrivePolicy', 'MaximumMessageSize'])
  } catch (error) {
    if (isMissingQueue(error)) throw missing(queue, 'Create it, or correct the address.', error)
    throw error
  }
}

async function ensure(
  requests: Requests,
  place: string,
  { mode, mustExist }: DeclareOptions,
  attributes: Record<string, string>,
): Promise<string | undefined> {
  if (isUrl(place)) return place
  const account = accountOf(place)
  const url = await requests.urlOf(nameOf(place), account)
  if (url !== undefined) return url
  // A queue that a redrive policy names can belong to another account: it is not created in that of the caller.
  if (mode === 'declare' && account === undefined) return requests.create(nameOf(place), attributes)
  if (!mustExist) return undefined
  if (account === undefined) throw missing(nameOf(place), "Create it, or use topology: 'declare'.")
  throw missing(place, 'The redrive policy names it. Create it, or correct the policy.')
}

interface RedrivePolicy {
  /** ARN of the dead-letter queue. */
  readonly target: string | undefined
  readonly maxReceives: number | undefined
}

function policyIn(text: string | undefined): RedrivePolicy {
  const policy: unknown = text === undefined ? undefined : JSON.parse(text)
  if (!isRecord(policy)) return { target: undefined, maxReceives: undefined }
  const { deadLetterTargetArn: target, maxReceiveCount } = policy
  const maxReceives = Number(maxReceiveCount)
  return {
    target: typeof target === 'string' ? target : undefined,
    maxReceives: Number.isSafeInteger(maxReceives) ? maxReceives : undefined,
  }
}

const missing = (queue: string, fix: string, cause?: unknown) =>
  new RedriveError('TOPOLOGY_MISMATCH', `SQS has no queue "${queue}". ${fix}`, { cause })

const sameQueue = (queue: string) =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The queue "${queue}" cannot be its own dead-letter queue, and confirmations need a separate queue. Choose another queue with "deadLetters".`,
  )

const otherType = (queue: string, deadLetters: string) =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The queue "${queue}" and its dead-letter queue "${deadLetters}" must both be FIFO queues, or neither. Choose another queue with "deadLetters".`,
  )
