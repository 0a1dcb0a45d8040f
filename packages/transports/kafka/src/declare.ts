import { Admin, type Base, type BaseOptions } from '@platformatic/kafka'
import { RedriveError } from '@redrive/core'
import { isError, missingNoBroker } from './protocol/client.ts'
import { refuseCollision } from './name-collisions.ts'
import type { Topology, TopicSpec } from './topology.ts'

/** A topic that exists. */
interface FoundTopic {
  readonly partitions: number
  readonly replicas: number
}

/** `resourceType` of a topic in the protocol. */
const TOPIC = 2 as const
const FOREVER = -1
/** 30 s: a busy controller creates topics one after the other. */
const ANSWER_MS = 30_000
/** `configOperation` that sets a value. */
const SET = 0 as const

export interface PrepareOptions {
  /** Whether missing topics are created; if false, they must exist. */
  readonly isDeclaring: boolean
  /** Whether the consumer starts; then its names are compared with those of other groups. */
  readonly isFirst: boolean
}

/**
 * Creates missing topics and checks existing ones. Returns the number of partitions of the source. Rejects with
 * one sentence for each problem.
 */
export async function prepare(
  options: BaseOptions,
  topology: Topology,
  { isDeclaring, isFirst }: PrepareOptions,
): Promise<number> {
  const adminOptions = { ...options, requestTimeout: ANSWER_MS, retries: 5, retryDelay: 200 }
  const admin = missingNoBroker(new Admin(adminOptions))
  try {
    const source = await find(admin, topology.topic)
    if (source === undefined) throw missingSource(topology.topic)
    if (isFirst) await refuseCollision(admin, topology)
    const specs = [...topology.retries, topology.deadLetters, topology.replayed]
    if (isDeclaring) {
      const maxBytes = await copyLimitOf(admin, topology.topic)
      const sized = specs.map((spec) => ({ ...spec, maxBytes }))
      await createMissing(admin, sized, source)
    }
    const problems = await problemsOf(admin, specs, source)
    if (problems.length > 0) throw topologyMismatch(topology.topic, problems)
    return source.partitions
  } finally {
    await admin.close()
  }
}

async function find(client: Base, topic: string): Promise<FoundTopic | undefined> {
  try {
    const { topics } = await client.metadata({ topics: [topic], forceUpdate: true, retries: 0 })
    const partitions = topics.get(topic)?.partitions ?? []
    return { partitions: partitions.length, replicas: partitions[0]?.replicas.length ?? 1 }
  } catch (error) {
    // The client library reports this only in the error message.
    if (error instanceof Error && error.message.startsWith('Unknown topic')) return undefined
    throw error
  }
}

/** Returns the topics that exist. Consumers of other libraries create theirs with the first dead letter. */
export async function existing(
  client: Base,
  topics: readonly string[],
): Promise<readonly string[]> {
  const found = await Promise.all(topics.map((topic) => find(client, topic)))
  return topics.filter((_, at) => found[at] !== undefined)
}

/** A topic to create or to change. */
interface WantedTopic extends TopicSpec {
  /** Smallest limit of a record. Undefined: as the cluster sets it. */
  readonly maxBytes: number | undefined
}

/** 16 KiB: the header budget, twice. The names of headers and the format of a record need space too. */
const COPY_BYTES = 16_384

/** Returns the limit that the largest copy of a record of the topic needs; undefined without the permission to read it. */
async function copyLimitOf(admin: Admin, topic: string): Promise<number | undefined> {
  try {
    const configs = await configsOfAll(admin, [topic])
    const limit = Number(configs.get(topic)?.get('max.message.bytes'))
    return limit > 0 ? Math.min(limit + COPY_BYTES, MAX_INT) : undefined
  } catch (error) {
    if (isError(error, 'TOPIC_AUTHORIZATION_FAILED')) return undefined
    throw error
  }
}

const MAX_INT = 2 ** 31 - 1

