import { POLICY } from '../../harness/consumer-options.ts'
import { lasting } from '../../harness/wait.ts'
import type { KafkaScenario } from '../world.ts'
import { onCluster, PATIENT, underLoad } from './load.ts'

const RATE = 500
/** Members that stay; one more joins and leaves. */
const CONSUMERS = 2

export const rebalanceStorm: KafkaScenario = onCluster({
  name: 'rebalance-storm',
  story: 'consumers with slow handlers join and leave the group again and again',
  messages: { quick: 4_000, full: 40_000 },
  async play(world) {
    const isFull = world.scale === 'full'
    const rate = isFull ? RATE : RATE / 2
    const everyMs = isFull ? 5_000 : 2_000
    const fleet = {
      ...PATIENT,
      workMs: 200,
      policy: { ...POLICY, concurrency: 50, adaptiveConcurrency: 'off' },
    } as const
    const load = { consumers: CONSUMERS, ratePerSecond: rate, fleet }
    await underLoad(world, load, async (members) => {
      const end = world.fault('members join and leave')
      while (world.isSending()) {
        members.start()
        await lasting(everyMs)
        // The oldest member leaves, so that all partitions move.
        const [leaving] = members.members().filter(({ isReady }) => isReady)
        if (members.members().length > CONSUMERS) await leaving?.stop()
        await lasting(everyMs)
      }
      end()
    })
  },
  summarize({ entries }) {
    const rounds = entries.flatMap((one) => (one.what === 'assigned' ? [one.generation] : []))
    return `${Math.max(0, ...rounds)} rebalances`
  },
})
