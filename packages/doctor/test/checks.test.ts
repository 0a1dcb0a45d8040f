import { describe, expect, it } from 'vitest'
import {
  type Check,
  findIn,
  KAFKA_CHECKS,
  type KafkaFacts,
  POSTGRES_CHECKS,
  type PostgresFacts,
  type QueueFacts,
  RABBITMQ_CHECKS,
  type RabbitmqFacts,
  REDIS_CHECKS,
  type RedisFacts,
  SQS_CHECKS,
  type SqsFacts,
  type SqsQueueFacts,
  type TopicFacts,
} from '../src/index.ts'
import {
  DEAD_LETTERS,
  KAFKA,
  POSTGRES,
  queue,
  RABBITMQ,
  REDIS,
  RETRY,
  SOURCE,
  SQS,
  sqsQueue,
  topic,
} from './good.ts'
import { idsIn } from './ids.ts'

type Table<Facts> = Readonly<Record<string, readonly Partial<Facts>[]>>

const UNREADABLE = { unreadable: [{ what: 'x', why: 'y', allow: 'z', hides: 'loss' as const }] }

// ---- RabbitMQ ---------------------------------------------------------------------------------

const queues = (...some: readonly QueueFacts[]): Partial<RabbitmqFacts> => ({
  queues: [SOURCE, DEAD_LETTERS, RETRY].map(
    (one) => some.find(({ name }) => name === one.name) ?? one,
  ),
})
const withArgs = (one: QueueFacts, args: QueueFacts['arguments']): Partial<RabbitmqFacts> =>
  queues({
    ...one,
    arguments: Object.fromEntries(
      Object.entries({ ...one.arguments, ...args }).filter(([, value]) => value !== undefined),
    ),
  })
const nodes = (count: number, change: object = {}): Partial<RabbitmqFacts> => ({
  nodes: Array.from({ length: count }, (_, index) => ({
    name: `node${index}`,
    isRunning: true,
    memoryAlarm: false,
    diskAlarm: false,
    cutOffFrom: [],
    ...(index === 0 ? change : {}),
  })),
})
const NO_EXCHANGE = { 'dead-letter-exchange': undefined, 'dead-letter-routing-key': undefined }
const AT_MOST_ONCE = { 'dead-letter-strategy': undefined }

