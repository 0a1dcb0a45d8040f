import { describe, expect, it } from 'vitest'
import { StartPositions } from '../src/consume/start-positions.ts'
import type { Client } from '../src/protocol/client.ts'
import type { CommittedOffset, Offsets } from '../src/protocol/offsets.ts'

const FIRST = 5
const END = 90
const LATEST = -1n

interface World {
  readonly from?: 'earliest' | 'latest'
  readonly partitions?: number
  /** The commits of the group, by partition. */
  readonly committed?: Readonly<Record<number, CommittedOffset>>
}

function positionsIn({ from = 'latest', partitions = 4, committed = {} }: World) {
  const leaders = Array.from({ length: partitions }, () => ({ leader: 1 }))
  const topic = { id: 'new', partitionsCount: partitions, partitions: leaders }
  const client = {
    metadata: () => Promise.resolve({ topics: new Map([['orders', topic]]) }),
    metadataWithMissing: () => Promise.resolve({ topics: new Map([['orders', topic]]) }),
    ask: (_: string, __: number, ___: number, ____: number, request: readonly OffsetRequest[]) =>
      Promise.resolve({ topics: request.map(answerTo) }),
    forget: () => undefined,
  }
  const offsets = {
    read: (all: readonly { readonly partition: number }[]) =>
      Promise.resolve(
        new Map(
          all.flatMap(({ partition }) => {
            const commit = committed[partition]
            return commit === undefined ? [] : [[`orders/${partition}`, commit] as const]
          }),
        ),
      ),
  }
  return new StartPositions({
    client: client as unknown as Client,
    offsets: offsets as unknown as Offsets,
    from: () => from,
  })
}

interface OffsetRequest {
  readonly name: string
  readonly partitions: readonly { readonly partitionIndex: number; readonly timestamp: bigint }[]
}

const answerTo = ({ name, partitions }: OffsetRequest) => ({
  name,
  partitions: partitions.map(({ partitionIndex, timestamp }) => ({
    partitionIndex,
    offset: BigInt(timestamp === LATEST ? END : FIRST),
  })),
})

const commitOf = (id: string, partitions: number, offset = 20): CommittedOffset => ({
  offset,
  metadata: `;;;;${id};${partitions}`,
})

async function positionOf(partition: number, world: World) {
  const topicPartition = { topic: 'orders', partition }
  return (await positionsIn(world).find([topicPartition])).get(topicPartition)
}

describe('the start of a partition without a commit', () => {
  it.each([
    ['earliest', FIRST],
    ['latest', END],
  ] as const)('is the position of a new group: %s', async (from, mark) => {
    expect(await positionOf(2, { from })).toMatchObject({ mark, origin: 'known' })
  })

  it('is the end with `latest`, although another member of the new group has committed already', async () => {
    const committed = { 0: commitOf('new', 4) }
    expect(await positionOf(2, { committed })).toMatchObject({ mark: END })
  })

  it('is the first record when the partition was added since another was committed', async () => {
    const committed = { 0: commitOf('new', 2), 1: commitOf('new', 2) }
    expect(await positionOf(1, { committed: { 0: commitOf('new', 2) } })).toMatchObject({
      mark: END,
    })
    expect(await positionOf(2, { committed })).toMatchObject({ mark: FIRST })
    expect(await positionOf(3, { committed })).toMatchObject({ mark: FIRST })
  })

  it('does not depend on commits of an earlier topic or of another client', async () => {
    const other: CommittedOffset = { offset: 3, metadata: '' }
    const committed = { 0: commitOf('old', 1), 1: other }
    expect(await positionOf(3, { committed })).toMatchObject({ mark: END })
  })
})

describe('the start of a partition with a commit', () => {
  it('is the committed offset of the same topic', async () => {
    const committed = { 1: commitOf('new', 2, 33) }
    const topic = { id: 'new', partitions: 4 }
    expect(await positionOf(1, { committed })).toEqual({
      mark: 33,
      metadata: ';;;;new;2',
      topic,
      origin: 'known',
    })
  })

  it('is the first record of a topic that was created again, also with `latest`', async () => {
    const committed = { 1: commitOf('old', 2, 33) }
    expect(await positionOf(1, { committed })).toMatchObject({
      mark: FIRST,
      metadata: null,
      origin: 'recreated',
    })
  })

  it('is the offset of another client, which may be wrong', async () => {
    const committed = { 1: { offset: 33, metadata: '1.' } }
    expect(await positionOf(1, { committed })).toMatchObject({ mark: 33, origin: 'other_client' })
  })
})
