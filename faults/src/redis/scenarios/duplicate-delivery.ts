import { underLoad } from '../../harness/load.ts'
import type { RedisScenario } from '../world.ts'

export const duplicateDelivery: RedisScenario = {
  name: 'duplicate-delivery',
  story: 'producers add each message twice with one id, and each takes effect once',
  service: 'redis-restarts',
  messages: { smoke: 300, quick: 500, full: 5_000 },
  async play(world) {
    world.broker.copies = 2
    const end = world.fault('messages are added twice', world.messages)
    const load = { consumers: 2, ratePerSecond: 300, mix: { flaky: 12 } }
    await underLoad(world, load, async () => end())
  },
}
