import { underLoad } from '../../harness/load.ts'
import { services } from '../../harness/services.ts'
import { lasting, repeated } from '../../harness/wait.ts'
import type { NatsScenario, NatsWorld } from '../world.ts'

const CONSUMERS = 2
const RATE = 300

export const serverRestart: NatsScenario = {
  name: 'server-restart',
  story:
    'the only server is killed under load, and later stopped; consumers and producers connect again',
  service: 'nats-restarts',
  messages: { smoke: 1_000, quick: 2_000, full: 12_000 },
  async play(world) {
    world.atEnd(() => services('up', 'nats-restarts'))
    const times = world.scale === 'full' ? 6 : 2
    await underLoad(world, { consumers: CONSUMERS, ratePerSecond: RATE }, async () => {
      for (let time = 0; time < times; time++) {
        await lasting(1_000)
        const isKilled = time % 2 === 0
        const end = world.fault(isKilled ? 'the server is killed' : 'the server restarts')
        await (isKilled
          ? services('do', 'nats-restarts', 'kill')
          : services('down', 'nats-restarts'))
        await services('up', 'nats-restarts')
        end()
      }
    })
  },
}

export const nodeLoss: NatsScenario = {
  name: 'node-loss',
  story:
    'the server that leads the stream, of three servers, is killed under load, and comes back later',
  service: 'nats-cluster',
  messages: { quick: 2_000, full: 12_000 },
  async play(world) {
    world.atEnd(() => services('up', 'nats-cluster'))
    const times = world.scale === 'full' ? 4 : 1
    await underLoad(world, { consumers: CONSUMERS, ratePerSecond: RATE }, async () => {
      for (let time = 0; time < times; time++) {
        await lasting(1_000)
        const node = await leaderOf(world)
        const end = world.fault(`server ${node} is down`)
        await services('do', 'nats-cluster', 'kill_node', node)
        await lasting(3_000)
        await services('do', 'nats-cluster', 'start_node', node)
        end()
      }
    })
  },
}

/** Returns the number of the server that leads the stream of the producers. */
const leaderOf = ({ broker, run }: NatsWorld): Promise<string> =>
  repeated(
    async () => {
      const { cluster } = await broker.manager.streams.info(run)
      const [, node] = /^redrive-([123])$/.exec(cluster?.leader ?? '') ?? []
      if (node === undefined) throw new Error(`Stream "${run}" has no leader.`)
      return node
    },
    { withinMs: 30_000 },
  )
