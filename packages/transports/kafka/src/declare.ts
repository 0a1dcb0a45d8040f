import { Admin, type Base, type BaseOptions } from '@platformatic/kafka'
import { RedriveError } from '@redrive/core'
import { isError, missingNoBroker } from './client.ts'
import type { Topology, TopicSpec } from './topology.ts'

/** A topic that exists. */
interface Found {
  readonly partitions: number
  readonly replicas: number
}

/** `resourceType` of a topic in the protocol. */
const TOPIC = 2 as const
const FOR_EVER = -1
/** 30 s: a controller with much to do makes topics one after the other. */
const ANSWER_MS = 30_000
/** `configOperation` that sets a value. */
const SET = 0 as const

/** Makes what is missing and looks at what is there. Rejects with a sentence for each thing that is wrong. */
export async function prepare(
  options: BaseOptions,
  topology: Topology,
  isDeclaring: boolean,
): Promise<void> {
  const patient = { ...options, requestTimeout: ANSWER_MS, retries: 5, retryDelay: 200 }
  const admin = missingNoBroker(new Admin(patient))
  try {
    const source = await find(admin, topology.topic)
    if (source === undefined) throw missingSource(topology.topic)
    const specs = [...topology.retries, topology.deadLetters, topology.replayed]
    if (isDeclaring) await makeMissing(admin, specs, source)
    const problems = await problemsOf(admin, specs, source)
    if (problems.length > 0) throw wrong(topology.topic, problems)
  } finally {
    await admin.close()
  }
}

async function find(client: Base, topic: string): Promise<Found | undefined> {
  try {
    const { topics } = await client.metadata({ topics: [topic], forceUpdate: true, retries: 0 })
    const partitions = topics.get(topic)?.partitions ?? []
    return { partitions: partitions.length, replicas: partitions[0]?.replicas.length ?? 1 }
  } catch (error) {
    // The client library says so in words only.
    if (error instanceof Error && error.message.startsWith('Unknown topic')) return undefined
    throw error
  }
}

/** Those of the topics that are there: others' consumers make theirs with the first dead letter. */
export async function existing(
  client: Base,
  topics: readonly string[],
): Promise<readonly string[]> {
  const found = await Promise.all(topics.map((topic) => find(client, topic)))
  return topics.filter((_, at) => found[at] !== undefined)
}

async function makeMissing(
  admin: Admin,
  specs: readonly TopicSpec[],
  { partitions, replicas }: Found,
): Promise<void> {
  const found = await Promise.all(specs.map(({ name }) => find(admin, name)))
  const missing = specs.filter((_, index) => found[index] === undefined)
  // Those that are alike in one request.
  for (const alike of Map.groupBy(missing, said).values()) {
    try {
      const [spec] = alike as [TopicSpec]
      const topics = alike.map(({ name }) => name)
      await admin.createTopics({ topics, partitions, replicas, configs: configsOf(spec) })
    } catch (error) {
      // Another consumer of the group was quicker.
      if (!isError(error, 'TOPIC_ALREADY_EXISTS')) throw error
    }
  }
  const short = specs.filter((_, index) => (found[index]?.partitions ?? partitions) < partitions)
  if (short.length > 0) {
    const topics = short.map(({ name }) => ({ name, count: partitions }))
    await admin.createPartitions({ topics, validateOnly: false })
  }
  const isThere = async (topic: string) => (await find(admin, topic))?.partitions === partitions
  await Promise.all(missing.map(({ name }) => known(`the topic ${name}`, () => isThere(name))))
  const present = specs.filter((spec) => !missing.includes(spec))
  const configs = await configsOfAll(admin, present)
  for (const spec of present) await keepLonger(admin, spec, configs.get(spec.name))
}

/** Never shorter: another consumer may have asked for what is there. */
async function keepLonger(
  admin: Admin,
  spec: TopicSpec,
  config: Config = new Map(),
): Promise<void> {
  if (!isTooShort(spec, config)) return
  const value = String(boundedRetention(spec.retentionMs))
  const configs = [{ name: 'retention.ms', configOperation: SET, value } as const]
  await admin.incrementalAlterConfigs({
    resources: [{ resourceType: TOPIC, resourceName: spec.name, configs }],
  })
  await known(`retention.ms=${value} of ${spec.name}`, async () => {
    const { [0]: now } = [...(await configsOfAll(admin, [spec])).values()]
    return now !== undefined && !isTooShort(spec, now)
  })
}

