import { exerciseTransport } from '@redrive/testing'
import { afterAll, describe, it } from 'vitest'
import { CAPABILITIES, LANE_CAPABILITIES } from '../src/index.ts'
import { freshDatabase, poolOn, services } from './services.ts'
import { postgresWorld } from './world.ts'

/** The whole contract on a server, in both orders. The server crashes and recovers in it. */
export async function contractOn(service: string, name: string): Promise<void> {
  const pool = poolOn(await freshDatabase(service, 'redrive_contract'), 100)
  afterAll(() => pool.end())
  for (const order of ['none', 'lane'] as const) {
    exerciseTransport({
      runner: { describe, it },
      name: `${name}, order '${order}'`,
      capabilities: order === 'lane' ? LANE_CAPABILITIES : CAPABILITIES,
      open: () => postgresWorld(pool, { order }),
      restartBroker: async () => {
        await services('do', service, 'crash')
        await services('up', service)
      },
      deadline: '60s',
    })
  }
}
