import { urlsOf } from '@redrive/dev-support'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findIn, gradeOf, KAFKA_CHECKS, readKafka } from '../src/index.ts'
import { type KafkaWorld, kafkaWorld } from './kafka.world.ts'
import { idsIn } from './ids.ts'

/** Brokers exchange metadata about a change, and a busy one is slow. */
const SOON = { timeout: 30_000 }

/** An address without a server. */
const DEAD = '127.0.0.1:25899'

type Place = 'source' | 'retry' | 'deadLetters' | 'replayed'

interface Seed {
  readonly name: string
  readonly expected: string
  readonly at: Place
  readonly config: Readonly<Record<string, string>>
  /** The previous value; default: not set. */
  readonly was?: Readonly<Record<string, string>>
}

const MADE = { 'cleanup.policy': 'delete', 'retention.ms': '608400000' }

const TOPIC_SEEDS: readonly Seed[] = [
  {
    name: 'unclean leader election',
    expected: 'kafka.unclean-leader-election',
    at: 'source',
    config: { 'unclean.leader.election.enable': 'true' },
  },
  {
    name: 'a compacted dead-letter topic',
    expected: 'kafka.compacted',
    at: 'deadLetters',
    config: { 'cleanup.policy': 'compact' },
    was: MADE,
  },
  {
    name: 'a compacted retry topic',
    expected: 'kafka.compacted',
    at: 'retry',
    config: { 'cleanup.policy': 'compact,delete' },
    was: MADE,
  },
  {
    name: 'a retry topic that is kept for less than its delay',
    expected: 'kafka.retry-retention',
    at: 'retry',
    config: { 'retention.ms': '1800000' },
    was: MADE,
  },
  {
    name: 'a dead-letter topic that is kept for a day',
    expected: 'kafka.dead-letter-retention',
    at: 'deadLetters',
    config: { 'retention.ms': '86400000' },
    was: { 'retention.ms': '1209600000' },
  },
  {
    name: 'a dead-letter topic that is bounded by size',
    expected: 'kafka.retention-bytes',
    at: 'deadLetters',
    config: { 'retention.bytes': '1048576' },
  },
  {
    name: 'a source topic that is kept for an hour',
    expected: 'kafka.source-retention',
    at: 'source',
    config: { 'retention.ms': '3600000' },
  },
  {
    name: 'confirmations that are kept for a day',
    expected: 'kafka.confirmation-retention',
    at: 'replayed',
    config: { 'retention.ms': '86400000' },
    was: { 'retention.ms': '1209600000' },
  },
  {
    name: 'a source with larger records than can be set aside',
    expected: 'kafka.message-size',
    at: 'source',
    config: { 'max.message.bytes': '5000000' },
  },
  {
    name: "a retry topic with the producer's times",
    expected: 'kafka.timestamp-type',
    at: 'retry',
    config: { 'message.timestamp.type': 'CreateTime' },
    was: { 'message.timestamp.type': 'LogAppendTime' },
  },
]

/** Wrong settings that need more than one broker. */
const REPLICA_SEEDS: readonly Seed[] = [
  {
    name: 'records that count as stored on one broker',
    expected: 'kafka.min-insync-replicas',
    at: 'deadLetters',
    config: { 'min.insync.replicas': '1' },
  },
  {
    name: 'no broker to spare',
    expected: 'kafka.no-spare-replica',
    at: 'source',
    config: { 'min.insync.replicas': '3' },
  },
]

