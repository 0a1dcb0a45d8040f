import { describe, expect, it } from 'vitest'
import { Adapter } from '../src/kafkajs/adapter.ts'
import type {
  BatchPayload,
  GroupJoined,
  KafkaJsAdmin,
  KafkaJsConsumer,
  MessageHeaders,
  MessageToSend,
  OffsetToCommit,
  TopicToMake,
} from '../src/kafkajs/client.ts'
import { makeMissing } from '../src/kafkajs/declare.ts'
import { topologyOf } from '../src/topology.ts'
import { deadLetter, Inbox, SETTLE, until } from './rig.ts'

type Listener = (event: GroupJoined) => void

/** A client that the test controls. It records the calls of the adapter. */
function client(stored: Promise<void> = Promise.resolve()) {
  const listeners = new Map<string, Listener>()
  const commits: OffsetToCommit[][] = []
  const asked: string[] = []
  const sent: MessageToSend[] = []
  const consumer: KafkaJsConsumer = {
    commitOffsets: (offsets) => {
      commits.push(offsets)
      return Promise.resolve()
    },
    pause: (topics) => asked.push(`pause ${JSON.stringify(topics)}`),
    resume: (topics) => void asked.push(`resume ${JSON.stringify(topics)}`),
    on: (event: string, listener: Listener) => listeners.set(event, listener),
  }
  const adapter = new Adapter({
    topic: 'orders',
    group: 'billing',
    consumer,
    producer: {
      send: ({ messages }) => {
        sent.push(...messages)
        return stored
      },
    },
    admin: undefined,
    order: 'none',
    confirmTimeoutMs: 20,
  })
  const inbox = new Inbox()
  adapter.receive(inbox)
  adapter.limit(100)
  return {
    adapter,
    inbox,
    commits,
    asked,
    sent,
    emit: (event: string, payload?: GroupJoined['payload']) =>
      listeners.get(event)?.({ payload } as GroupJoined),
  }
}

const resolved: string[] = []

const batchOf = (
  offsets: readonly number[],
  partition = 0,
  headers: MessageHeaders = {},
): BatchPayload => ({
  batch: {
    topic: 'orders',
    partition,
    highWatermark: '100',
    messages: offsets.map((offset) => ({
      key: null,
      value: Buffer.from(`${offset}`),
      timestamp: '0',
      offset: `${offset}`,
      headers,
    })),
    lastOffset: () => `${offsets.at(-1)}`,
  },
  resolveOffset: (offset) => void resolved.push(offset),
})

const joined = (memberId: string, ...partitions: readonly number[]) => ({
  memberId,
  memberAssignment: { orders: [...partitions] },
})

describe('after a rebalance', () => {
  it('does not deliver records again that are read again', async () => {
    const { adapter, inbox, emit } = client()
    emit('consumer.group_join', joined('m-1', 0))
    await adapter.eachBatch(batchOf([0, 1]))
    emit('consumer.rebalancing')
    emit('consumer.group_join', joined('m-1', 0))
    await adapter.eachBatch(batchOf([0, 1, 2]))
    expect(inbox.bodies).toEqual(['0', '1', '2'])
    expect(inbox.lostOnes).toEqual([])
    await adapter.close()
  })

  it('reports deliveries of revoked partitions as lost, and neither finishes nor commits them', async () => {
    const { adapter, inbox, commits, emit } = client()
    emit('consumer.group_join', joined('m-1', 0, 1))
    await adapter.eachBatch(batchOf([0], 0))
    await adapter.eachBatch(batchOf([0], 1))
    emit('consumer.group_join', joined('m-1', 1))
    expect(inbox.lostOnes.map(({ raw }) => raw.partition)).toEqual([0])
    for (const delivery of inbox.deliveries) {
      const { kind } = await adapter.enact(delivery, SETTLE)
      expect(kind).toBe(delivery.raw.partition === 0 ? 'lost' : 'done')
    }
    await adapter.committed()
    expect(commits.flat().map(({ partition, offset }) => [partition, offset])).toEqual([[1, '1']])
    await adapter.close()
  })

  it('loses all partitions when the member id changes', async () => {
    const { adapter, inbox, emit } = client()
    emit('consumer.group_join', joined('m-1', 0))
    await adapter.eachBatch(batchOf([0]))
    emit('consumer.group_join', joined('m-2', 0))
    expect(inbox.lostOnes).toHaveLength(1)
    await adapter.eachBatch(batchOf([0]))
    expect(inbox.bodies).toEqual(['0', '0'])
    await adapter.close()
  })

  it('ignores a batch of a revoked partition', async () => {
    const { adapter, inbox, emit } = client()
    emit('consumer.group_join', joined('m-1', 1))
    await adapter.eachBatch(batchOf([0], 0))
    expect(inbox.deliveries).toEqual([])
    await adapter.close()
  })

  it('commits finished records before the rebalance, and nothing until it ends', async () => {
    const { adapter, inbox, commits, emit } = client()
    emit('consumer.group_join', joined('m-1', 0))
    await adapter.eachBatch(batchOf([0, 1]))
    const [first, second] = inbox.deliveries
    if (first === undefined || second === undefined) throw new Error('nothing was handed out')
    await adapter.enact(first, SETTLE)
    emit('consumer.rebalancing')
    await until('a commit', () => commits.length === 1)
    await adapter.enact(second, SETTLE)
    await adapter.committed()
    expect(commits.flat().map(({ offset }) => offset)).toEqual(['1'])
    emit('consumer.group_join', joined('m-1', 0))
    await adapter.committed()
    expect(commits.flat().map(({ offset }) => offset)).toEqual(['1', '2'])
    await adapter.close()
  })

  it('releases partitions when a client without events calls revoked', async () => {
    const { adapter, inbox, commits } = client()
    await adapter.eachBatch(batchOf([0, 1]))
    const [first] = inbox.deliveries
    if (first === undefined) throw new Error('nothing was handed out')
    await adapter.enact(first, SETTLE)
    await adapter.revoked([{ topic: 'orders', partition: 0 }])
    expect(commits.flat().map(({ offset }) => offset)).toEqual(['1'])
    expect(inbox.lostOnes).toHaveLength(1)
    await adapter.close()
  })
})

