import { RedriveError } from '@redrive/core'
import type { Topology, TopicSpec } from '../topology.ts'
import type { KafkaJsAdmin } from './client.ts'

/** Makes the topics that are missing. Those that are there are left as they are. */
export async function makeMissing(admin: KafkaJsAdmin, topology: Topology): Promise<void> {
  const { topic, retries, deadLetters, replayed } = topology
  const existing = new Set(await admin.listTopics())
  if (!existing.has(topic)) throw missingSource(topic)
  const missing = [...retries, deadLetters, replayed].filter(({ name }) => !existing.has(name))
  if (missing.length === 0) return
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  const { partitions = [] } = topics.find(({ name }) => name === topic) ?? {}
  const made = missing.map((spec) => ({
    topic: spec.name,
    numPartitions: partitions.length,
    replicationFactor: partitions[0]?.replicas.length ?? 1,
    configEntries: configsOf(spec),
  }))
  const names = made.map((spec) => spec.topic)
  try {
    await admin.createTopics({ topics: made })
  } catch (error) {
    // Another consumer of the group was quicker, or the client did not wait until the brokers had told
    // each other: then they are there in a moment. Otherwise it was refused.
    await known(admin, names, REFUSED_MS, error)
  }
  await known(admin, names, KNOWN_MS)
  // It asks again until each partition has a leader.
  await admin.fetchTopicMetadata({ topics: names })
}

/** 30 s: the brokers tell each other of a new topic, and a busy one takes its time. */
const KNOWN_MS = 30_000
const REFUSED_MS = 5_000
const LOOK_MS = 50

async function known(
  admin: KafkaJsAdmin,
  names: readonly string[],
  withinMs: number,
  cause?: unknown,
): Promise<void> {
  const endsAt = performance.now() + withinMs
  const isThere = async () => {
    const existing = new Set(await admin.listTopics())
    return names.every((name) => existing.has(name))
  }
  while (!(await isThere())) {
    if (performance.now() > endsAt) {
      throw new Error(`Kafka has not made all of ${names.join(', ')} within ${withinMs} ms.`, {
        cause,
      })
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

/** Never compacted: of two failures with one key both are kept. Times are the broker's: a retry is never early. */
const configsOf = ({ retentionMs, tierMs }: TopicSpec) => [
  { name: 'cleanup.policy', value: 'delete' },
  { name: 'retention.ms', value: Number.isSafeInteger(retentionMs) ? String(retentionMs) : '-1' },
  ...(tierMs === 0 ? [] : [{ name: 'message.timestamp.type', value: 'LogAppendTime' }]),
]

const missingSource = (topic: string) =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The topic ${topic} does not exist. Create it first: how many partitions it needs is not for a consumer to decide.`,
  )
