import type { GroupPartitionsAssigner } from '@platformatic/kafka'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { assignEvenly } from '../src/protocol/assignor.ts'

type Members = Parameters<GroupPartitionsAssigner>[1]
type Metadata = Parameters<GroupPartitionsAssigner>[3]
/** Topic and partition, by member. */
type Owned = ReadonlyMap<string, ReadonlyMap<string, readonly number[]>>

const NOBODY: Owned = new Map()

interface RoundOptions {
  readonly generations?: Readonly<Record<string, number>>
  /** The topics of a member; all unless set. */
  readonly topicsOf?: Readonly<Record<string, readonly string[]>>
}

function round(
  memberIds: readonly string[],
  topics: Readonly<Record<string, number>>,
  owned: Owned,
  { generations = {}, topicsOf = {} }: RoundOptions = {},
): Owned {
  const ownTopics = (memberId: string) => topicsOf[memberId] ?? Object.keys(topics)
  const members = memberIds.map((memberId) => {
    const ownedPartitions = [...(owned.get(memberId) ?? [])].map(([topic, partitions]) => ({
      topic,
      partitions: [...partitions],
    }))
    const generationId = generations[memberId] ?? (owned.has(memberId) ? 1 : -1)
    return [
      memberId,
      { memberId, topics: ownTopics(memberId), ownedPartitions, generationId },
    ] as const
  })
  const counts = Object.entries(topics).map(([name, partitionsCount]) => [
    name,
    { partitionsCount },
  ])
  const given = assignEvenly(
    memberIds[0] ?? '',
    new Map(members) as unknown as Members,
    // The client library passes the topics of the leader only.
    new Set(ownTopics(memberIds[0] ?? '')),
    { topics: new Map(counts as never) } as unknown as Metadata,
  )
  return new Map(
    given.map(({ memberId, assignments }) => [
      memberId,
      new Map([...assignments].map(([topic, { partitions }]) => [topic, partitions])),
    ]),
  )
}

const countIn = (owned: Owned, memberId: string, topic: string) =>
  owned.get(memberId)?.get(topic)?.length ?? 0

/** Returns every assigned partition, and checks that each has one owner. */
function namesIn(owned: Owned): readonly string[] {
  return [...owned.values()].flatMap((byTopic) =>
    [...byTopic].flatMap(([topic, partitions]) =>
      partitions.map((partition) => `${topic}/${partition}`),
    ),
  )
}

/** Repeats rounds until nothing changes, because members rejoin after a revocation. */
function settled(
  memberIds: readonly string[],
  topics: Readonly<Record<string, number>>,
  start: Owned,
  options: RoundOptions = {},
): Owned {
  let owned = start
  for (let times = 0; times < 5; times++) owned = round(memberIds, topics, owned, options)
  return owned
}

const TOPICS = { orders: 4, 'orders.g.retry.250ms': 4, 'orders.g.retry.1s': 4 }

describe('assigning partitions', () => {
  it('gives a second consumer half of the source, not only half of all partitions', () => {
    const alone = round(['a'], TOPICS, NOBODY)
    const both = settled(['a', 'b'], TOPICS, alone)
    for (const topic of Object.keys(TOPICS)) {
      expect([countIn(both, 'a', topic), countIn(both, 'b', topic)]).toEqual([2, 2])
    }
  })

  it('gives a third consumer its share, although the first two are within their limits', () => {
    const three = settled(['a', 'b', 'c'], TOPICS, settled(['a', 'b'], TOPICS, NOBODY))
    for (const topic of Object.keys(TOPICS)) expect(countIn(three, 'c', topic)).toBeGreaterThan(0)
  })

  it('distributes remaining partitions: with one partition per topic, every consumer gets one', () => {
    const owned = settled(['a', 'b', 'c'], { x: 1, y: 1, z: 1 }, NOBODY)
    expect([...owned.values()].map((byTopic) => [...byTopic.values()].flat().length)).toEqual([
      1, 1, 1,
    ])
  })

  it('assigns the topics of all members, also topics that the leader does not consume', () => {
    const topics = { orders: 3, invoices: 2, shared: 4 }
    const topicsOf = { a: ['orders', 'shared'], b: ['invoices', 'shared'], c: ['invoices'] }
    const owned = settled(['a', 'b', 'c'], topics, NOBODY, { topicsOf })
    expect(countIn(owned, 'a', 'orders')).toBe(3)
    expect([countIn(owned, 'b', 'invoices'), countIn(owned, 'c', 'invoices')]).toEqual([1, 1])
    expect([countIn(owned, 'a', 'shared'), countIn(owned, 'b', 'shared')]).toEqual([2, 2])
    expect(namesIn(owned)).toHaveLength(9)
    expect(countIn(owned, 'a', 'invoices') + countIn(owned, 'b', 'orders')).toBe(0)
  })

  it('does not assign a partition that another member still owns', () => {
    const alone = round(['a'], TOPICS, NOBODY)
    const first = round(['a', 'b'], TOPICS, alone)
    expect(countIn(first, 'a', 'orders')).toBe(2)
    expect(countIn(first, 'b', 'orders')).toBe(0)
    expect(countIn(round(['a', 'b'], TOPICS, first), 'b', 'orders')).toBe(2)
  })

  it('trusts claims of the latest generation, and first assigns a partition with two claims to neither', () => {
    const claims: Owned = new Map([
      ['a', new Map([['orders', [0, 1]]])],
      ['b', new Map([['orders', [1, 2]]])],
    ])
    const contested = round(['a', 'b'], { orders: 3 }, claims)
    expect(namesIn(contested)).not.toContain('orders/1')
    const stale = round(['a', 'b'], { orders: 3 }, claims, { generations: { a: 1, b: 2 } })
    expect(stale.get('b')?.get('orders')).toContain(1)
    expect(stale.get('a')?.get('orders') ?? []).not.toContain(1)
  })

  it('is even in each topic, assigns each partition once, and moves no more than necessary', () => {
    const crowd = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { minLength: 1 })
    const sizes = fc.record({
      x: fc.integer({ min: 0, max: 9 }),
      y: fc.integer({ min: 0, max: 9 }),
    })
    fc.assert(
      fc.property(crowd, crowd, sizes, (before, after, topics) => {
        const start = settled(before, topics, NOBODY)
        const once = round(after, topics, start)
        expect(new Set(namesIn(once)).size).toBe(namesIn(once).length)
        const end = settled(after, topics, start)
        expect(namesIn(end)).toHaveLength(topics.x + topics.y)
        expect(new Set(namesIn(end)).size).toBe(topics.x + topics.y)
        for (const topic of ['x', 'y'] as const) {
          const counts = after.map((memberId) => countIn(end, memberId, topic))
          expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
          const most = Math.ceil(topics[topic] / after.length)
          for (const memberId of after) {
            const had = start.get(memberId)?.get(topic) ?? []
            const kept = had.filter((partition) =>
              end.get(memberId)?.get(topic)?.includes(partition),
            )
            expect(kept.length).toBeGreaterThanOrEqual(Math.min(had.length, most) - 1)
          }
        }
        expect(settled(after, topics, end)).toEqual(end)
      }),
      { numRuns: 500 },
    )
  })
})
