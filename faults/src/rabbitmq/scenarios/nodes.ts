import { lasting } from '../../harness/wait.ts'
import {
  killNode,
  leaderOf,
  type NodeNumber,
  partitionNode,
  reunite,
  startNode,
} from '../cluster.ts'
import type { Fleet } from '../../harness/fleet.ts'
import { declareAll } from '../topology.ts'
import type { RabbitScenario, RabbitWorld } from '../world.ts'
import { underLoad } from './load.ts'

const CONSUMERS = 3
/** Messages per second. Three nodes, three consumers and the database share two cores. */
const RATE = 350

/**
 * Returns the deliveries that the broker may repeat when a queue moves to another node, although no
 * connection broke.
 */
const inFlightOf = (fleet: Fleet) =>
  fleet.members().reduce((sum, { inFlight }) => sum + inFlight, 0)

/** All clients start with the first address, so they are connected to the first node. */
const CONNECTED: NodeNumber = 1

export const nodeRestart: RabbitScenario = {
  name: 'node-restart',
  story: 'the node that all clients are connected to is killed under load and started again',
  service: 'rabbitmq-cluster',
  messages: { quick: 2_000, full: 30_000 },
  play: (world) => killAndStart(world, async () => CONNECTED),
}

export const leaderKill: RabbitScenario = {
  name: 'leader-kill',
  story: 'the node that leads the source queue is killed under load and started again',
  service: 'rabbitmq-cluster',
  messages: { quick: 2_000, full: 30_000 },
  play: (world) => killAndStart(world, () => leaderOf(world.run)),
}

async function killAndStart(world: RabbitWorld, choose: () => Promise<NodeNumber>): Promise<void> {
  const { messages, scale } = world
  const times = scale === 'full' ? 3 : 1
  await underLoad(world, { consumers: CONSUMERS, ratePerSecond: RATE }, async (fleet) => {
    for (let time = 0; time < times; time++) {
      // Spread over the whole load, so that each fault hits other messages.
      await lasting(time === 0 ? 1_000 : (messages / RATE / times) * 600)
      const node = await choose()
      const end = world.fault(`node ${node} is dead`, 2 * inFlightOf(fleet))
      await killNode(node)
      await lasting(3_000)
      await startNode(node)
      end()
    }
  })
}

interface Cut {
  readonly who: 'connected' | 'leader'
  readonly seconds: number
}

const partition = ({ who, seconds }: Cut): RabbitScenario => ({
  name: `partition-${who}-${seconds}s`,
  story: `the node that ${who === 'leader' ? 'leads the source queue' : 'all clients are connected to'} is cut off from the others for ${seconds} s`,
  service: 'rabbitmq-cluster',
  messages: { quick: 1_500, full: 14_000 },
  isOnlyFull: seconds > 10,
  async play(world) {
    const load = {
      consumers: CONSUMERS,
      ratePerSecond: RATE,
      // RabbitMQ may lose the process that moves expired messages of a queue created during a
      // network partition.
      before: () => declareAll(world.broker, world.run),
    }
    await underLoad(world, load, async (fleet) => {
      const node = who === 'leader' ? await leaderOf(world.run) : CONNECTED
      const end = world.fault(`node ${node} is cut off`, 2 * inFlightOf(fleet))
      world.atEnd(reunite)
      await partitionNode(node)
      await lasting(seconds * 1_000)
      await reunite()
      end()
    })
  },
})

export const partitions: readonly RabbitScenario[] = [
  partition({ who: 'connected', seconds: 10 }),
  partition({ who: 'leader', seconds: 10 }),
  partition({ who: 'connected', seconds: 30 }),
  partition({ who: 'leader', seconds: 30 }),
]
