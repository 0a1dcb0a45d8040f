import type {
  KafkaFacts,
  PostgresFacts,
  QueueFacts,
  RabbitmqFacts,
  RedisFacts,
  SqsFacts,
  SqsQueueFacts,
  TopicFacts,
} from '../src/index.ts'

/** Facts of deployments without findings; tests change one value. */

const NODES = ['one', 'two', 'three']

export const queue = (name: string, args: QueueFacts['arguments']): QueueFacts => ({
  name,
  type: 'quorum',
  isDurable: true,
  isAutoDelete: false,
  isExclusive: false,
  arguments: { overflow: 'reject-publish', ...args },
  policy: {},
  policyName: undefined,
  members: NODES,
  online: NODES,
})

export const SOURCE: QueueFacts = queue('orders', {
  'dead-letter-exchange': 'orders.dlx',
  'dead-letter-routing-key': 'orders',
  'dead-letter-strategy': 'at-least-once',
  'delivery-limit': 1_000_000,
})
export const DEAD_LETTERS: QueueFacts = queue('orders.dlq', { 'delivery-limit': 1_000_000 })
export const RETRY: QueueFacts = queue('orders.delay.5s', {
  'dead-letter-exchange': '',
  'dead-letter-routing-key': 'orders',
  'dead-letter-strategy': 'at-least-once',
  'message-ttl': 5_000,
})

export const RABBITMQ: RabbitmqFacts = {
  vhost: '/',
  version: '3.13.7',
  user: 'redrive',
  isLoopback: false,
  nodes: NODES.map((name) => ({
    name,
    isRunning: true,
    memoryAlarm: false,
    diskAlarm: false,
    cutOffFrom: [],
  })),
  queues: [SOURCE, DEAD_LETTERS, RETRY],
  exchanges: [
    { name: '', type: 'direct', isDurable: true, isAutoDelete: false },
    { name: 'orders.dlx', type: 'direct', isDurable: true, isAutoDelete: false },
  ],
  bindings: [{ exchange: 'orders.dlx', to: 'orders.dlq', toKind: 'queue', key: 'orders' }],
  policies: [],
  sources: [],
  deadLetterQueues: [],
  handlerTimeoutMs: 60_000,
  unreadable: [],
}

const BROKER_IDS = [1, 2, 3]

export const topic = (name: string, config: TopicFacts['config'] = {}): TopicFacts => ({
  name,
  partitions: [0, 1].map(() => ({ leader: 1, replicas: BROKER_IDS, inSync: BROKER_IDS })),
  config: {
    'cleanup.policy': 'delete',
    'max.message.bytes': '1048588',
    'message.timestamp.type': 'CreateTime',
    'min.insync.replicas': '2',
    'retention.bytes': '-1',
    'retention.ms': '604800000',
    'unclean.leader.election.enable': 'false',
    ...config,
  },
})

const RETRY_CONFIG = { 'message.timestamp.type': 'LogAppendTime', 'retention.ms': '608400000' }

export const KAFKA: KafkaFacts = {
  brokers: BROKER_IDS.map((id) => ({
    id,
    config: {
      'auto.create.topics.enable': 'false',
      'offsets.retention.minutes': '10080',
      'transaction.state.log.min.isr': '2',
      'transaction.state.log.replication.factor': '3',
    },
  })),
  apis: { Fetch: 17, EndTxn: 5 },
  topics: [
    topic('orders'),
    ...['250ms', '1s', '5s', '30s', '5m', '1h'].map((tier) =>
      topic(`orders.billing.retry.${tier}`, RETRY_CONFIG),
    ),
    topic('orders.billing.dlq', { 'retention.ms': '1209600000' }),
    topic('orders.billing.replayed', { 'retention.ms': '1209600000' }),
    topic('__consumer_offsets', { 'cleanup.policy': 'compact' }),
  ],
  sources: [{ topic: 'orders', group: 'billing', committed: 2 }],
  deadLetterRetentionMs: 1_209_600_000,
  unreadable: [],
}

export const POSTGRES: PostgresFacts = {
  database: 'shop',
  version: 16,
  isReplica: false,
  settings: {
    archive_mode: 'off',
    autovacuum: 'on',
    data_checksums: 'on',
    fsync: 'on',
    full_page_writes: 'on',
    idle_in_transaction_session_timeout: '300000',
    max_connections: '100',
    statement_timeout: '60000',
    synchronous_commit: 'on',
    synchronous_standby_names: 'replica',
    wal_level: 'replica',
  },
  overrides: [],
  standbys: [{ name: 'replica', sync: 'sync' }],
  connections: { used: 20, most: 97 },
  transactions: [{ pid: 7, who: 'shop', state: 'active', ageMs: 20 }],
  prepared: [{ name: 'fresh', ageMs: 20 }],
  slots: [{ name: 'replica', isActive: true, keptBytes: 1_000_000 }],
  transactionAge: 50_000_000,
  schemas: [
    {
      schema: 'redrive',
      name: 'redrive',
      migrations: ['0001-outbox', '0002-functions', '0003-replays', '0008-turn'],
    },
    {
      schema: 'redrive_catalog',
      name: 'redrive_catalog',
      migrations: ['0001-tables', '0019-set-aside-replays'],
    },
    { schema: 'redrive_server', name: 'redrive_server', migrations: undefined },
  ],
  tables: [
    { name: 'redrive.outbox_default', liveRows: 20_000, deadRows: 15_000, isVacuumed: true },
  ],
  outboxSchema: 'redrive',
  partitionDaysAhead: 8,
  catalogRetentionMs: 1_209_600_000,
  expects: {
    schemas: ['redrive', 'redrive_catalog'],
    inboxRetentionMs: 2_592_000_000,
    deadLetterRetentionMs: undefined,
    oldTransactionMs: 900_000,
  },
  unreadable: [],
}

const DAY_MS = 86_400_000

export const sqsQueue = (name: string): SqsQueueFacts => ({
  name,
  url: `https://sqs.eu-central-1.amazonaws.com/111122223333/${name}`,
  retentionMs: (name === 'failed' ? 14 : 4) * DAY_MS,
  visibilityMs: 30_000,
  maxBytes: 1_048_576,
  isDeduplicatedByBody: false,
  policy: name === 'failed' ? undefined : { deadLetters: 'failed', maxReceives: 10 },
})

export const SQS: SqsFacts = {
  sources: [{ name: 'orders', queue: sqsQueue('orders'), deadLetters: sqsQueue('failed') }],
  expects: { crashLimit: 6, handlerTimeoutMs: 30_000 },
  unreadable: [],
}

export const REDIS: RedisFacts = {
  server: 'localhost:6379',
  version: '7.0.15',
  // A primary always has a finding: it has replicas, or none.
  role: undefined,
  replicas: 0,
  isAppendOnly: true,
  appendFsync: 'always',
  evictionPolicy: 'noeviction',
  memory: { used: 50, most: 100 },
  failedWrites: [],
  unreadable: [],
}
