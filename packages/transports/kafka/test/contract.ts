import { type ExerciseOptions, exerciseTransport } from '@redrive/testing'
import { describe, it } from 'vitest'
import { CAPABILITIES, capabilitiesOf, type KafkaOptions } from '../src/index.ts'
import { services, urlsOf } from '@redrive/dev-support'
import { kafkaWorld } from './world.ts'

/** In lane order. */
const REPLAY_IN_GROUP = {
  scenario: 'a replay reaches only the group that gave the message up',
  reason: 'a replay keeps its place only in the original topic, which all groups read',
}

/** The three ways in which the transport works; each has the whole contract. */
export const WORLDS = {
  plain: { name: 'kafka, one broker', capabilities: CAPABILITIES, options: {}, skip: [] },
  lanes: {
    name: 'kafka, one broker, in lane order',
    capabilities: capabilitiesOf({ order: 'lane', isTransactional: false }),
    options: { order: 'lane' },
    skip: [REPLAY_IN_GROUP],
  },
  transactions: {
    name: 'kafka, one broker, with transactions',
    capabilities: capabilitiesOf({ order: 'none', isTransactional: true }),
    options: { handOff: 'transactional' },
    skip: [],
  },
} as const satisfies Record<
  string,
  Pick<ExerciseOptions, 'name' | 'capabilities' | 'skip'> & {
    readonly options: Partial<KafkaOptions>
  }
>

/** The contract on one broker. Scenarios that disturb others on the broker are in files of their own. */
export async function contractOf(
  { name, capabilities, options, skip }: (typeof WORLDS)[keyof typeof WORLDS],
  scenarios: Pick<ExerciseOptions, 'only' | 'skip'>,
): Promise<void> {
  const brokers = await urlsOf('kafka')
  exerciseTransport({
    ...scenarios,
    skip: [...skip, ...(scenarios.skip ?? [])],
    runner: { describe, it },
    isConcurrent: true,
    name,
    capabilities,
    open: () => kafkaWorld(brokers, options),
    restartBroker: async () => {
      await services('do', 'kafka', 'crash')
    },
    deadline: '60s',
  })
}
