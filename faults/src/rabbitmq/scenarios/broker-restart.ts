import { services } from '../../harness/services.ts'
import { lasting } from '../../harness/wait.ts'
import { declareAll } from '../topology.ts'
import type { RabbitScenario } from '../world.ts'
import { underLoad } from './load.ts'

const CONSUMERS = 2
const RATE = 350

export const brokerRestart: RabbitScenario = {
  name: 'broker-restart',
  story: 'the only node is killed under load and started again, producers and consumers reconnect',
  service: 'rabbitmq-restarts',
  messages: { smoke: 800, quick: 2_000, full: 12_000 },
  async play(world) {
    world.atEnd(() => services('up', 'rabbitmq-restarts'))
    const times = world.scale === 'full' ? 3 : 1
    // RabbitMQ 3.10 may never elect a leader for a quorum queue that was declared just before its only
    // node was killed. So all queues exist before the consumers start, which takes seconds.
    await declareAll(world.broker, world.run)
    await underLoad(world, { consumers: CONSUMERS, ratePerSecond: RATE }, async () => {
      for (let time = 0; time < times; time++) {
        await lasting(1_000)
        const end = world.fault('the broker is down')
        await services('do', 'rabbitmq-restarts', 'crash')
        await services('up', 'rabbitmq-restarts')
        end()
      }
    })
  },
}