const OF_RABBITMQ: Table<RabbitmqFacts> = {
  'rabbitmq.unreadable': [UNREADABLE],
  'rabbitmq.nothing-looked-at': [{ queues: [] }, { queues: [queue('scratch', {})] }],
  'rabbitmq.version': [{ version: '3.9.29' }, { version: '2.8.7' }],
  'rabbitmq.one-node': [nodes(1), nodes(2)],
  'rabbitmq.even-nodes': [nodes(4), nodes(6)],
  'rabbitmq.node-down': [nodes(3, { isRunning: false })],
  'rabbitmq.partitioned': [nodes(3, { cutOffFrom: ['node1'] })],
  'rabbitmq.alarm': [nodes(3, { memoryAlarm: true }), nodes(3, { diskAlarm: true })],
  'rabbitmq.queue-missing': [{ sources: ['orders', 'invoices'] }, { deadLetterQueues: ['gone'] }],
  'rabbitmq.guest': [{ user: 'guest' }],
  'rabbitmq.classic-source': [queues({ ...SOURCE, type: 'classic' })],
  'rabbitmq.classic-dead-letter-queue': [
    queues({ ...DEAD_LETTERS, type: 'classic' }),
    queues({ ...RETRY, type: 'classic' }),
  ],
  'rabbitmq.not-durable': [
    queues({ ...SOURCE, isDurable: false }),
    queues({ ...RETRY, isDurable: false }),
  ],
  'rabbitmq.auto-delete': [
    queues({ ...SOURCE, isAutoDelete: true }),
    queues({ ...DEAD_LETTERS, isExclusive: true }),
  ],
  'rabbitmq.expires': [
    withArgs(RETRY, { expires: 1 }),
    queues({ ...SOURCE, policy: { expires: 1 } }),
  ],
  'rabbitmq.drop-head': [
    withArgs(DEAD_LETTERS, { 'max-length': 1, overflow: undefined }),
    withArgs(DEAD_LETTERS, { 'max-length-bytes': 1, overflow: 'drop-head' }),
  ],
  'rabbitmq.dead-letter-queue-bounded': [
    withArgs(DEAD_LETTERS, { 'max-length': 1 }),
    withArgs(DEAD_LETTERS, { 'max-length-bytes': 1, overflow: 'reject-publish-dlx' }),
  ],
  'rabbitmq.dead-letter-ttl': [withArgs(DEAD_LETTERS, { 'message-ttl': 1 })],
  'rabbitmq.source-ttl': [withArgs(SOURCE, { 'message-ttl': 1 })],
  'rabbitmq.delivery-limit-drops': [
    withArgs(DEAD_LETTERS, { 'delivery-limit': 999 }),
    { ...withArgs(DEAD_LETTERS, { 'delivery-limit': undefined }), version: '4.0.0' },
  ],
  'rabbitmq.delivery-limit-low': [
    withArgs(SOURCE, { 'delivery-limit': 999 }),
    { ...withArgs(SOURCE, { 'delivery-limit': undefined }), version: '4.1.0' },
  ],
  'rabbitmq.delivery-limit-missing': [withArgs(SOURCE, { 'delivery-limit': undefined })],
  'rabbitmq.consumer-timeout': [
    { handlerTimeoutMs: 1_800_000 },
    { ...queues({ ...SOURCE, policy: { 'consumer-timeout': 30_000 } }), handlerTimeoutMs: 60_000 },
  ],
  'rabbitmq.quorum-members': [
    queues({ ...SOURCE, members: ['one', 'two'], online: ['one', 'two'] }),
    queues({ ...DEAD_LETTERS, members: ['one'], online: ['one'] }),
  ],
  'rabbitmq.even-members': [
    queues({ ...SOURCE, members: ['1', '2', '3', '4'], online: ['1', '2', '3', '4'] }),
  ],
  'rabbitmq.members-offline': [queues({ ...SOURCE, online: ['one', 'two'] })],
  'rabbitmq.priority': [withArgs(SOURCE, { 'max-priority': 5 })],
  'rabbitmq.lazy': [
    withArgs(SOURCE, { 'queue-mode': 'lazy' }),
    queues({ ...DEAD_LETTERS, policy: { 'queue-mode': 'default' } }),
  ],
  'rabbitmq.policy-overridden': [queues({ ...SOURCE, policy: { overflow: 'drop-head' } })],
  'rabbitmq.no-dead-letter-exchange': [withArgs(SOURCE, NO_EXCHANGE)],
  'rabbitmq.dead-letter-strategy': [
    withArgs(SOURCE, AT_MOST_ONCE),
    withArgs(RETRY, { 'dead-letter-strategy': 'at-most-once' }),
  ],
  'rabbitmq.dead-letter-overflow': [
    withArgs(SOURCE, { overflow: 'drop-head' }),
    withArgs(RETRY, { overflow: undefined }),
  ],
  'rabbitmq.dead-letters-nowhere': [{ ...queues({ ...SOURCE, type: 'stream' }), bindings: [] }],
  'rabbitmq.dead-letters-stuck': [
    { bindings: [] },
    { bindings: [{ exchange: 'orders.dlx', to: 'orders.dlq', toKind: 'queue', key: 'order' }] },
    { exchanges: [] },
    withArgs(RETRY, { 'dead-letter-routing-key': 'missing' }),
  ],
  'rabbitmq.exchange-not-durable': [
    { exchanges: [{ name: 'orders.dlx', type: 'direct', isDurable: false, isAutoDelete: false }] },
    { exchanges: [{ name: 'orders.dlx', type: 'direct', isDurable: true, isAutoDelete: true }] },
  ],
  'rabbitmq.retry-queue-shared': [
    withArgs(RETRY, { 'dead-letter-routing-key': undefined }),
    {
      ...withArgs(RETRY, { 'dead-letter-exchange': 'back', 'dead-letter-routing-key': 'any' }),
      exchanges: [
        ...(RABBITMQ.exchanges ?? []),
        { name: 'back', type: 'fanout', isDurable: true, isAutoDelete: false },
      ],
      bindings: [
        ...(RABBITMQ.bindings ?? []),
        { exchange: 'back', to: 'orders', toKind: 'queue', key: '' },
        { exchange: 'back', to: 'orders.dlq', toKind: 'queue', key: '' },
      ],
    },
  ],
  'rabbitmq.retry-elsewhere': [
    withArgs(RETRY, { 'dead-letter-routing-key': 'orders.dlq' }),
    withArgs(RETRY, NO_EXCHANGE),
  ],
  'rabbitmq.retry-ttl': [
    withArgs(RETRY, { 'message-ttl': 6_000 }),
    withArgs(RETRY, { 'message-ttl': undefined }),
  ],
}

