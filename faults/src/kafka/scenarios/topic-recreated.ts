import { type Fleet, ready } from '../../harness/fleet.ts'
import { until } from '../../harness/wait.ts'
import { createTopics, deleteTopic } from '../broker.ts'
import type { KafkaConsumerOptions } from '../consumer-options.ts'
import { kafkaServer } from '../server.ts'
import type { KafkaScenario, KafkaWorld } from '../world.ts'
import { createSource } from './load.ts'

const RATE = 250
const CONSUMERS = 2
/** 60 s until all messages before the deletion are finished: the others would be lost with the topic. */
const FINISHED_MS = 60_000

/**
 * Commits start again with each topic, so the rules for commits do not apply here. The messages of each
 * topic must all be found.
 */
export const topicRecreated: KafkaScenario = {
  name: 'topic-recreated',
  service: 'kafka-cluster',
  smokeService: 'kafka-restarts',
  story: 'the topic is deleted and created again, while consumers run and while they are stopped',
  messages: { quick: 1_200, full: 12_000 },
  async play(world) {
    const messages = world.messages / 4
    const send = (part: string, count: number) =>
      world.produce({ ratePerSecond: RATE, messages: count, part: `/${part}` })
    await createSource(world)
    const fleet = world.fleet()
    await startAll(fleet)
    await send('first', messages)
    await finished(world)
    await recreate(world, 'while consumers run')
    await send('running', messages)
    await finished(world)
    await Promise.all(fleet.members().map((member) => member.stop()))
    await recreate(world, 'while consumers are stopped')
    // More than the last topic had: a broker that keeps its commits would skip records of this one.
    await send('stopped', 2 * messages)
    await startAll(fleet)
    world.heal()
  },
}

async function startAll(fleet: Fleet<KafkaConsumerOptions>): Promise<void> {
  for (let started = 0; started < CONSUMERS; started++) fleet.start()
  await ready(fleet, CONSUMERS)
}

const finished = (world: KafkaWorld) =>
  until('all messages are finished', async () => (await kafkaServer.look(world)).hasAll, {
    withinMs: FINISHED_MS,
  })

async function recreate(world: KafkaWorld, when: string): Promise<void> {
  const { broker, run, partitions } = world
  const end = world.fault(`the topic is deleted ${when}`)
  await deleteTopic(broker, run)
  await createTopics(broker, [run], partitions)
  end()
}
