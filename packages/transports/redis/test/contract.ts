import { services, urlOf } from '@redrive/dev-support'
import { type ExerciseOptions, exerciseTransport } from '@redrive/testing'
import { Redis } from 'ioredis'
import { afterAll, describe, it } from 'vitest'
import { CAPABILITIES } from '../src/capabilities.ts'
import { redisWorld } from './world.ts'

interface ContractOptions extends Pick<ExerciseOptions, 'only' | 'skip'> {
  readonly service: string
}

/** The contract on a server. Scenarios that disturb other tests on it are in separate files. */
export async function contractOn({ service, ...scenarios }: ContractOptions): Promise<void> {
  const client = new Redis(await urlOf(service), { maxRetriesPerRequest: null })
  // The transport reports why a connection was lost.
  client.on('error', () => undefined)
  afterAll(() => client.disconnect())
  exerciseTransport({
    ...scenarios,
    runner: { describe, it },
    isConcurrent: true,
    name: 'redis streams',
    capabilities: CAPABILITIES,
    open: () => redisWorld(client),
    restartBroker: async () => {
      await services('do', service, 'crash')
    },
    deadline: '60s',
  })
}
