import { underLoad } from '../../harness/load.ts'
import { services, urlsOf } from '../../harness/services.ts'
import { lasting } from '../../harness/wait.ts'
import type { PostgresScenario } from '../world.ts'

const CONSUMERS = 3
const RATE = 300

export const primaryCrash: PostgresScenario = {
  name: 'primary-crash',
  story: 'the server loses power under load and is started again; producers and consumers continue',
  service: 'postgres-restarts',
  messages: { smoke: 700, quick: 2_000, full: 12_000 },
  async play(world) {
    world.atEnd(() => services('up', 'postgres-restarts'))
    const times = world.scale === 'full' ? 4 : 1
    await underLoad(world, { consumers: CONSUMERS, ratePerSecond: RATE }, async () => {
      for (let time = 0; time < times; time++) {
        await lasting(2_000)
        const end = world.fault('the server is down')
        await services('do', 'postgres-restarts', 'crash')
        await lasting(1_000)
        await services('up', 'postgres-restarts')
        end()
      }
    })
  },
}

export const failOver: PostgresScenario = {
  name: 'fail-over',
  story: 'the primary is gone forever and its synchronous replica takes over',
  service: 'postgres-pair',
  messages: { quick: 2_000, full: 10_000 },
  async play(world) {
    const [, replicaUrl = ''] = await urlsOf('postgres-pair')
    await underLoad(world, { consumers: CONSUMERS, ratePerSecond: RATE }, async () => {
      await lasting(2_000)
      const end = world.fault('the primary is gone')
      await services('do', 'postgres-pair', 'crash_primary')
      await services('do', 'postgres-pair', 'promote')
      world.wire.aimAt(Number(new URL(replicaUrl).port))
      end()
    })
  },
}
