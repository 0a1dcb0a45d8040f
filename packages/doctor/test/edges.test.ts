import { describe, expect, it, vi } from 'vitest'
import {
  type BindingFacts,
  type ExchangeFacts,
  findIn,
  KAFKA_CHECKS,
  type KafkaFacts,
  POSTGRES_CHECKS,
  type PostgresFacts,
  type QueueFacts,
  RABBITMQ_CHECKS,
  type RabbitmqFacts,
  readRabbitmq,
} from '../src/index.ts'
import { DEAD_LETTERS, KAFKA, POSTGRES, queue, RABBITMQ, RETRY, SOURCE, topic } from './good.ts'
import { idsIn } from './ids.ts'

/** Limits of numbers, and roles of queues. */

const rabbitmq = (changed: Partial<RabbitmqFacts>) =>
  idsIn(RABBITMQ_CHECKS, { ...RABBITMQ, ...changed })
const kafka = (changed: Partial<KafkaFacts>) => idsIn(KAFKA_CHECKS, { ...KAFKA, ...changed })
const postgres = (changed: Partial<PostgresFacts>) =>
  idsIn(POSTGRES_CHECKS, { ...POSTGRES, ...changed })
const limited = (limit: number): Partial<RabbitmqFacts> => ({
  queues: [
    { ...SOURCE, arguments: { ...SOURCE.arguments, 'delivery-limit': limit } },
    DEAD_LETTERS,
    RETRY,
  ],
})
const retention = (name: string, ms: string): Partial<KafkaFacts> => ({
  topics: (KAFKA.topics ?? []).map((one) =>
    one.name === name ? { ...one, config: { ...one.config, 'retention.ms': ms } } : one,
  ),
})

describe('edge cases of RabbitMQ', () => {
  it('accepts a delivery limit of 1,000, and reports one of 0', () => {
    expect(rabbitmq(limited(1_000))).toEqual([])
    expect(rabbitmq(limited(0))).toEqual(['rabbitmq.delivery-limit-low'])
  })

  it('ignores unknown nodes and an invalid version', () => {
    expect(rabbitmq({ nodes: [] })).toEqual([])
    expect(rabbitmq({ version: 'unknown' })).toEqual([])
    expect(rabbitmq({ version: '3.10.0' })).toEqual([])
  })

  it('ignores unknown members, and reports an empty list of members', () => {
    const idsWith = (changed: Partial<QueueFacts>) =>
      rabbitmq({ queues: [{ ...SOURCE, ...changed }, DEAD_LETTERS, RETRY] })
    expect(idsWith({ members: undefined, online: undefined })).toEqual([])
    expect(idsWith({ members: undefined })).toEqual([])
    expect(idsWith({ online: undefined })).toEqual([])
    expect(idsWith({ members: [], online: [] })).toEqual(['rabbitmq.quorum-members'])
    expect(idsWith({ online: [] })).toEqual(['rabbitmq.members-offline'])
  })

  it('reads an empty list of members only when the broker returns one', async () => {
    const queues = [
      { name: 'new', type: 'quorum' },
      { name: 'empty', type: 'quorum', members: [], online: [] },
    ]
    const answers = new Map<string, unknown>([
      ['overview', { rabbitmq_version: '3.13.7' }],
      ['queues', queues],
    ])
    const fetching = vi.spyOn(globalThis, 'fetch').mockImplementation((asked) => {
      const [, , what = ''] = (asked as URL).pathname.split('/')
      return Promise.resolve(Response.json(answers.get(what) ?? []))
    })
    const facts = await readRabbitmq({ management: 'http://guest:guest@127.0.0.1:1' })
    fetching.mockRestore()
    expect(facts).toMatchObject({
      unreadable: [],
      queues: [
        { name: 'new', members: undefined, online: undefined },
        { name: 'empty', members: [], online: [] },
      ],
    })
  })

  it('counts the smaller of a number in an argument and a policy, and the only one there is', () => {
    const policed = { ...SOURCE, policy: { 'delivery-limit': 7 } }
    const { 'delivery-limit': _, ...without } = SOURCE.arguments
    expect(rabbitmq({ queues: [policed, DEAD_LETTERS, RETRY] })).toContain(
      'rabbitmq.delivery-limit-low',
    )
    expect(rabbitmq({ queues: [{ ...policed, arguments: without }, DEAD_LETTERS, RETRY] })).toEqual(
      ['rabbitmq.delivery-limit-low'],
    )
  })

  it('reports which exchange is missing or has no binding', () => {
    const found = (changed: Partial<RabbitmqFacts>) =>
      findIn(RABBITMQ_CHECKS, { ...RABBITMQ, ...changed })[0]?.found
    expect(found({ bindings: [] })).toBe("nothing is bound to 'orders.dlx' for the key orders")
    expect(found({ exchanges: [] })).toBe('exchange orders.dlx is missing')
  })

  it('does not mind an exchange that is not the dead-letter exchange', () => {
    const other = { name: 'other', type: 'direct', isDurable: false, isAutoDelete: true }
    expect(rabbitmq({ exchanges: [other, ...(RABBITMQ.exchanges ?? [])] })).toEqual([])
  })
})

