import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { ROOT, services, urlsOf } from '@redrive/dev-support'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { diagnose, exitCodeOf, KAFKA_CHECKS, readKafka } from '../src/index.ts'
import { kafkaSuite } from './kafka.suite.ts'
import { type KafkaWorld, kafkaWorld } from './kafka.world.ts'
import { idsIn } from './ids.ts'

const CLUSTER = 'kafka-cluster'
const run = promisify(execFile)
const broker = async (...args: readonly string[]) =>
  (await run('bash', [`${import.meta.dirname}/private.sh`, 'broker', ...args], { cwd: ROOT }))
    .stdout

describe('Kafka, three brokers', () => {
  kafkaSuite(CLUSTER, 3, [])

  describe('the cluster itself', () => {
    let world: KafkaWorld

    beforeAll(async () => {
      world = await kafkaWorld(await urlsOf(CLUSTER), 3)
      await world.commit()
    }, 240_000)

    afterAll(async () => {
      await services('up', CLUSTER)
      await world.end()
    }, 240_000)

    it('has grade A, and a command would exit with 0', async () => {
      await expect.poll(world.ids, { timeout: 30_000 }).toEqual([])
      const report = await diagnose({ kafka: world.options })
      expect(report.graded).toEqual({ grade: 'A', cappedBy: [] })
      expect(exitCodeOf(report)).toBe(0)
    })

    it('finds replicas that are behind, and partitions without a leader', async () => {
      const lonely = `${world.topic}.billing.retry.2h`
      const configs = [
        { name: 'retention.ms', value: '1209600000' },
        { name: 'message.timestamp.type', value: 'LogAppendTime' },
        { name: 'min.insync.replicas', value: '1' },
      ]
      const assignments = [0, 1].map((partition) => ({ partition, brokers: [3] }))
      await world.admin.createTopics({ topics: [{ topic: lonely, assignments }], configs })
      await expect.poll(world.ids, { timeout: 30_000 }).toEqual(['kafka.replication-factor'])
      await services('do', CLUSTER, 'kill_node', '3')
      await expect
        .poll(world.ids, { timeout: 60_000 })
        .toEqual([
          'kafka.few-brokers',
          'kafka.offline-partition',
          'kafka.replication-factor',
          'kafka.under-replicated',
        ])
      await services('do', CLUSTER, 'start_node', '3')
      await world.admin.deleteTopics({ topics: [lonely] })
      await expect.poll(world.ids, { timeout: 60_000 }).toEqual([])
    }, 300_000)
  })
})

describe('Kafka, a broker with other settings', () => {
  beforeAll(async () => {
    await broker('up')
  }, 240_000)

  afterAll(() => broker('down'), 120_000)

  it('finds topics that anyone makes, and offsets that are forgotten within the hour', async () => {
    const facts = await readKafka({ brokers: [(await broker('url')).trim()] })
    expect(idsIn(KAFKA_CHECKS, facts)).toEqual([
      'kafka.auto-create-topics',
      'kafka.few-brokers',
      'kafka.nothing-looked-at',
      'kafka.offsets-retention',
      'kafka.transaction-log-min-isr',
      'kafka.transaction-log-replication',
    ])
  })
})