async function createMissing(
  admin: Admin,
  specs: readonly WantedTopic[],
  { partitions, replicas }: FoundTopic,
): Promise<void> {
  const found = await Promise.all(specs.map(({ name }) => find(admin, name)))
  const missing = specs.filter((_, index) => found[index] === undefined)
  // One request for all topics with the same configuration.
  for (const alike of Map.groupBy(missing, describeConfigs).values()) {
    try {
      const [spec] = alike as [WantedTopic]
      const topics = alike.map(({ name }) => name)
      await admin.createTopics({ topics, partitions, replicas, configs: [...configsOf(spec)] })
    } catch (error) {
      // Another consumer of the group created it first.
      if (!isError(error, 'TOPIC_ALREADY_EXISTS')) throw error
    }
  }
  const short = specs.filter((_, index) => (found[index]?.partitions ?? partitions) < partitions)
  if (short.length > 0) {
    const topics = short.map(({ name }) => ({ name, count: partitions }))
    try {
      await admin.createPartitions({ topics, validateOnly: false })
    } catch (error) {
      // Another consumer of the group added them first.
      if (!isError(error, 'INVALID_PARTITIONS')) throw error
    }
  }
  const hasPartitions = async (topic: string) =>
    ((await find(admin, topic))?.partitions ?? 0) >= partitions
  await Promise.all(
    [...missing, ...short].map(({ name }) =>
      waitUntilKnown(`the topic ${name}`, () => hasPartitions(name)),
    ),
  )
  const present = specs.filter((spec) => !missing.includes(spec))
  const configs = await configsOfAll(admin, namesOf(present))
  for (const spec of present) await raiseConfigs(admin, spec, configs.get(spec.name))
}

/** Raises settings that are too low. Never lowers them: another consumer may need the current value. */
async function raiseConfigs(
  admin: Admin,
  spec: WantedTopic,
  config: Config = new Map(),
): Promise<void> {
  const raised = raisedConfigs(spec, config)
  if (raised.length === 0) return
  const configs = raised.map((one) => ({ ...one, configOperation: SET }) as const)
  await admin.incrementalAlterConfigs({
    resources: [{ resourceType: TOPIC, resourceName: spec.name, configs }],
  })
  await waitUntilKnown(`${describeAll(raised)} of ${spec.name}`, async () => {
    const now = (await configsOfAll(admin, [spec.name])).get(spec.name)
    return now !== undefined && raisedConfigs(spec, now).length === 0
  })
}

function raisedConfigs(spec: WantedTopic, config: Config): readonly TopicConfig[] {
  const isTooSmall = Number(config.get(MAX_BYTES)) < (spec.maxBytes ?? 0)
  return configsOf(spec).filter(
    ({ name }) =>
      (name === RETENTION && isTooShort(spec, config)) || (name === MAX_BYTES && isTooSmall),
  )
}

const RETENTION = 'retention.ms'
const MAX_BYTES = 'max.message.bytes'

interface TopicConfig {
  readonly name: string
  readonly value: string
}

const namesOf = (specs: readonly TopicSpec[]) => specs.map(({ name }) => name)

function isTooShort({ retentionMs }: TopicSpec, config: Config): boolean {
  const actual = Number(config.get('retention.ms') ?? FOREVER)
  const wanted = boundedRetention(retentionMs)
  return actual !== FOREVER && (wanted === FOREVER || actual < wanted)
}

/** 30 s: brokers exchange metadata about a new topic, and a busy one is slow. */
const KNOWN_MS = 30_000
const POLL_MS = 50