describe('the role of a queue', () => {
  const FOREIGN: ExchangeFacts = {
    name: 'dead',
    type: 'fanout',
    isDurable: true,
    isAutoDelete: false,
  }
  const BOUND: BindingFacts = { exchange: 'dead', to: 'graveyard', toKind: 'queue', key: '' }
  const bare = (name: string, args: QueueFacts['arguments'] = {}): QueueFacts => ({
    ...queue(name, args),
    type: 'classic',
  })
  const subjects = (changed: Partial<RabbitmqFacts>) =>
    findIn(RABBITMQ_CHECKS, {
      ...RABBITMQ,
      exchanges: [FOREIGN],
      bindings: [BOUND],
      ...changed,
    }).map(({ check, subject }) => `${check} ${subject}`)
  const WORK = bare('work', { 'dead-letter-exchange': 'dead' })

  it('a source by its exchange, its dead letters by the way there, and others not at all', () => {
    expect(subjects({ queues: [WORK, bare('graveyard'), bare('scratch')] })).toEqual([
      'rabbitmq.classic-source work',
      'rabbitmq.classic-dead-letter-queue graveyard',
    ])
  })

  it('a retry queue by its time to live', () => {
    const wait = bare('wait', {
      'dead-letter-exchange': '',
      'dead-letter-routing-key': 'work',
      'message-ttl': 5,
    })
    expect(subjects({ queues: [wait, bare('work')] })).toEqual([
      'rabbitmq.classic-dead-letter-queue wait',
    ])
  })

  it('dead letters because they were named', () => {
    expect(subjects({ queues: [bare('errors')] })).toEqual(['rabbitmq.nothing-looked-at sources'])
    expect(subjects({ queues: [bare('errors')], deadLetterQueues: ['errors'] })).toEqual([
      'rabbitmq.classic-dead-letter-queue errors',
    ])
  })

  it('only what belongs to the sources that were named', () => {
    const queues = [
      WORK,
      bare('graveyard'),
      bare('more', { 'dead-letter-exchange': 'dead' }),
      bare('more.dlq'),
      bare('errors'),
    ]
    expect(subjects({ queues, sources: ['work'] })).toEqual([
      'rabbitmq.classic-source work',
      'rabbitmq.classic-dead-letter-queue graveyard',
    ])
    expect(
      subjects({ queues, sources: ['more'], deadLetterQueues: ['errors'], bindings: [] }),
    ).toEqual([
      'rabbitmq.dead-letters-nowhere more',
      'rabbitmq.classic-source more',
      'rabbitmq.classic-dead-letter-queue more.dlq',
      'rabbitmq.classic-dead-letter-queue errors',
    ])
  })

  it('not what others dead-letter to, when sources were named', () => {
    expect(subjects({ queues: [WORK, bare('graveyard')], sources: ['gone'] })).toEqual([
      'rabbitmq.nothing-looked-at sources',
      'rabbitmq.queue-missing gone',
    ])
  })

  it.each([
    ['orders.*', true],
    ['orders.#', true],
    ['#', true],
    ['*.new', true],
    ['orders.new.#', true],
    ['orders', false],
    ['*', false],
    ['orders.*.*', false],
    ['invoices.#', false],
    ['*.old', false],
  ])('a topic binding %s matches orders.new: %s', (key, isMatching) => {
    const work = {
      ...SOURCE,
      arguments: { ...SOURCE.arguments, 'dead-letter-routing-key': 'orders.new' },
    }
    const found = rabbitmq({
      queues: [work, DEAD_LETTERS, RETRY],
      exchanges: [{ name: 'orders.dlx', type: 'topic', isDurable: true, isAutoDelete: false }],
      bindings: [{ exchange: 'orders.dlx', to: 'orders.dlq', toKind: 'queue', key }],
    })
    expect(found).toEqual(isMatching ? [] : ['rabbitmq.dead-letters-stuck'])
  })

  it('exchanges in a circle lead nowhere, and end', () => {
    const bindings: BindingFacts[] = [
      { exchange: 'orders.dlx', to: 'orders.dlx', toKind: 'exchange', key: 'orders' },
    ]
    expect(rabbitmq({ bindings })).toEqual(['rabbitmq.dead-letters-stuck'])
  })

  it('an exchange of another kind counts as leading on', () => {
    const exchanges = [
      { name: 'orders.dlx', type: 'headers', isDurable: true, isAutoDelete: false },
    ]
    const bindings: BindingFacts[] = [
      { exchange: 'orders.dlx', to: 'orders.dlq', toKind: 'queue', key: 'x' },
    ]
    expect(rabbitmq({ exchanges, bindings })).toEqual([])
  })
})