describe('reading ahead', () => {
  it('pauses a full partition, and resumes it when there is room', async () => {
    const { adapter, inbox, asked } = client()
    adapter.limit(1)
    const offsets = Array.from({ length: 1_500 }, (_, index) => index)
    await adapter.eachBatch(batchOf(offsets))
    expect(resolved.at(-1)).toBe('1499')
    expect(asked).toEqual(['pause [{"topic":"orders","partitions":[0]}]'])
    for (let index = 0; index < 600; index++) {
      await adapter.enact(inbox.deliveries[index] as (typeof inbox.deliveries)[number], SETTLE)
    }
    expect(asked.at(-1)).toBe('resume [{"topic":"orders","partitions":[0]}]')
    expect(asked).toHaveLength(2)
    await adapter.close()
  })
})

describe('copies', () => {
  it('are awaited when they are late, and not sent again', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { adapter, inbox, sent } = client(promise)
    await adapter.eachBatch(batchOf([0]))
    const [delivery] = inbox.deliveries
    if (delivery === undefined) throw new Error('nothing was handed out')
    expect(await adapter.enact(delivery, deadLetter())).toMatchObject({ kind: 'unknown' })
    resolve()
    expect(await adapter.enact(delivery, deadLetter())).toMatchObject({
      destination: 'dead_letter',
    })
    expect(sent).toHaveLength(1)
    await adapter.close()
  })

  it('have lists for repeated header names, and an empty value instead of null', async () => {
    const { adapter, inbox, sent } = client()
    const none = null as unknown as Buffer
    const headers = { same: [Buffer.from('a'), Buffer.from('b')], none, text: 'yes' }
    await adapter.eachBatch(batchOf([0], 3, headers))
    const [delivery] = inbox.deliveries
    if (delivery === undefined) throw new Error('nothing was handed out')
    await adapter.enact(delivery, deadLetter())
    expect(sent).toHaveLength(1)
    expect(sent[0]?.partition).toBe(3)
    const { same, none: empty, text } = sent[0]?.headers ?? {}
    expect([same, empty, text]).toEqual([
      [Buffer.from('a'), Buffer.from('b')],
      [Buffer.alloc(0)],
      [Buffer.from('yes')],
    ])
    await adapter.close()
  })
})

describe('the Confluent client', () => {
  const adapterWith = (error: Error) =>
    new Adapter({
      topic: 'orders',
      group: 'billing',
      consumer: {
        commitOffsets: () => Promise.resolve(),
        pause: () => undefined,
        resume: () => undefined,
        on: () => {
          throw error
        },
      },
      producer: { send: () => Promise.resolve() },
      admin: undefined,
      order: 'none',
      confirmTimeoutMs: 20,
    })

  it('has no events, and other errors are not ignored', () => {
    const missing = Object.assign(new Error('Not implemented'), { type: 'ERR__NOT_IMPLEMENTED' })
    expect(adapterWith(missing)).toBeInstanceOf(Adapter)
    expect(() => adapterWith(new Error('broken'))).toThrow('broken')
  })

  it('returns the metadata of topics as a list: new topics get the same partitions', async () => {
    const created: TopicToMake[] = []
    const admin: KafkaJsAdmin = {
      listTopics: () => Promise.resolve(['orders', ...created.map(({ topic }) => topic)]),
      fetchTopicMetadata: () =>
        Promise.resolve([
          { name: 'orders', partitions: [{ replicas: [1, 2] }, { replicas: [1, 2] }] },
        ]),
      createTopics: ({ topics }) => {
        created.push(...topics)
        return Promise.resolve(true)
      },
      fetchOffsets: () => Promise.resolve([]),
    }
    await makeMissing(admin, topologyOf('orders', 'billing', 1_000))
    expect(created.map(({ topic }) => topic)).toContain('orders.billing.dlq')
    for (const { numPartitions, replicationFactor } of created) {
      expect([numPartitions, replicationFactor]).toEqual([2, 2])
    }
  })
})
