import { underLoad } from '../../harness/load.ts'
import { services } from '../../harness/services.ts'
import { lasting } from '../../harness/wait.ts'
import type { SqsScenario } from '../world.ts'

/** 30 per second: the server stores each change in a file. */
const RATE = 30

export const serverRestart: SqsScenario = {
  name: 'server-restart',
  story:
    'the server is killed under load, and later stopped; it keeps messages, and ends all leases',
  service: 'elasticmq-restarts',
  messages: { smoke: 600, quick: 1_000, full: 6_000 },
  async play(world) {
    world.atEnd(() => services('up', 'elasticmq-restarts'))
    const times = world.scale === 'full' ? 6 : 2
    await underLoad(world, { consumers: 2, ratePerSecond: RATE }, async (fleet) => {
      for (let time = 0; time < times; time++) {
        await lasting(1_000)
        const isKilled = time % 2 === 0
        const inFlight = fleet.members().reduce((sum, one) => sum + one.inFlight, 0)
        const what = isKilled ? 'the server is killed' : 'the server restarts'
        // Amazon keeps leases. This server delivers all messages in flight again.
        const end = world.fault(what, inFlight)
        await (isKilled
          ? services('do', 'elasticmq-restarts', 'kill')
          : services('down', 'elasticmq-restarts'))
        await services('up', 'elasticmq-restarts')
        end()
      }
    })
  },
}
