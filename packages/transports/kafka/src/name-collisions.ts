import type { Admin } from '@platformatic/kafka'
import { RedriveError } from '@redrive/core'
import { isError } from './protocol/client.ts'
import { topicIn } from './consume/crash-evidence.ts'
import { deadLetterTopic } from './topology.ts'

/** A topic and a group that consumes it. */
interface Pair {
  readonly topic: string
  readonly group: string
}

/**
 * Returns the pairs whose retry and dead-letter topics would have the same names. Topic `orders` with group
 * `eu.billing` is such a pair for topic `orders.eu` with group `billing`.
 */
export function alikePairs({ topic, group }: Pair): readonly Pair[] {
  const parts = `${topic}.${group}`.split('.')
  const pairs = parts.slice(1).map((_, index) => ({
    topic: parts.slice(0, index + 1).join('.'),
    group: parts.slice(index + 1).join('.'),
  }))
  return pairs.filter((pair) => pair.topic !== topic && pair.topic !== '' && pair.group !== '')
}

/** Rejects when consumers of another group and topic run, and their failures are stored in the same topics. */
export async function refuseCollision(admin: Admin, pair: Pair): Promise<void> {
  for (const other of alikePairs(pair))
    if (await isInUse(admin, other)) throw collision(pair, other)
}

async function isInUse(admin: Admin, { topic, group }: Pair): Promise<boolean> {
  try {
    const described = await admin.describeGroups({ groups: [group] })
    if (!described.get(group)?.members.size) return false
    const [found] = await admin.listConsumerGroupOffsets({ groups: [group] })
    const { partitions = [] } = found?.topics.find(({ name }) => name === topic) ?? {}
    // Other clients have no retry topics. Their commits do not name the topic.
    return partitions.some(({ metadata }) => topicIn(metadata ?? null) !== undefined)
  } catch (error) {
    // The user of this consumer may not see the other group.
    if (isError(error, 'GROUP_AUTHORIZATION_FAILED')) return false
    throw error
  }
}

const collision = (one: Pair, other: Pair) =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The topic "${one.topic}" with the group "${one.group}" and the topic "${other.topic}" with the group "${other.group}" have the same retry and dead-letter topics, such as "${deadLetterTopic(one.topic, one.group)}". Each consumer would run the failed records of the other. Rename one of the groups.`,
  )
