import { type ExerciseOptions, exerciseTransport } from '@redrive/testing'
import { afterAll, describe, it } from 'vitest'
import { CAPABILITIES, LANE_CAPABILITIES } from '../src/capabilities.ts'
import { DEFAULT_SCHEMA } from '../src/schema.ts'
import { freshDatabase, poolOn, services } from './services.ts'
import { postgresWorld } from './world.ts'

interface ContractOptions extends Pick<ExerciseOptions, 'only' | 'skip'> {
  readonly service: string
  readonly name: string
  /** Each test file has a separate one, because they run concurrently. */
  readonly database: string
  /** Default: the default of all calls. */
  readonly schema?: string
}

/** The contract on a server, in both orders. Scenarios that disturb other tests on it are in separate files. */
export async function contractOn({
  service,
  name,
  database,
  schema = DEFAULT_SCHEMA,
  ...scenarios
}: ContractOptions): Promise<void> {
  const pool = poolOn(await freshDatabase(service, database, schema), 100)
  afterAll(() => pool.end())
  for (const order of ['none', 'lane'] as const) {
    exerciseTransport({
      ...scenarios,
      runner: { describe, it },
      isConcurrent: true,
      name: `${name}, order '${order}'`,
      capabilities: order === 'lane' ? LANE_CAPABILITIES : CAPABILITIES,
      open: () => postgresWorld(pool, { order, schema }),
      restartBroker: async () => {
        await services('do', service, 'crash')
        await services('up', service)
      },
      deadline: '60s',
    })
  }
}