/** Waits until the brokers report a change that they accepted. */
async function waitUntilKnown(what: string, isKnown: () => Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + KNOWN_MS
  while (!(await isKnown())) {
    if (performance.now() > endsAt) {
      throw new Error(
        `Kafka accepted ${what}, but did not apply it within ${KNOWN_MS} ms. Check the brokers, then retry.`,
      )
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/**
 * Returns the configuration of a topic. It is never compacted, so that two failures with one key are both kept.
 * Retry topics use the time of the broker, so that a retry is never early.
 */
const configsOf = ({
  retentionMs,
  tierMs,
  maxBytes,
}: TopicSpec & Partial<WantedTopic>): readonly TopicConfig[] => [
  { name: 'cleanup.policy', value: 'delete' },
  { name: RETENTION, value: String(boundedRetention(retentionMs)) },
  ...(tierMs === 0 ? [] : [{ name: 'message.timestamp.type', value: 'LogAppendTime' }]),
  ...(maxBytes === undefined ? [] : [{ name: MAX_BYTES, value: String(maxBytes) }]),
]

const boundedRetention = (retentionMs: number) =>
  Number.isSafeInteger(Math.round(retentionMs)) ? Math.round(retentionMs) : FOREVER

async function problemsOf(
  admin: Admin,
  specs: readonly TopicSpec[],
  source: FoundTopic,
): Promise<readonly string[]> {
  const problems: string[] = []
  const found = await Promise.all(specs.map(({ name }) => find(admin, name)))
  const present = specs.filter((_, index) => found[index] !== undefined)
  const configs = await configsOfAll(admin, namesOf(present))
  specs.forEach((spec, index) => {
    const { partitions } = found[index] ?? {}
    if (partitions === undefined) {
      problems.push(
        `${spec.name} does not exist. Create it with ${source.partitions} partitions and ${describeConfigs(spec)}.`,
      )
      return
    }
    if (partitions < source.partitions) {
      problems.push(
        `${spec.name} has ${partitions} partitions, but the source has ${source.partitions}. Add partitions until both numbers are equal: a record keeps its partition number.`,
      )
    }
    problems.push(...configProblems(spec, configs.get(spec.name) ?? new Map()))
  })
  return problems
}

const describeConfigs = (spec: TopicSpec) => describeAll(configsOf(spec))

const describeAll = (configs: readonly TopicConfig[]) =>
  configs.map(({ name, value }) => `${name}=${value}`).join(', ')

type Config = ReadonlyMap<string, string>

async function configsOfAll(
  admin: Admin,
  topics: readonly string[],
): Promise<ReadonlyMap<string, Config>> {
  if (topics.length === 0) return new Map()
  const resources = topics.map((topic) => ({ resourceType: TOPIC, resourceName: topic }))
  const described = await admin.describeConfigs({ resources })
  return new Map(
    described.map(({ resourceName, configs }) => [
      resourceName,
      new Map(configs.map(({ name, value }) => [name, value ?? ''])),
    ]),
  )
}

function configProblems(spec: TopicSpec, config: Config): readonly string[] {
  const { name, tierMs, retentionMs } = spec
  const problems: string[] = []
  const policy = config.get('cleanup.policy') ?? 'delete'
  if (policy !== 'delete') {
    problems.push(
      `${name} has cleanup.policy=${policy}, which keeps only the last of several failures with one key. Set it to delete.`,
    )
  }
  if (isTooShort(spec, config)) {
    problems.push(
      `${name} has retention.ms=${config.get('retention.ms')}, which is too short. Raise it to ${boundedRetention(retentionMs)}.`,
    )
  }
  if (tierMs > 0 && config.get('message.timestamp.type') !== 'LogAppendTime') {
    problems.push(
      `${name} stores the timestamps of the producer. Set message.timestamp.type=LogAppendTime, because the clock of another machine can make a retry early.`,
    )
  }
  return problems
}

const missingSource = (topic: string) =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The topic "${topic}" does not exist. Create it first. Redrive does not create it, because you choose its number of partitions.`,
  )

function topologyMismatch(topic: string, problems: readonly string[]): RedriveError {
  const message = `The retry and dead-letter topics of "${topic}" have problems:\n- ${problems.join('\n- ')}`
  return new RedriveError('TOPOLOGY_MISMATCH', message, { problems })
}
