import { Admin, type Base, type BaseOptions } from '@platformatic/kafka'
import { RedriveError } from '@redrive/core'
import { isError, missingNoBroker } from './protocol/client.ts'
import { creationProblems, notCreated, refuseLongNames } from './creation-problems.ts'
import { refuseCollision } from './name-collisions.ts'
import {
  configProblems,
  configsOf,
  configsOfAll,
  copyLimitOf,
  describeConfigs,
  namesOf,
  raiseConfigs,
  SETTING_REJECTED,
  type WantedTopic,
  waitUntilKnown,
} from './topic-settings.ts'
import type { Topology, TopicSpec } from './topology.ts'

/** A topic that exists. */
interface FoundTopic {
  readonly partitions: number
  readonly replicas: number
}

/** 30 s: a busy controller creates topics one after the other. */
const ANSWER_MS = 30_000

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
  refuseLongNames(topology)
  const adminOptions = { ...options, requestTimeout: ANSWER_MS, retries: 5, retryDelay: 200 }
  const admin = missingNoBroker(new Admin(adminOptions))
  try {
    const source = await find(admin, topology.topic)
    if (source === undefined) throw missingSource(topology.topic)
    if (isFirst) await refuseCollision(admin, topology)
    const specs = [...topology.retries, topology.deadLetters, topology.replayed]
    if (isDeclaring) {
      const limit = await copyLimitOf(admin, topology.topic)
      // Confirmations are small.
      const maxBytesOf = (spec: TopicSpec) => (spec === topology.replayed ? undefined : limit)
      const wanted = specs.map((spec) => ({ ...spec, maxBytes: maxBytesOf(spec) }))
      await createMissing(admin, wanted, source).catch((error: unknown) => {
        throw notCreated(topology.topic, error)
      })
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
    if (partitions.length === 0) return undefined
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

async function createAlike(
  admin: Admin,
  alike: readonly WantedTopic[],
  { partitions, replicas }: FoundTopic,
): Promise<void> {
  const [spec] = alike as [WantedTopic]
  const topics = [...namesOf(alike)]
  const create = (wanted: TopicSpec) =>
    admin.createTopics({ topics, partitions, replicas, configs: [...configsOf(wanted)] })
  try {
    await create(spec).catch((error: unknown) => {
      // Some clusters limit this setting. Without it, only the largest records cannot be copied.
      if (!isError(error, ...SETTING_REJECTED)) throw error
      return create({ ...spec, maxBytes: undefined } as TopicSpec)
    })
  } catch (error) {
    // Another consumer of the group created them first, unless the broker rejected one.
    if (!isError(error, 'TOPIC_ALREADY_EXISTS') || creationProblems(error).size > 0) throw error
  }
}

async function createMissing(
  admin: Admin,
  specs: readonly WantedTopic[],
  { partitions, replicas }: FoundTopic,
): Promise<void> {
  const found = await Promise.all(specs.map(({ name }) => find(admin, name)))
  const missing = specs.filter((_, index) => found[index] === undefined)
  // One request for all topics with the same configuration.
  const alike = [...Map.groupBy(missing, describeConfigs).values()]
  const created = alike.map((some) => createAlike(admin, some, { partitions, replicas }))
  const failures = (await Promise.allSettled(created)).flatMap((one): readonly unknown[] =>
    one.status === 'rejected' ? [one.reason] : [],
  )
  if (failures.length > 0) throw new AggregateError(failures, 'Kafka did not create all topics.')
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

/** Describes a topic that is missing while a consumer runs, and what to do. `spec`: of a retry topic. */
export function missingTopic(
  name: string,
  spec: TopicSpec | undefined,
  isDeclaring: boolean,
): string {
  const what = `The topic "${name}" does not exist. The consumer reads its other topics.`
  if (spec === undefined) return `${what} Create the topic: it is read without a restart.`
  const settings = `with as many partitions as the source and ${describeConfigs(spec)}`
  const create = `create it ${settings}: it is read without a restart.`
  return isDeclaring
    ? `${what} Restart one consumer, which creates it, or ${create}`
    : `${what} C${create.slice(1)}`
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
