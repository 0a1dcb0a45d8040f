import { randomBytes } from 'node:crypto'
import { kafka } from '@redrive/kafka'
import { Admin } from '@platformatic/kafka'
import { vi } from 'vitest'
import { KAFKA_CHECKS, type KafkaOptions, readKafka } from '../src/index.ts'
import { idsIn } from './ids.ts'

const GROUP = 'billing'
const TOPIC = 2 as const
const SET = 0 as const
const DELETE = 1 as const

/** A separate topic with the topics that the transport creates, and a group that has committed. */
export interface KafkaWorld {
  readonly admin: Admin
  readonly topic: string
  readonly names: {
    readonly retry: string
    readonly deadLetters: string
    readonly replayed: string
  }
  readonly options: KafkaOptions
  /** Returns the ids of the findings. */
  readonly ids: () => Promise<readonly string[]>
  /** Sets topic settings; undefined removes one. */
  readonly alter: (
    topic: string,
    config: Readonly<Record<string, string | undefined>>,
  ) => Promise<void>
  readonly commit: () => Promise<void>
  readonly end: () => Promise<void>
}

export async function kafkaWorld(
  brokers: readonly string[],
  replicas: number,
): Promise<KafkaWorld> {
  const topic = `doctor-${randomBytes(6).toString('hex')}`
  const admin = new Admin({
    clientId: 'doctor-test',
    bootstrapBrokers: [...brokers],
    requestTimeout: 30_000,
  })
  await admin.createTopics({ topics: [topic], partitions: 2, replicas })
  await vi.waitFor(async () => {
    const { topics } = await readKafka({ brokers, sources: [{ topic, group: GROUP }] })
    if (!topics?.some(({ name }) => name === topic)) throw new Error(`${topic} is not known yet`)
  }, 30_000)
  const transport = kafka({ brokers, topic, group: GROUP })
  await transport.open()
  await transport.close()
  const options = { brokers, sources: [{ topic, group: GROUP }] }
  const world: KafkaWorld = {
    admin,
    topic,
    names: {
      retry: `${topic}.${GROUP}.retry.1h`,
      deadLetters: `${topic}.${GROUP}.dlq`,
      replayed: `${topic}.${GROUP}.replayed`,
    },
    options,
    ids: async () => idsIn(KAFKA_CHECKS, await readKafka(options)),
    alter: (resourceName, config) =>
      admin.incrementalAlterConfigs({
        resources: [
          {
            resourceType: TOPIC,
            resourceName,
            configs: Object.entries(config).map(([name, value]) =>
              value === undefined
                ? { name, configOperation: DELETE }
                : { name, value, configOperation: SET },
            ),
          },
        ],
      }),
    commit: () =>
      admin.alterConsumerGroupOffsets({
        groupId: GROUP,
        topics: [{ name: topic, partitionOffsets: [{ partition: 0, offset: 0n }] }],
      }),
    end: async () => {
      const { topics = [] } = await readKafka(options)
      const ours = topics.map(({ name }) => name).filter((name) => name.startsWith(topic))
      await admin.deleteTopics({ topics: ours })
      await admin.close()
    },
  }
  return world
}
