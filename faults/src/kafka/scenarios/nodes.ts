import { lasting } from '../../harness/wait.ts'
import { controller, killNode, type NodeNumber, startNode } from '../cluster.ts'
import type { KafkaScenario, KafkaWorld } from '../world.ts'
import { onCluster, underLoad } from './load.ts'

const CONSUMERS = 3
/** Messages per second. Three brokers, three consumers and the database share two cores. */
const RATE = 600
/** 8 s: the cluster takes 3 s to notice the death of the broker that coordinates the group. */
const SESSION_MS = 8_000

export const brokerRestart: KafkaScenario = onCluster({
  name: 'broker-restart',
  story: 'brokers are killed under load and started again, one after the other',
  messages: { smoke: 800, quick: 3_000, full: 40_000 },
  play: (world) => killAndStart(world, 3, async (time) => ((time % 3) + 1) as NodeNumber),
})

export const controllerKill: KafkaScenario = onCluster({
  name: 'controller-kill',
  story: 'the active controller is killed under load and started again',
  messages: { quick: 3_000, full: 20_000 },
  play: (world) => killAndStart(world, 2, controller),
})

async function killAndStart(
  world: KafkaWorld,
  times: number,
  choose: (time: number) => Promise<NodeNumber>,
): Promise<void> {
  const rate = world.scale === 'full' ? RATE : RATE / 3
  const most = world.scale === 'full' ? times : 1
  const fleet = { sessionMs: SESSION_MS }
  const { service } = world
  const load = { consumers: CONSUMERS, ratePerSecond: rate, fleet }
  await underLoad(world, load, async () => {
    for (let time = 0; time < most; time++) {
      await lasting(2_000)
      const node = await choose(time)
      const end = world.fault(`node ${node} is dead`)
      world.atEnd(() => startNode(service, node))
      await killNode(service, node)
      // Longer than the cluster waits for a broker. A single broker has no others that wait.
      if (service === 'kafka-cluster') await lasting(5_000)
      await startNode(service, node)
      end()
    }
  })
}
