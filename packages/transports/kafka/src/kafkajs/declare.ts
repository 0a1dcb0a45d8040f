import { RedriveError } from '@redrive/core'
import { creationProblems, notCreated, refuseLongNames } from '../creation-problems.ts'
import type { Topology, TopicSpec } from '../topology.ts'
import type { KafkaJsAdmin } from './client.ts'

/** Creates missing topics. Existing topics are not changed. */
export async function makeMissing(admin: KafkaJsAdmin, topology: Topology): Promise<void> {
  refuseLongNames(topology)
  const { topic, retries, deadLetters, replayed } = topology
  const existing = new Set(await admin.listTopics())
  if (!existing.has(topic)) throw missingSource(topic)
  const missing = [...retries, deadLetters, replayed].filter(({ name }) => !existing.has(name))
  if (missing.length === 0) return
  const found = await admin.fetchTopicMetadata({ topics: [topic] })
  const topics = 'topics' in found ? found.topics : found
  const { partitions = [] } = topics.find(({ name }) => name === topic) ?? {}
  const toCreate = missing.map((spec) => ({
    topic: spec.name,
    numPartitions: partitions.length,
    replicationFactor: partitions[0]?.replicas.length ?? 1,
    configEntries: configsOf(spec),
  }))
  const names = toCreate.map((spec) => spec.topic)
  try {
    await admin.createTopics({ topics: toCreate })
  } catch (error) {
    if (creationProblems(error).size > 0) throw notCreated(topic, error)
    // Another consumer of the group created them first, or the client did not wait for all brokers: then
    // the topics are listed soon. Otherwise the broker rejected the request.
    await waitUntilListed(admin, names, isTemporary(error) ? KNOWN_MS : REFUSED_MS, error)
  }
  await waitUntilListed(admin, names, KNOWN_MS)
  // The client repeats this request until each partition has a leader.
  await admin.fetchTopicMetadata({ topics: names })
}

/** 30 s: brokers exchange metadata about a new topic, and a busy one is slow. */
const KNOWN_MS = 30_000
const REFUSED_MS = 5_000
const POLL_MS = 50

/** Whether the client itself would repeat the request. It gives up after a few seconds. */
const isTemporary = (error: unknown) =>
  error instanceof Error && 'retriable' in error && error.retriable === true

async function waitUntilListed(
  admin: KafkaJsAdmin,
  names: readonly string[],
  withinMs: number,
  cause?: unknown,
): Promise<void> {
  const endsAt = performance.now() + withinMs
  const areListed = async () => {
    const existing = new Set(await admin.listTopics())
    return names.every((name) => existing.has(name))
  }
  while (!(await areListed())) {
    if (performance.now() > endsAt) {
      throw new Error(
        `Kafka did not create all of the topics ${names.join(', ')} within ${withinMs} ms.`,
        {
          cause,
        },
      )
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/**
 * Returns the configuration of a topic. It is never compacted, so that two failures with one key are both kept.
 * Retry topics use the time of the broker, so that a retry is never early.
 */
const configsOf = ({ retentionMs, tierMs }: TopicSpec) => [
  { name: 'cleanup.policy', value: 'delete' },
  { name: 'retention.ms', value: Number.isSafeInteger(retentionMs) ? String(retentionMs) : '-1' },
  ...(tierMs === 0 ? [] : [{ name: 'message.timestamp.type', value: 'LogAppendTime' }]),
]

const missingSource = (topic: string) =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The topic "${topic}" does not exist. Create it first. Redrive does not create it, because you choose its number of partitions.`,
  )
