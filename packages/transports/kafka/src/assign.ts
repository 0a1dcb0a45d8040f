import type { GroupPartitionsAssigner, GroupPartitionsAssignments } from '@platformatic/kafka'
import { nameOf } from './topic-partition.ts'

type Members = Parameters<GroupPartitionsAssigner>[1]

/** What one member is given, and how much that is in all topics together. */
interface Share {
  readonly memberId: string
  readonly byTopic: Map<string, number[]>
  total: number
}

/**
 * Who gets what, each topic on its own. The client library counts partitions of all topics alike: a
 * second consumer would get the whole source, because its name sorts first, and the first would keep
 * nothing but retries. A partition that someone still has is given to nobody else in this round.
 */
export const assignEvenly: GroupPartitionsAssigner = (_, members, topics, metadata) => {
  const shares = [...members.keys()]
    .sort()
    .map((memberId): Share => ({ memberId, byTopic: new Map(), total: 0 }))
  const { ownerOf, isClaimedByOther } = claimsOf(members)
  for (const topic of topics) {
    const count = metadata.topics.get(topic)?.partitionsCount ?? 0
    const subscribed = shares.filter(({ memberId }) =>
      members.get(memberId)?.topics?.includes(topic),
    )
    const owned = (share: Share) =>
      numbers(count).filter((partition) => ownerOf(topic, partition) === share.memberId)
    shareOut(topic, count, subscribed, owned)
  }
  return shares.map(({ memberId, byTopic }): GroupPartitionsAssignments => {
    const given = [...byTopic].map(([topic, partitions]) => {
      const isFree = (partition: number) => !isClaimedByOther(topic, partition, memberId)
      return [
        topic,
        { topic, partitions: partitions.filter(isFree).sort((a, b) => a - b) },
      ] as const
    })
    return {
      memberId,
      assignments: new Map(given.filter(([, { partitions }]) => partitions.length > 0)),
    }
  })
}

/** As many to each, give or take one; everyone keeps what it has as far as that goes. */
function shareOut(
  topic: string,
  count: number,
  shares: readonly Share[],
  owned: (share: Share) => readonly number[],
): void {
  if (shares.length === 0) return
  const least = Math.floor(count / shares.length)
  // One more for those who have the most already; then for those who have the least of everything.
  const inOrder = shares
    .map((share) => ({ share, has: owned(share) }))
    .sort((a, b) => b.has.length - a.has.length || a.share.total - b.share.total)
    .map((one, index) => ({ ...one, most: least + (index < count % shares.length ? 1 : 0) }))
  const left = new Set(numbers(count))
  for (const { share, has, most } of inOrder) {
    const kept = has.slice(0, most)
    for (const partition of kept) left.delete(partition)
    share.byTopic.set(topic, kept)
  }
  for (const { share, most } of inOrder) {
    const partitions = share.byTopic.get(topic) ?? []
    for (const partition of left) {
      if (partitions.length >= most) break
      partitions.push(partition)
      left.delete(partition)
    }
    share.total += partitions.length
  }
}

/** Who says to have what. Believed are those who were in the latest round, unless two say the same. */
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
