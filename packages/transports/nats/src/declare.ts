import { RedriveError } from '@redrive/core'
import {
  AckPolicy,
  type ConsumerConfig,
  type ConsumerInfo,
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { messageOf } from './connection.ts'
import type { ResolvedOptions, TopologyOptions } from './options.ts'
import type { PullLimits } from './pull.ts'
import { DUPLICATE_WINDOW_MS } from './topology.ts'
import { checkConsumer, checkOwn, mismatch, missing, type NewStream, ownerOf } from './verify.ts'

/** 2.12: the first server with message schedules, which delay retries. */
const OLDEST_SERVER = [2, 12] as const
const NANOS_PER_MS = 1_000_000
/** 20,000 unfinished messages of all processes together. The default of the server, 1,000, can stop a large group of consumers. */
const MAX_ACK_PENDING = 20_000
/** 30 s: the dead letters of a crashed control plane are available again soon. */
const DRAIN_LEASE_MS = 30_000

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
      : await addStream(manager, { name, subjects: [...subjects], ...WORK_QUEUE }, options))
  const consumer = await ensureConsumer(manager, name, consumerOf(options), options)
  checkConsumer(topology, consumer)
  await declareOwn(manager, stream, options)
  const retry = await ensureConsumer(
    manager,
    topology.retry.stream,
    workerOf(topology.retry.consumer, [topology.retry.subject], options.leaseMs),
    options,
  )
  return { fresh: limitsOf(consumer), retries: limitsOf(retry) }
}

/** What a control plane reads. */
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
  const { retry, dead } = topology
  const shared = {
    ...WORK_QUEUE,
    num_replicas: options.replicas ?? num_replicas,
    metadata: ownerOf(topology),
  }
  await ensureStream(manager, options, {
    ...shared,
    name: retry.stream,
    subjects: [retry.subject, `${retry.delayed}.>`],
    allow_msg_schedules: true,
    // The server removes a schedule with a roll-up, and accepts schedules only in streams that discard old messages. The
    // stream has no limits, so it discards nothing.
    allow_rollup_hdrs: true,
    discard: DiscardPolicy.Old,
  })
  const own = [dead.deadLetters, dead.quarantine, dead.confirmations]
  const config = { ...shared, name: dead.stream, allow_msg_ttl: true, discard: DiscardPolicy.New }
  try {
    return await ensureStream(manager, options, {
      ...config,
      subjects: [...own, ...dead.advisories],
    })
  } catch (error) {
    if (!isSubjectOverlap(error)) throw error
    return ensureStream(manager, options, { ...config, subjects: own })
  }
}

const WORK_QUEUE = {
  retention: RetentionPolicy.Workqueue,
  storage: StorageType.File,
  duplicate_window: DUPLICATE_WINDOW_MS * NANOS_PER_MS,
} as const

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

type NewConsumer = Partial<ConsumerConfig> & { readonly durable_name: string }

const consumerOf = ({ topology, filterSubjects, leaseMs }: ResolvedOptions): NewConsumer => ({
  ...workerOf(topology.consumer, filterSubjects ?? [], leaseMs),
})

const workerOf = (name: string, subjects: readonly string[], leaseMs: number): NewConsumer => ({
  durable_name: name,
  ack_policy: AckPolicy.Explicit,
  ack_wait: leaseMs * NANOS_PER_MS,
  // Redrive counts deliveries itself. With a limit, the server would leave messages in the stream without a trace.
  max_deliver: -1,
  max_ack_pending: MAX_ACK_PENDING,
  ...(subjects.length === 0 ? {} : { filter_subjects: [...subjects] }),
})

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