/** Tests each misconfiguration. `always` lists the findings of the cluster itself. */
export function kafkaSuite(service: string, replicas: number, always: readonly string[]): void {
  const seeds = replicas > 1 ? [...TOPIC_SEEDS, ...REPLICA_SEEDS] : TOPIC_SEEDS
  let brokers: readonly string[]

  beforeAll(async () => {
    brokers = await urlsOf(service)
  }, 240_000)

  describe('on what the transport makes', () => {
    let world: KafkaWorld

    beforeAll(async () => {
      world = await kafkaWorld(brokers, replicas)
      await world.commit()
    }, 120_000)

    afterAll(() => world.end())

    it(`finds ${always.join() || 'nothing at all'}`, async () => {
      await expect.poll(world.ids, SOON).toEqual(always)
    })

    it.each(seeds)(
      'finds $name',
      async ({ expected, at, config, was = {} }) => {
        const topic = at === 'source' ? world.topic : world.names[at]
        const before = Object.fromEntries(Object.keys(config).map((name) => [name, was[name]]))
        await world.alter(topic, config)
        await expect.poll(world.ids, SOON).toEqual([expected, ...always].sort())
        await world.alter(topic, before)
        await expect.poll(world.ids, SOON).toEqual(always)
      },
      90_000,
    )

    it('finds the sources by the names of topics', async () => {
      const { sources } = await readKafka({ brokers })
      expect(sources).toContainEqual({ topic: world.topic, group: 'billing', committed: 1 })
    })

    it('asks the next broker when one does not answer', async () => {
      const { unreadable } = await readKafka({ ...world.options, brokers: [DEAD, ...brokers] })
      expect(unreadable).toEqual([])
    })

    it('reads the dead-letter topics that are named', async () => {
      const named = { topic: world.topic, group: 'others', deadLetterTopics: [world.names.retry] }
      const { topics = [], sources } = await readKafka({ brokers, sources: [named] })
      expect(topics.map(({ name }) => name)).toContain(world.names.retry)
      expect(sources).toEqual([{ ...named, committed: 0 }])
    })

    it('reports that nothing was checked when no source is found, and gives grade C', async () => {
      const facts = await readKafka({ brokers, sources: [] })
      expect(gradeOf(findIn(KAFKA_CHECKS, facts)).grade).toBe('C')
      expect(idsIn(KAFKA_CHECKS, facts)).toContain('kafka.nothing-looked-at')
    })

    it('finds dead letters that must be kept for longer than the topic does', async () => {
      const facts = await readKafka({ ...world.options, deadLetterRetentionMs: 2_592_000_000 })
      const [finding] = findIn(KAFKA_CHECKS, facts).filter(
        ({ check }) => check === 'kafka.dead-letter-retention',
      )
      expect(finding).toMatchObject({
        found: 'retention.ms=1209600000',
        fix: `kafka-configs --alter --entity-type topics --entity-name ${world.names.deadLetters} --add-config retention.ms=2592000000`,
      })
    })
  })

  describe('on topics that are not complete', () => {
    let world: KafkaWorld

    beforeAll(async () => {
      world = await kafkaWorld(brokers, replicas)
    }, 120_000)

    afterAll(() => world.end())

    it('finds a group that has committed nothing', async () => {
      await expect.poll(world.ids, SOON).toEqual(['kafka.no-committed-offset', ...always].sort())
    })

    it('finds a source that has got more partitions', async () => {
      await world.commit()
      await world.admin.createPartitions({
        topics: [{ name: world.topic, count: 3 }],
        validateOnly: false,
      })
      await expect.poll(world.ids, SOON).toEqual([...always, 'kafka.fewer-partitions'].sort())
    })

    it('finds a topic that is not there', async () => {
      await world.admin.deleteTopics({ topics: [world.names.deadLetters] })
      await expect
        .poll(world.ids, SOON)
        .toEqual([...always, 'kafka.fewer-partitions', 'kafka.topic-missing'].sort())
    })
  })

  it('returns a finding instead of an error when no server answers', async () => {
    const facts = await readKafka({ brokers: [DEAD], timeoutMs: 2_000 })
    expect(idsIn(KAFKA_CHECKS, facts)).toEqual(['kafka.unreadable'])
    expect(facts.unreadable).toMatchObject([{ what: 'cluster', hides: 'loss' }])
  })
}
