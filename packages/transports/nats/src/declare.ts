import { RedriveError } from '@redrive/core'
import {
  type ConsumerInfo,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  type StreamConfig,
  type StreamInfo,
} from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { messageOf } from './connection.ts'
import type { ResolvedOptions, TopologyOptions } from './options.ts'
import type { PullLimits } from './pull.ts'
import {
  consumerOf,
  DRAIN_LEASE_MS,
  type NewConsumer,
  type NewStream,
  retryConsumerOf,
  streamsOf,
  workerOf,
  workQueueOf,
} from './specs.ts'
import { checkConsumer, checkOwn, mismatch, missing } from './verify.ts'

/** 2.12: the first server with message schedules, which delay retries. */
const OLDEST_SERVER = [2, 12] as const
const NANOS_PER_MS = 1_000_000

/** The API of the server for streams and consumers, without the check of the account: a user may not be allowed to read it. */
export const managerOf = (connection: NatsConnection): Promise<JetStreamManager> =>
  jetstreamManager(connection, { checkAPI: false })

/** Creates or verifies everything that a consumer needs. Returns the limits of its two queues. */
export async function declareForConsumer(
  connection: NatsConnection,
  options: ResolvedOptions,
): Promise<{ readonly fresh: PullLimits; readonly retries: PullLimits }> {
  requireVersion(connection)
  const manager = await managerOf(connection)
  const { topology, subjects } = options
  const { stream: name } = topology
  const stream =
    (await streamInfo(manager, name)) ??
    (subjects === undefined || options.mode === 'verify'
      ? missing(`stream "${name}"`, subjects === undefined ? `Create it, or pass "subjects".` : '')
      : await addStream(manager, workQueueOf(name, subjects), options))
  const consumer = await ensureConsumer(manager, name, consumerOf(options), options)
  checkConsumer(topology, consumer)
  await declareOwn(manager, stream, options)
  const retry = await ensureConsumer(
    manager,
    topology.retry.stream,
    retryConsumerOf(options),
    options,
  )
  return { fresh: limitsOf(consumer), retries: limitsOf(retry) }
}

/** The streams and limits that a control plane reads. */
export interface DeclaredSource {
  readonly deadLetters: PullLimits
  readonly confirmations: PullLimits
  /** The stream of the producers. */
  readonly config: StreamConfig
}

/** Creates or verifies the streams of Redrive for a control plane. Undefined: they are missing, and may not be created. */
export async function declareForSource(
  connection: NatsConnection,
  options: TopologyOptions,
): Promise<DeclaredSource | undefined> {
  const manager = await managerOf(connection)
  const { topology, mode } = options
  const { stream: name, dead } = topology
  const stream = await streamInfo(manager, name)
  if (mode === 'verify' && (await streamInfo(manager, dead.stream)) === undefined) return undefined
  if (stream === undefined)
    return missing(`stream "${name}"`, 'Create it, or start a consumer first.')
  requireVersion(connection)
  const deadStream = await declareOwn(manager, stream, options)
  const subjects = [dead.deadLetters, dead.quarantine, ...dead.advisories]
  // Another stream of the user may contain the advisories.
  const kept = subjects.filter((subject) => deadStream.config.subjects.includes(subject))
  const { deadConsumer, confirmationConsumer, confirmations } = dead
  const drained = await ensureConsumer(
    manager,
    dead.stream,
    workerOf(deadConsumer, kept, DRAIN_LEASE_MS),
    options,
  )
  const confirmed = await ensureConsumer(
    manager,
    dead.stream,
    workerOf(confirmationConsumer, [confirmations], DRAIN_LEASE_MS),
    options,
  )
  const limits = { deadLetters: limitsOf(drained), confirmations: limitsOf(confirmed) }
  return { ...limits, config: stream.config }
}