/** Additional findings, because one fault causes another. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  'rabbitmq.dead-letters-nowhere': ['rabbitmq.classic-source'],
  'kafka.replication-factor': ['kafka.no-spare-replica'],
  'postgres.no-copy': ['postgres.no-synchronous-standby'],
}

// ---- Kafka ------------------------------------------------------------------------------------

const topics = (...some: readonly TopicFacts[]): Partial<KafkaFacts> => ({
  topics: (KAFKA.topics ?? []).map((one) => some.find(({ name }) => name === one.name) ?? one),
})
const of = (name: string): TopicFacts =>
  (KAFKA.topics ?? []).find((one) => one.name === name) ?? topic(name)
const config = (name: string, changed: TopicFacts['config']): Partial<KafkaFacts> =>
  topics({ ...of(name), config: { ...of(name).config, ...changed } })
const partitions = (name: string, ...some: TopicFacts['partitions']): Partial<KafkaFacts> =>
  topics({ ...of(name), partitions: some })
const broker = (name: string, value: string): Partial<KafkaFacts> => ({
  brokers: KAFKA.brokers.map((one) =>
    one.id === 2 ? { ...one, config: { ...one.config, [name]: value } } : one,
  ),
})
const FULL = { leader: 1, replicas: [1, 2, 3], inSync: [1, 2, 3] }
const DLQ = 'orders.billing.dlq'
const HOUR = 'orders.billing.retry.1h'
const REPLAYED = 'orders.billing.replayed'

const OF_KAFKA: Table<KafkaFacts> = {
  'kafka.unreadable': [UNREADABLE],
  'kafka.nothing-looked-at': [{ sources: [] }],
  'kafka.few-brokers': [
    { brokers: KAFKA.brokers.slice(0, 1) },
    { brokers: KAFKA.brokers.slice(0, 2) },
  ],
  'kafka.version': [{ apis: { Fetch: 14 } }],
  'kafka.transactions-v1': [{ apis: { EndTxn: 4 } }],
  'kafka.auto-create-topics': [broker('auto.create.topics.enable', 'true')],
  'kafka.offsets-retention': [broker('offsets.retention.minutes', '1440')],
  'kafka.offsets-replication': [
    partitions('__consumer_offsets', FULL, { leader: 1, replicas: [1], inSync: [1] }),
  ],
  'kafka.transaction-log-replication': [broker('transaction.state.log.replication.factor', '1')],
  'kafka.transaction-log-min-isr': [broker('transaction.state.log.min.isr', '1')],
  'kafka.no-committed-offset': [{ sources: [{ topic: 'orders', group: 'billing', committed: 0 }] }],
  'kafka.replication-factor': [
    partitions(DLQ, FULL, { leader: 1, replicas: [1, 2], inSync: [1, 2] }),
  ],
  'kafka.min-insync-replicas': [
    config('orders', { 'min.insync.replicas': '1' }),
    config(DLQ, { 'min.insync.replicas': '1' }),
  ],
  'kafka.no-spare-replica': [config(HOUR, { 'min.insync.replicas': '3' })],
  'kafka.unclean-leader-election': [
    config('orders', { 'unclean.leader.election.enable': 'true' }),
    config(HOUR, { 'unclean.leader.election.enable': 'true' }),
  ],
  'kafka.compacted': [
    config(DLQ, { 'cleanup.policy': 'compact' }),
    config(HOUR, { 'cleanup.policy': 'compact,delete' }),
    config(REPLAYED, { 'cleanup.policy': 'delete,compact' }),
  ],
  'kafka.retry-retention': [config(HOUR, { 'retention.ms': '608399999' })],
  'kafka.dead-letter-retention': [
    config(DLQ, { 'retention.ms': '1209599999' }),
    { deadLetterRetentionMs: 1_209_600_001 },
  ],
  'kafka.retention-bytes': [
    config(DLQ, { 'retention.bytes': '1000' }),
    config(HOUR, { 'retention.bytes': '1000' }),
  ],
  'kafka.source-retention': [config('orders', { 'retention.ms': '86399999' })],
  'kafka.confirmation-retention': [config(REPLAYED, { 'retention.ms': '1209599999' })],
  'kafka.message-size': [
    config('orders', { 'max.message.bytes': '2000000' }),
    config(DLQ, { 'max.message.bytes': '1000' }),
  ],
  'kafka.timestamp-type': [config(HOUR, { 'message.timestamp.type': 'CreateTime' })],
  'kafka.fewer-partitions': [partitions('orders', FULL, FULL, FULL), partitions(DLQ, FULL)],
  'kafka.under-replicated': [partitions('orders', FULL, { ...FULL, inSync: [1, 2] })],
  'kafka.offline-partition': [partitions(DLQ, FULL, { ...FULL, leader: undefined })],
  'kafka.topic-missing': [
    { topics: (KAFKA.topics ?? []).filter(({ name }) => name !== HOUR) },
    { topics: (KAFKA.topics ?? []).filter(({ name }) => name !== 'orders') },
  ],
}

// ---- PostgreSQL -------------------------------------------------------------------------------

const settings = (changed: PostgresFacts['settings']): Partial<PostgresFacts> => ({
  settings: { ...POSTGRES.settings, ...changed },
})
const override = (name: string, value: string): Partial<PostgresFacts> => ({
  overrides: [{ of: 'role billing', name, value }],
})
const expects = (changed: Partial<PostgresFacts['expects']>): Partial<PostgresFacts> => ({
  expects: { ...POSTGRES.expects, ...changed },
})

const OF_POSTGRES: Table<PostgresFacts> = {
  'postgres.unreadable': [UNREADABLE],
  'postgres.version': [{ version: 12 }],
  'postgres.fsync': [settings({ fsync: 'off' })],
  'postgres.full-page-writes': [settings({ full_page_writes: 'off' })],
  'postgres.synchronous-commit': [
    settings({ synchronous_commit: 'off' }),
    override('synchronous_commit', 'off'),
  ],
  'postgres.no-synchronous-standby': [settings({ synchronous_standby_names: '' })],
  'postgres.commit-not-on-standby': [
    settings({ synchronous_commit: 'local' }),
    override('synchronous_commit', 'remote_write'),
  ],
  'postgres.standby-missing': [
    { standbys: [{ name: 'x', sync: 'async' }] },
    { ...settings({ archive_mode: 'on' }), standbys: [] },
  ],
  'postgres.replica': [{ isReplica: true }],
  'postgres.checksums': [settings({ data_checksums: 'off' })],
  'postgres.wal-level': [settings({ wal_level: 'minimal' })],
  'postgres.no-copy': [{ ...settings({ synchronous_standby_names: '' }), standbys: [] }],
  'postgres.connections': [{ connections: { used: 78, most: 97 } }],
  'postgres.statement-timeout': [settings({ statement_timeout: '0' })],
  'postgres.idle-in-transaction-timeout': [settings({ idle_in_transaction_session_timeout: '0' })],
  'postgres.old-transaction': [
    { transactions: [{ pid: 1, who: 'x', state: 'idle in transaction', ageMs: 900_001 }] },
  ],
  'postgres.prepared-transaction': [{ prepared: [{ name: 'x', ageMs: 900_001 }] }],
  'postgres.abandoned-slot': [{ slots: [{ name: 'x', isActive: false, keptBytes: 1 }] }],
  'postgres.lagging-slot': [{ slots: [{ name: 'x', isActive: true, keptBytes: 2_000_000_000 }] }],
  'postgres.wraparound': [{ transactionAge: 1_000_000_001 }],
  'postgres.autovacuum': [settings({ autovacuum: 'off' })],
  'postgres.table-autovacuum': [
    { tables: [{ name: 'redrive.outbox_default', liveRows: 1, deadRows: 0, isVacuumed: false }] },
  ],
  'postgres.bloat': [
    {
      tables: [
        { name: 'redrive.outbox_default', liveRows: 10_000, deadRows: 10_001, isVacuumed: true },
      ],
    },
  ],
  'postgres.outbox-partitions': [{ partitionDaysAhead: 1 }, { partitionDaysAhead: 0 }],
  'postgres.inbox-retention': [
    { catalogRetentionMs: 2_592_000_001 },
    expects({ deadLetterRetentionMs: 2_592_000_001 }),
    expects({ inboxRetentionMs: 1_209_599_999 }),
  ],
  'postgres.schema-missing': [expects({ schemas: ['redrive_server'] })],
  'postgres.schema-old': [
    { schemas: [{ schema: 'redrive', name: 'redrive', migrations: ['0001-outbox'] }] },
    {
      schemas: [
        { schema: 'redrive_catalog', name: 'redrive_catalog', migrations: ['0001-tables'] },
      ],
    },
  ],
}

// ---- Redis ------------------------------------------------------------------------------------

const OF_REDIS: Table<RedisFacts> = {
  'redis.unreadable': [UNREADABLE],
  'redis.no-append-only-file': [{ isAppendOnly: false, appendFsync: undefined }],
  'redis.append-fsync': [{ appendFsync: 'everysec' }, { appendFsync: 'no' }],
  'redis.eviction': [{ evictionPolicy: 'allkeys-lru' }, { evictionPolicy: 'volatile-ttl' }],
  'redis.asynchronous-replicas': [{ role: 'primary', replicas: 1 }],
  'redis.no-replica': [{ role: 'primary' }],
  'redis.memory-full': [{ memory: { used: 90, most: 100 } }],
  'redis.failed-writes': [{ failedWrites: ['snapshot'] }],
  'redis.replica': [{ role: 'replica' }],
  'redis.version': [{ version: '6.2.14' }],
  'redis.no-memory-limit': [{ memory: { used: 50, most: 0 } }],
}

// ---- SQS --------------------------------------------------------------------------------------

const sqsFacts = (
  change: Partial<SqsQueueFacts>,
  dead: Partial<SqsQueueFacts> = {},
): Partial<SqsFacts> => {
  const queue = { ...sqsQueue('orders'), ...change }
  return { sources: [{ name: queue.name, queue, deadLetters: { ...sqsQueue('failed'), ...dead } }] }
}
const POLICY = { deadLetters: 'failed', maxReceives: 10 }
const DAY_MS = 86_400_000

const OF_SQS: Table<SqsFacts> = {
  'sqs.unreadable': [UNREADABLE],
  'sqs.nothing-looked-at': [{ sources: [] }],
  'sqs.dead-letter-retention': [
    sqsFacts({ policy: POLICY }, { retentionMs: 4 * DAY_MS }),
    sqsFacts({ policy: POLICY }, { retentionMs: 3 * DAY_MS }),
  ],
  'sqs.visibility': [sqsFacts({ visibilityMs: 29_999 }), sqsFacts({ visibilityMs: 0 })],
  'sqs.queue-missing': [
    { sources: [{ name: 'orders', queue: undefined, deadLetters: undefined }] },
  ],
  'sqs.dead-letter-queue-missing': [
    { sources: [{ name: 'orders', queue: sqsQueue('orders'), deadLetters: undefined }] },
  ],
  'sqs.dead-letter-size': [sqsFacts({}, { maxBytes: 262_144 })],
  'sqs.fifo-without-policy': [sqsFacts({ name: 'orders.fifo', policy: undefined })],
  'sqs.dead-letter-policy': [sqsFacts({}, { policy: POLICY })],
  'sqs.max-receives': [sqsFacts({ policy: { ...POLICY, maxReceives: 5 } })],
  'sqs.content-deduplication': [
    sqsFacts({ name: 'orders.fifo', policy: POLICY, isDeduplicatedByBody: true }),
  ],
}

// ---- all --------------------------------------------------------------------------------------

function suite<Facts>(
  name: string,
  checks: readonly Check<Facts>[],
  good: Facts,
  table: Table<Facts>,
): void {
  describe(`checks of ${name}`, () => {
    it('finds nothing in good facts', () => {
      expect(idsIn(checks, good)).toEqual([])
    })

    it('has a case for every check, and no check twice', () => {
      expect(Object.keys(table).sort()).toEqual(checks.map(({ id }) => id).sort())
    })

    const cases = Object.entries(table).flatMap(([id, some]) =>
      some.map((bad, index) => ({ id, bad, index })),
    )
    it.each(cases)('$id, case $index', ({ id, bad }) => {
      const expected = [id, ...(ALSO[id] ?? [])].sort()
      const facts = { ...good, ...bad }
      expect(idsIn(checks, facts)).toEqual(expected)
      // A word in braces would be an unfilled placeholder.
      for (const { fix } of findIn(checks, facts)) expect(fix).not.toMatch(/\{[a-zA-Z]+\}/)
    })
  })
}

suite('RabbitMQ', RABBITMQ_CHECKS, RABBITMQ, OF_RABBITMQ)
suite('Kafka', KAFKA_CHECKS, KAFKA, OF_KAFKA)
suite('PostgreSQL', POSTGRES_CHECKS, POSTGRES, OF_POSTGRES)
suite('Redis', REDIS_CHECKS, REDIS, OF_REDIS)
suite('Amazon SQS', SQS_CHECKS, SQS, OF_SQS)

describe('no finding for', () => {
  const fine: readonly (readonly [string, RabbitmqFacts])[] = [
    ['five nodes', { ...RABBITMQ, ...nodes(5) }],
    ['guest on this machine', { ...RABBITMQ, user: 'guest', isLoopback: true }],
    ['the default limit of 4.0, when it is set high', { ...RABBITMQ, version: '4.2.0' }],
    [
      'no limit at all since 4.0',
      { ...RABBITMQ, ...withArgs(SOURCE, { 'delivery-limit': -1 }), version: '4.2.0' },
    ],
    [
      'a policy that says the same',
      { ...RABBITMQ, ...queues({ ...SOURCE, policy: { overflow: 'reject-publish' } }) },
    ],
    [
      'a queue without a role',
      {
        ...RABBITMQ,
        queues: [
          ...(RABBITMQ.queues ?? []),
          { ...queue('scratch', {}), type: 'classic', isDurable: false },
        ],
      },
    ],
    ['bindings that could not be read', { ...RABBITMQ, bindings: undefined }],
    [
      'a dead-letter queue that is a stream',
      { ...RABBITMQ, ...queues({ ...DEAD_LETTERS, type: 'stream' }) },
    ],
    [
      'a topic exchange whose pattern matches',
      {
        ...RABBITMQ,
        exchanges: [{ name: 'orders.dlx', type: 'topic', isDurable: true, isAutoDelete: false }],
        bindings: [{ exchange: 'orders.dlx', to: 'orders.dlq', toKind: 'queue', key: '#.orders' }],
      },
    ],
    [
      'an exchange that leads on to another',
      {
        ...RABBITMQ,
        exchanges: [
          ...(RABBITMQ.exchanges ?? []),
          { name: 'all', type: 'fanout', isDurable: true, isAutoDelete: false },
        ],
        bindings: [
          { exchange: 'orders.dlx', to: 'all', toKind: 'exchange', key: 'orders' },
          { exchange: 'all', to: 'orders.dlq', toKind: 'queue', key: '' },
        ],
      },
    ],
  ]

  it.each(fine)('%s', (_, facts) => {
    expect(idsIn(RABBITMQ_CHECKS, facts)).toEqual([])
  })

  it('unlimited retention, of all kinds', () => {
    const forever = (KAFKA.topics ?? []).map((one) => ({
      ...one,
      config: { ...one.config, 'retention.ms': '-1' },
    }))
    expect(idsIn(KAFKA_CHECKS, { ...KAFKA, topics: forever })).toEqual([])
  })

  it('topic settings that could not be read', () => {
    const silent = (KAFKA.topics ?? []).map((one) => ({ ...one, config: {} }))
    expect(idsIn(KAFKA_CHECKS, { ...KAFKA, topics: silent })).toEqual([])
  })

  it('a quorum of replicas, and an archive instead of a replica', () => {
    const quorum = { ...POSTGRES, standbys: [{ name: 'x', sync: 'quorum' }] }
    expect(idsIn(POSTGRES_CHECKS, quorum)).toEqual([])
    const archived = {
      ...POSTGRES,
      ...settings({ archive_mode: 'on', synchronous_standby_names: '' }),
      standbys: [],
    }
    expect(idsIn(POSTGRES_CHECKS, archived)).toEqual(['postgres.no-synchronous-standby'])
  })

  it('commits that wait only for the disk, without a synchronous replica', () => {
    const local = {
      ...POSTGRES,
      ...settings({ synchronous_commit: 'local', synchronous_standby_names: '' }),
    }
    expect(idsIn(POSTGRES_CHECKS, local)).toEqual(['postgres.no-synchronous-standby'])
  })
})