function isTooShort({ retentionMs }: TopicSpec, config: Config): boolean {
  const kept = Number(config.get('retention.ms') ?? FOR_EVER)
  const wanted = boundedRetention(retentionMs)
  return kept !== FOR_EVER && (wanted === FOR_EVER || kept < wanted)
}

/** 30 s: the brokers tell each other of a new topic, and a busy one takes its time. */
const KNOWN_MS = 30_000
const LOOK_MS = 50

/** Waits until the brokers know what was just asked of them. */
async function known(what: string, isKnown: () => Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + KNOWN_MS
  while (!(await isKnown())) {
    if (performance.now() > endsAt) {
      throw new Error(`Kafka accepted ${what}, and does not know of it after ${KNOWN_MS} ms.`)
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

/** Never compacted: of two failures with one key both are kept. Times are the broker's: a retry is never early. */
const configsOf = ({ retentionMs, tierMs }: TopicSpec) => [
  { name: 'cleanup.policy', value: 'delete' },
  { name: 'retention.ms', value: String(boundedRetention(retentionMs)) },
  ...(tierMs === 0 ? [] : [{ name: 'message.timestamp.type', value: 'LogAppendTime' }]),
]

const boundedRetention = (retentionMs: number) =>
  Number.isSafeInteger(Math.round(retentionMs)) ? Math.round(retentionMs) : FOR_EVER

async function problemsOf(
  admin: Admin,
  specs: readonly TopicSpec[],
  source: Found,
): Promise<readonly string[]> {
  const problems: string[] = []
  const found = await Promise.all(specs.map(({ name }) => find(admin, name)))
  const present = specs.filter((_, index) => found[index] !== undefined)
  const configs = await configsOfAll(admin, present)
  specs.forEach((spec, index) => {
    const { partitions } = found[index] ?? {}
    if (partitions === undefined) {
      problems.push(
        `${spec.name} does not exist. Create it with ${source.partitions} partitions and ${said(spec)}.`,
      )
      return
    }
    if (partitions < source.partitions) {
      problems.push(
        `${spec.name} has ${partitions} partitions, the source ${source.partitions}. Give it as many: a record keeps its partition.`,
      )
    }
    problems.push(...misconfigured(spec, configs.get(spec.name) ?? new Map()))
  })
  return problems
}

const said = (spec: TopicSpec) =>
  configsOf(spec)
    .map(({ name, value }) => `${name}=${value}`)
    .join(', ')

type Config = ReadonlyMap<string, string>

async function configsOfAll(
  admin: Admin,
  specs: readonly TopicSpec[],
): Promise<ReadonlyMap<string, Config>> {
  if (specs.length === 0) return new Map()
  const resources = specs.map(({ name }) => ({ resourceType: TOPIC, resourceName: name }))
  const described = await admin.describeConfigs({ resources })
  return new Map(
    described.map(({ resourceName, configs }) => [
      resourceName,
      new Map(configs.map(({ name, value }) => [name, value ?? ''])),
    ]),
  )
}

function misconfigured(spec: TopicSpec, config: Config): readonly string[] {
  const { name, tierMs, retentionMs } = spec
  const problems: string[] = []
  const policy = config.get('cleanup.policy') ?? 'delete'
  if (policy !== 'delete') {
    problems.push(
      `${name} has cleanup.policy=${policy}: of two failures with one key only the last would be kept. Set it to delete.`,
    )
  }
  if (isTooShort(spec, config)) {
    problems.push(
      `${name} has retention.ms=${config.get('retention.ms')}, which is too short. Raise it to ${boundedRetention(retentionMs)}.`,
    )
  }
  if (tierMs > 0 && config.get('message.timestamp.type') !== 'LogAppendTime') {
    problems.push(
      `${name} keeps the producer's times. Set message.timestamp.type=LogAppendTime: with another clock a retry would be early.`,
    )
  }
  return problems
}

const missingSource = (topic: string) =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The topic ${topic} does not exist. Create it first: how many partitions it needs is not for a consumer to decide.`,
  )

function wrong(topic: string, problems: readonly string[]): RedriveError {
  const message = `The topics beside ${topic} are not as they must be:\n- ${problems.join('\n- ')}`
  return new RedriveError('TOPOLOGY_MISMATCH', message, { problems })
}
