import { describe, expect, it } from 'vitest'
import { findIn, gradeOf, NATS_CHECKS, type NatsFacts, type StreamFacts } from '../src/index.ts'
import { asTree, natsTopology } from '../src/topology.ts'
import { idsIn } from './ids.ts'

const stream = (name: string): StreamFacts => ({
  name,
  storage: 'file',
  replicas: 3,
  retention: 'workqueue',
  discard: 'new',
  maxMessages: undefined,
  maxMessagesPerSubject: undefined,
  maxBytes: undefined,
  maxAgeMs: undefined,
  maxMessageBytes: undefined,
  messages: 10,
  bytes: 1_000,
  hasLeader: true,
  behind: [],
})

const SOURCE = 'ORDERS'
const RETRY = 'ORDERS-billing-retry'
const DEAD_LETTERS = 'ORDERS-billing-dlq'
const NAMES = [SOURCE, RETRY, DEAD_LETTERS]

const CONSUMER = {
  stream: SOURCE,
  name: 'billing',
  isInMemory: false,
  maxAckPending: 20_000,
  ackPending: 10,
}

const GOOD: NatsFacts = {
  version: '2.15.0',
  // Without a limit, a stream that discards old messages keeps all. A retry stream has this setting.
  streams: NAMES.map((name) => ({ ...stream(name), discard: name === RETRY ? 'old' : 'new' })),
  consumers: [CONSUMER],
  servers: [],
  account: { used: 10, most: 100 },
  sources: [{ stream: SOURCE, consumer: 'billing' }],
  unreadable: [],
}

const changed = (name: string, change: Partial<StreamFacts>): Partial<NatsFacts> => ({
  streams: (GOOD.streams ?? []).map((one) => (one.name === name ? { ...one, ...change } : one)),
})

const CASES: Readonly<Record<string, readonly Partial<NatsFacts>[]>> = {
  'nats.unreadable': [
    { unreadable: [{ what: 'x', why: 'y', allow: 'z', hides: 'loss' }] },
    { streams: undefined, unreadable: [{ what: 'x', why: 'y', allow: 'z', hides: 'loss' }] },
  ],
  'nats.nothing-looked-at': [{ sources: [] }],
  'nats.sync-interval': [
    {
      ...changed(DEAD_LETTERS, { replicas: 1 }),
      servers: [{ server: 'one', intervalMs: 120_000 }],
    },
  ],
  'nats.version': [{ version: '2.11.9' }, { version: '1.4.0' }],
  'nats.account-full': [{ account: { used: 90, most: 100 } }],
  'nats.stream-missing': NAMES.map((name) => ({
    streams: (GOOD.streams ?? []).filter((one) => one.name !== name),
  })),
  'nats.memory-consumer': [{ consumers: [{ ...CONSUMER, isInMemory: true }] }],
  'nats.ack-pending-full': [{ consumers: [{ ...CONSUMER, ackPending: 20_000 }] }],
  'nats.replicas': [changed(SOURCE, { replicas: 1 }), changed(RETRY, { replicas: 2 })],
  'nats.memory-storage': NAMES.map((name) => changed(name, { storage: 'memory' })),
  'nats.discard-old': [
    changed(SOURCE, { discard: 'old', maxMessages: 1_000 }),
    changed(SOURCE, { discard: 'old', maxMessagesPerSubject: 1 }),
    changed(RETRY, { maxBytes: 1_000_000 }),
  ],
  'nats.source-age': [changed(SOURCE, { maxAgeMs: 86_399_999 })],
  'nats.own-age': [changed(RETRY, { maxAgeMs: 1e12 }), changed(DEAD_LETTERS, { maxAgeMs: 1e12 })],
  'nats.nearly-full': [
    changed(SOURCE, { maxMessages: 11 }),
    changed(DEAD_LETTERS, { maxBytes: 1_100 }),
  ],
  'nats.message-size': [
    changed(DEAD_LETTERS, { maxMessageBytes: 1_000 }),
    {
      streams: (GOOD.streams ?? []).map((one) => ({
        ...one,
        maxMessageBytes: one.name === RETRY ? 1_000 : 2_000,
      })),
    },
  ],
  'nats.no-leader': [changed(RETRY, { hasLeader: false })],
  'nats.replica-behind': [changed(SOURCE, { behind: ['two'] })],
}

/** Checks that find the same setting. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  'nats.sync-interval': ['nats.replicas'],
}

describe('checks of NATS JetStream', () => {
  it('find nothing in good facts', () => {
    expect(idsIn(NATS_CHECKS, GOOD)).toEqual([])
  })

  it('have a case each, and no check exists twice', () => {
    expect(Object.keys(CASES).sort()).toEqual(NATS_CHECKS.map(({ id }) => id).sort())
  })

  const cases = Object.entries(CASES).flatMap(([id, some]) =>
    some.map((bad, index) => ({ id, bad, index })),
  )
  it.each(cases)('$id, case $index', ({ id, bad }) => {
    const facts = { ...GOOD, ...bad }
    expect(idsIn(NATS_CHECKS, facts)).toEqual([id, ...(ALSO[id] ?? [])].sort())
    // A word in braces would be a placeholder without a value.
    for (const { fix } of findIn(NATS_CHECKS, facts)) expect(fix).not.toMatch(/\{[a-zA-Z:]+\}/)
  })

  it('ignore the time of fsync when all streams have three replicas, or it is before each confirmation', () => {
    const servers = [{ server: 'one', intervalMs: 120_000 }]
    expect(idsIn(NATS_CHECKS, { ...GOOD, servers })).toEqual([])
    const always = {
      ...changed(SOURCE, { replicas: 1 }),
      servers: [{ server: 'one', intervalMs: 0 }],
    }
    expect(idsIn(NATS_CHECKS, { ...GOOD, ...always })).toEqual(['nats.replicas'])
    expect(gradeOf(findIn(NATS_CHECKS, { ...GOOD, ...always })).grade).toBe('B')
  })

  it('belong to a topology with the streams below their source', () => {
    expect(asTree(natsTopology(GOOD))).toEqual([
      `ORDERS (workqueue, file, replicas: 3) -> ${RETRY}, ${DEAD_LETTERS}`,
      `├─ ${RETRY} (workqueue, file, replicas: 3) -> ${DEAD_LETTERS}`,
      `└─ ${DEAD_LETTERS} (workqueue, file, replicas: 3)`,
    ])
  })

  it('use the prefix of a source', () => {
    const sources = [{ stream: SOURCE, consumer: 'billing', prefix: 'own' }]
    const found = findIn(NATS_CHECKS, { ...GOOD, sources }).map(({ subject }) => subject)
    expect(found).toEqual(['own-retry', 'own-dlq'])
  })
})