/** Creates or verifies the two streams of Redrive; returns the one with dead letters. */
async function declareOwn(
  manager: JetStreamManager,
  { config: { num_replicas } }: StreamInfo,
  options: TopologyOptions,
): Promise<StreamInfo> {
  const { topology } = options
  const { retry, deadLetters } = streamsOf(topology, options.replicas ?? num_replicas)
  await ensureStream(manager, options, retry)
  try {
    return await ensureStream(manager, options, deadLetters)
  } catch (error) {
    if (!isSubjectOverlap(error)) throw error
    const { advisories } = topology.dead
    const subjects = deadLetters.subjects.filter((subject) => !advisories.includes(subject))
    return ensureStream(manager, options, { ...deadLetters, subjects })
  }
}

async function ensureStream(
  manager: JetStreamManager,
  options: TopologyOptions,
  config: NewStream,
): Promise<StreamInfo> {
  const known =
    (await streamInfo(manager, config.name)) ??
    (options.mode === 'verify'
      ? missing(`stream "${config.name}"`)
      : await addStream(manager, config, options))
  checkOwn(options.topology, known, config)
  return known
}

async function addStream(
  manager: JetStreamManager,
  config: NewStream,
  { replicas }: TopologyOptions,
): Promise<StreamInfo> {
  try {
    return await manager.streams.add({ num_replicas: replicas ?? 1, ...config })
  } catch (error) {
    // Another process has just created it.
    const known = isInUse(error) ? await streamInfo(manager, config.name) : undefined
    if (known !== undefined) return known
    if (isSubjectOverlap(error)) {
      const [subject] = config.subjects ?? []
      throw mismatch(
        `Stream "${config.name}" cannot be created: another stream contains its subjects.`,
        `Change the subjects of the other stream so that they do not include "${subject}".`,
        error,
      )
    }
    throw error
  }
}

async function ensureConsumer(
  manager: JetStreamManager,
  stream: string,
  config: NewConsumer,
  { mode }: TopologyOptions,
): Promise<ConsumerInfo> {
  const name = config.durable_name
  const known = await existing(manager.consumers.info(stream, name))
  if (known !== undefined) return known
  if (mode === 'verify') return missing(`consumer "${name}" of stream "${stream}"`)
  try {
    return await manager.consumers.add(stream, config)
  } catch (error) {
    // Another process has just created it, with other options.
    const made = await existing(manager.consumers.info(stream, name))
    if (made !== undefined) return made
    throw mismatch(
      `Consumer "${name}" of stream "${stream}" cannot be created: ${messageOf(error)}.`,
      '',
      error,
    )
  }
}

const limitsOf = ({ config: { ack_wait, max_batch, max_expires } }: ConsumerInfo): PullLimits => ({
  leaseMs: (ack_wait ?? DRAIN_LEASE_MS * NANOS_PER_MS) / NANOS_PER_MS,
  maxBatch: limited(max_batch),
  maxWaitMs: limited(max_expires) / NANOS_PER_MS,
})

/** Returns a limit of a consumer. The server omits it, or writes 0 or -1, when there is none. */
const limited = (value = 0): number => (value > 0 ? value : Number.POSITIVE_INFINITY)

const streamInfo = (manager: JetStreamManager, name: string): Promise<StreamInfo | undefined> =>
  existing(manager.streams.info(name))

/** Returns undefined when the stream or consumer does not exist. */
export async function existing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof JetStreamApiError && error.status === 404) return undefined
    throw error
  }
}

const SUBJECTS_OVERLAP = 10_065
const NAME_IN_USE = 10_058
const codeOf = (error: unknown) => {
  const cause = error instanceof RedriveError ? error.cause : error
  return cause instanceof JetStreamApiError ? cause.code : undefined
}
const isSubjectOverlap = (error: unknown) => codeOf(error) === SUBJECTS_OVERLAP
const isInUse = (error: unknown) => codeOf(error) === NAME_IN_USE

function requireVersion({ info }: NatsConnection): void {
  const [major = 0, minor = 0] = (info?.version ?? '').split('.').map(Number)
  const [oldestMajor, oldestMinor] = OLDEST_SERVER
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return
  throw mismatch(
    `The server has version ${info?.version}. Redrive needs ${OLDEST_SERVER.join('.')} or newer, because the server delays retries.`,
    'Update the server.',
  )
}
