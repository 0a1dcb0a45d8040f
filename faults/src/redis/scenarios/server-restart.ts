import { underLoad } from '../../harness/load.ts'
import { services } from '../../harness/services.ts'
import { lasting } from '../../harness/wait.ts'
import type { RedisScenario } from '../world.ts'

const SERVICE = 'redis-restarts'

export const serverRestart: RedisScenario = {
  name: 'server-restart',
  story:
    'the server, with `appendfsync always`, is killed under load, and later stopped; clients connect again',
  service: SERVICE,
  messages: { smoke: 1_000, quick: 2_000, full: 12_000 },
  async play(world) {
    world.atEnd(() => services('up', SERVICE))
    const times = world.scale === 'full' ? 6 : 2
    await underLoad(world, { consumers: 2, ratePerSecond: 300 }, async () => {
      for (let time = 0; time < times; time++) {
        await lasting(1_000)
        const isKilled = time % 2 === 0
        const end = world.fault(isKilled ? 'the server is killed' : 'the server restarts')
        await (isKilled ? services('do', SERVICE, 'kill') : services('down', SERVICE))
        await services('up', SERVICE)
        end()
      }
    })
  },
}
