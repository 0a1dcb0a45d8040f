import { type ExerciseOptions, exerciseTransport } from '@redrive/testing'
import { describe, it } from 'vitest'
import type { KafkaOptions } from '../src/index.ts'
import { CAPABILITIES, capabilitiesOf } from '../src/capabilities.ts'
import { services, urlsOf } from '@redrive/dev-support'
import { kafkaWorld } from './world.ts'

/** Scenarios skipped in lane order. */
const REPLAY_IN_GROUP = {
  scenario: 'a replay reaches only the group that gave up the message',
  reason: 'a replay keeps its place only in the original topic, which all groups read',
}

/** The three modes of the transport; each is tested with the whole contract. */
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

interface ContractOptions extends Pick<ExerciseOptions, 'only' | 'skip' | 'deadline'> {
  /** Another server for scenarios that disturb other tests. */
  readonly service?: 'kafka' | 'kafka-restarts'
}

/** The contract on one broker. Scenarios that disturb other tests on the broker are in separate files. */
export async function contractOf(
  { name, capabilities, options, skip }: (typeof WORLDS)[keyof typeof WORLDS],
  { service = 'kafka', deadline = '60s', ...scenarios }: ContractOptions,
): Promise<void> {
  const brokers = await urlsOf(service)
  exerciseTransport({
    ...scenarios,
    skip: [...skip, ...(scenarios.skip ?? [])],
    runner: { describe, it },
    isConcurrent: true,
    name,
    capabilities,
    open: () => kafkaWorld(brokers, options),
    restartBroker: async () => {
      await services('do', service, 'crash')
    },
    deadline,
  })
}
