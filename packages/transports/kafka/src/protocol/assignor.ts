import type { GroupPartitionsAssigner, GroupPartitionsAssignments } from '@platformatic/kafka'
import { nameOf } from './topic-partition.ts'

type Members = Parameters<GroupPartitionsAssigner>[1]

/** The partitions of one member, and their number in all topics together. */
interface Share {
  readonly memberId: string
  readonly byTopic: Map<string, number[]>
  total: number
}

/**
 * Assigns each topic separately. The client library counts the partitions of all topics together. A second
 * consumer would get the whole source, because its name sorts first, and the first would keep only retries.
 * A partition that a member still owns is not assigned to another member in this round.
 */
export const assignEvenly: GroupPartitionsAssigner = (_, members, __, metadata) => {
  const shares = [...members.keys()]
    .sort()
    .map((memberId): Share => ({ memberId, byTopic: new Map(), total: 0 }))
  const { ownerOf, isClaimedByOther } = claimsOf(members)
  for (const topic of topicsOf(members)) {
    const count = metadata.topics.get(topic)?.partitionsCount ?? 0
    const subscribed = shares.filter(({ memberId }) =>
      members.get(memberId)?.topics?.includes(topic),
    )
    const owned = (share: Share) =>
      numbers(count).filter((partition) => ownerOf(topic, partition) === share.memberId)
    distribute(topic, count, subscribed, owned)
  }
  return shares.map(({ memberId, byTopic }): GroupPartitionsAssignments => {
    const assigned = [...byTopic].map(([topic, partitions]) => {
      const isFree = (partition: number) => !isClaimedByOther(topic, partition, memberId)
      return [
        topic,
        { topic, partitions: partitions.filter(isFree).sort((a, b) => a - b) },
      ] as const
    })
    return {
      memberId,
      assignments: new Map(assigned.filter(([, { partitions }]) => partitions.length > 0)),
    }
  })
}

/** Returns the topics of all members. The leader, which assigns, may consume only some of them. */
export const topicsOf = (members: Members): readonly string[] =>
  [...new Set([...members.values()].flatMap(({ topics }) => topics ?? []))].sort()

/** Distributes partitions so that the counts differ by at most one. Members keep their partitions where possible. */
function distribute(
  topic: string,
  count: number,
  shares: readonly Share[],
  owned: (share: Share) => readonly number[],
): void {
  if (shares.length === 0) return
  const minCount = Math.floor(count / shares.length)
  // Members that own the most get one more; after them, members with the lowest total.
  const inOrder = shares
    .map((share) => ({ share, has: owned(share) }))
    .sort((a, b) => b.has.length - a.has.length || a.share.total - b.share.total)
    .map((one, index) => ({ ...one, maxCount: minCount + (index < count % shares.length ? 1 : 0) }))
  const left = new Set(numbers(count))
  for (const { share, has, maxCount } of inOrder) {
    const kept = has.slice(0, maxCount)
    for (const partition of kept) left.delete(partition)
    share.byTopic.set(topic, kept)
  }
  for (const { share, maxCount } of inOrder) {
    const partitions = share.byTopic.get(topic) ?? []
    for (const partition of left) {
      if (partitions.length >= maxCount) break
      partitions.push(partition)
      left.delete(partition)
    }
    share.total += partitions.length
  }
}

/** Returns the claims of all members. A claim counts if it is from the latest generation and no other member makes it. */
function claimsOf(members: Members) {
  const latest = Math.max(-1, ...[...members.values()].map(({ generationId = -1 }) => generationId))
  const claims = new Map<string, string[]>()
  const owners = new Map<string, string | undefined>()
  for (const [memberId, { ownedPartitions = [], generationId = -1 }] of members) {
    for (const { topic, partitions } of ownedPartitions) {
      for (const name of partitions.map((partition) => nameOf({ topic, partition }))) {
        claims.set(name, [...(claims.get(name) ?? []), memberId])
        if (generationId === latest) owners.set(name, owners.has(name) ? undefined : memberId)
      }
    }
  }
  const ownerOf = (topic: string, partition: number) => owners.get(nameOf({ topic, partition }))
  return {
    ownerOf,
    isClaimedByOther: (topic: string, partition: number, memberId: string) =>
      ownerOf(topic, partition) !== memberId &&
      (claims.get(nameOf({ topic, partition })) ?? []).some((other) => other !== memberId),
  }
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)
