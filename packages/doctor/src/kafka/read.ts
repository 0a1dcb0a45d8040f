import type { Admin, BaseOptions } from '@platformatic/kafka'
import { ANSWER_MS, Reading, answerWithin } from '../reading.ts'
import type { KafkaFacts, KafkaSourceFacts, TopicFacts } from './facts.ts'
import type { Cluster } from './metadata.ts'
import { belongsTo, type KafkaSource, sourcesIn } from './names.ts'

export interface KafkaOptions {
  /** `host:port` of some brokers. */
  readonly brokers: readonly string[]
  /** Topics and the groups that consume them. Default: every topic and group with a topic `{topic}.{group}.dlq`. */
  readonly sources?: readonly KafkaSource[]
  /** Required retention of dead letters, in ms. Default 14 days, as in a policy. */
  readonly deadLetterRetentionMs?: number
  /** Options of the client library, such as TLS and SASL. */
  readonly client?: Partial<BaseOptions>
  /** Maximum time for one answer of the cluster, in ms. Default 10,000. */
  readonly timeoutMs?: number
}

/** 14 days: the default of `deadLetter.retention` in a policy. */
const DEAD_LETTER_RETENTION_MS = 1_209_600_000
/** `resourceType` in the protocol. */
const TOPIC = 2 as const
const BROKER = 4 as const
/** 500 topics per request: the response contains about 40 settings per topic. */
const MAX_TOPICS_PER_REQUEST = 500

const ALLOW_TOPICS =
  'kafka-acls --add --allow-principal User:USER --operation Describe --operation DescribeConfigs --topic "*"'
const ALLOW_CLUSTER =
  'kafka-acls --add --allow-principal User:USER --operation Describe --operation DescribeConfigs --cluster'
const ALLOW_GROUPS = 'kafka-acls --add --allow-principal User:USER --operation Describe --group "*"'

/** Reads the live settings of the cluster. Changes nothing, and does not throw when a fact cannot be read. */
export async function readKafka(options: KafkaOptions): Promise<KafkaFacts> {
  const { timeoutMs = ANSWER_MS, deadLetterRetentionMs = DEAD_LETTER_RETENTION_MS } = options
  // Loaded only here: a doctor of other brokers needs no client of Kafka.
  const kafka = await import('@platformatic/kafka')
  const admin = new kafka.Admin({
    ...options.client,
    clientId: options.client?.clientId ?? 'redrive-doctor',
    bootstrapBrokers: [...options.brokers],
    connectTimeout: timeoutMs,
    requestTimeout: timeoutMs,
    retries: 1,
    retryDelay: 100,
    autocreateTopics: false,
  })
  try {
    const live = await readLive(admin, options, timeoutMs)
    return { ...live, deadLetterRetentionMs }
  } finally {
    await admin.close()
  }
}

type Live = Omit<KafkaFacts, 'deadLetterRetentionMs'>

async function readLive(admin: Admin, options: KafkaOptions, timeoutMs: number): Promise<Live> {
  const reading = new Reading()
  const { unreadable } = reading
  const named = (options.sources ?? []).map((source) => ({ ...source, committed: undefined }))
  const cluster = await reading.fact(
    {
      what: 'cluster',
      allow: `check the addresses, TLS and credentials; ${ALLOW_TOPICS}`,
      hides: 'loss',
    },
    async () => {
      const { askMetadata } = await import('./metadata.ts')
      return answerWithin(timeoutMs, askMetadata(admin))
    },
  )
  // Without this answer, all other requests would fail too, so one reason is enough.
  if (cluster === undefined) {
    return { brokers: [], apis: undefined, topics: undefined, sources: named, unreadable }
  }
  const sources = options.sources ?? sourcesIn(cluster.topics.map(({ name }) => name))
  const ask: Ask = (what, allow, work) =>
    reading.fact({ what, allow, hides: 'loss' }, () => answerWithin(timeoutMs, work()))
  return {
    brokers: await readBrokers(admin, cluster, ask),
    apis: await ask('versions', ALLOW_CLUSTER, () => readApis(admin)),
    topics: await readTopics(admin, cluster, sources, ask),
    sources: await Promise.all(sources.map((source) => readCommitted(admin, cluster, source, ask))),
    unreadable,
  }
}

type Ask = <T>(what: string, allow: string, work: () => Promise<T>) => Promise<T | undefined>

async function readBrokers(
  admin: Admin,
  { brokers }: Cluster,
  ask: Ask,
): Promise<KafkaFacts['brokers']> {
  const resources = brokers.map((id) => ({ resourceType: BROKER, resourceName: String(id) }))
  const described = await ask('settings of the brokers', ALLOW_CLUSTER, () =>
    admin.describeConfigs({ resources }),
  )
  return brokers.map((id) => ({
    id,
    config: asConfig(described?.find(({ resourceName }) => resourceName === String(id))?.configs),
  }))
}

async function readApis(admin: Admin): Promise<Readonly<Record<string, number>>> {
  const apis = await admin.listApis()
  return Object.fromEntries(apis.map(({ name, maxVersion }) => [name, maxVersion]))
}

async function readTopics(
  admin: Admin,
  cluster: Cluster,
  sources: readonly KafkaSource[],
  ask: Ask,
): Promise<readonly TopicFacts[]> {
  const wanted = cluster.topics.filter(
    ({ name, isInternal }) => isInternal || sources.some((source) => belongsTo(source, name)),
  )
  const configs = new Map<string, Readonly<Record<string, string>>>()
  for (let from = 0; from < wanted.length; from += MAX_TOPICS_PER_REQUEST) {
    const resources = wanted
      .slice(from, from + MAX_TOPICS_PER_REQUEST)
      .map(({ name }) => ({ resourceType: TOPIC, resourceName: name }))
    const described = await ask('settings of the topics', ALLOW_TOPICS, () =>
      admin.describeConfigs({ resources }),
    )
    for (const one of described ?? []) configs.set(one.resourceName, asConfig(one.configs))
  }
  return wanted.map(({ name, partitions }) => ({
    name,
    partitions,
    config: configs.get(name) ?? {},
  }))
}

type Described = Awaited<ReturnType<Admin['describeConfigs']>>[number]['configs']

const asConfig = (configs: Described = []): Readonly<Record<string, string>> =>
  Object.fromEntries(configs.map(({ name, value }) => [name, value ?? '']))

const NOTHING = -1n

async function readCommitted(
  admin: Admin,
  { topics }: Cluster,
  source: KafkaSource,
  ask: Ask,
): Promise<KafkaSourceFacts> {
  const { topic, group } = source
  const count = topics.find(({ name }) => name === topic)?.partitions.length ?? 0
  if (count === 0) return { ...source, committed: undefined }
  const partitionIndexes = Array.from({ length: count }, (_, index) => index)
  const groups = [{ groupId: group, topics: [{ name: topic, partitionIndexes }] }]
  const answer = await ask(`offsets of ${group}`, ALLOW_GROUPS, () =>
    admin.listConsumerGroupOffsets({ groups }),
  )
  const offsets = answer?.flatMap((one) => one.topics.flatMap(({ partitions }) => partitions))
  const committed = offsets?.filter(({ committedOffset }) => committedOffset > NOTHING).length
  return { ...source, committed }
}