describe('edge cases of Kafka', () => {
  const replicas = (ids: readonly number[], inSync: string): Partial<KafkaFacts> => ({
    topics: (KAFKA.topics ?? []).map((one) =>
      one.name === 'orders'
        ? {
            ...topic('orders', { 'min.insync.replicas': inSync }),
            partitions: one.partitions.map(() => ({ leader: 1, replicas: ids, inSync: ids })),
          }
        : one,
    ),
  })

  it('with one replica asks for more of them, with two for one more in sync as well', () => {
    expect(kafka(replicas([1], '1'))).toEqual(['kafka.replication-factor'])
    expect(kafka(replicas([1, 2], '1'))).toEqual([
      'kafka.min-insync-replicas',
      'kafka.replication-factor',
    ])
  })

  it('checks the listed dead-letter topics, and does not require those of Redrive', () => {
    const sources = [
      { topic: 'orders', group: 'billing', committed: 2, deadLetterTopics: ['errors'] },
    ]
    const topics = (KAFKA.topics ?? []).filter(({ name }) => !name.startsWith('orders.billing.'))
    const dead = topic('errors', { 'retention.ms': '1209600000' })
    expect(kafka({ sources, topics })).toEqual(['kafka.topic-missing'])
    expect(kafka({ sources, topics: [...topics, dead] })).toEqual([])
    const short = topic('errors', { 'retention.ms': '1' })
    expect(kafka({ sources, topics: [...topics, short] })).toEqual(['kafka.dead-letter-retention'])
  })

  it('takes a bound of nothing for a bound', () => {
    expect(kafka(retention('orders', '0'))).toEqual(['kafka.source-retention'])
    const bytes = (KAFKA.topics ?? []).map((one) =>
      one.name === 'orders.billing.dlq'
        ? { ...one, config: { ...one.config, 'retention.bytes': '0' } }
        : one,
    )
    expect(kafka({ topics: bytes })).toEqual(['kafka.retention-bytes'])
  })

  it('accepts the oldest supported version and unknown brokers', () => {
    expect(kafka({ apis: { Fetch: 15, EndTxn: 5 } })).toEqual([])
    expect(kafka({ brokers: [] })).toEqual([])
  })

  it('names the brokers that are missing', () => {
    const topics = (KAFKA.topics ?? []).map((one) =>
      one.name === 'orders'
        ? {
            ...one,
            partitions: [{ leader: 1, replicas: [1, 2, 3], inSync: [1, 3] }, ...one.partitions],
          }
        : one,
    )
    const [finding] = findIn(KAFKA_CHECKS, { ...KAFKA, topics }).filter(
      ({ check }) => check === 'kafka.under-replicated',
    )
    expect(finding?.found).toBe('1 of 3 partitions, without 2')
  })
})

describe('edge cases of PostgreSQL', () => {
  it('accepts values at the limit', () => {
    expect(postgres({ version: 13, transactionAge: 1_000_000_000, partitionDaysAhead: 2 })).toEqual(
      [],
    )
    expect(postgres({ connections: { used: 80, most: 100 } })).toEqual([])
    expect(postgres({ catalogRetentionMs: POSTGRES.expects.inboxRetentionMs })).toEqual([])
    expect(
      postgres({ transactions: [{ pid: 1, who: 'x', state: 'active', ageMs: 900_000 }] }),
    ).toEqual([])
    expect(postgres({ prepared: [{ name: 'x', ageMs: 900_000 }] })).toEqual([])
    expect(postgres({ slots: [{ name: 'x', isActive: true, keptBytes: 1_073_741_824 }] })).toEqual(
      [],
    )
  })

  it.each([
    [10_000, 9_999],
    [10_001, 10_001],
  ])('accepts %i dead rows with %i live rows', (deadRows, liveRows) => {
    expect(postgres({ tables: [{ name: 'x', liveRows, deadRows, isVacuumed: true }] })).toEqual([])
  })

  it('does not call a schema old whose migrations it could not read', () => {
    expect(postgres({ schemas: [{ schema: 'redrive', name: 'redrive', migrations: [] }] })).toEqual(
      [],
    )
  })

  it('says once what the session has from a database, and both when they differ', () => {
    const overrides = [{ of: 'database shop', name: 'synchronous_commit', value: 'off' }]
    const settings = { ...POSTGRES.settings, synchronous_commit: 'off' }
    const found = (facts: Partial<PostgresFacts>) =>
      findIn(POSTGRES_CHECKS, { ...POSTGRES, ...facts }).map(({ subject }) => subject)
    expect(found({ overrides, settings })).toEqual(['synchronous_commit of database shop'])
    expect(found({ overrides })).toEqual(['synchronous_commit of database shop'])
  })

  it('reports the age of a transaction', () => {
    const transactions = [{ pid: 1, who: 'x', state: 'idle in transaction', ageMs: 3_600_400 }]
    expect(findIn(POSTGRES_CHECKS, { ...POSTGRES, transactions })[0]?.found).toBe(
      'idle in transaction, open for 1h',
    )
  })
})
