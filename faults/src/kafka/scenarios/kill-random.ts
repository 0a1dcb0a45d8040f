import { lasting } from '../../harness/wait.ts'
import { type KafkaScenario, SESSION_MS } from '../world.ts'
import { onCluster, underLoad } from './load.ts'

const CONSUMERS = 3
const RATE = 1_000
/** Time between two kills: from one during the rebalance of the last kill to one long after it. */
const SHORTEST_MS = SESSION_MS / 3
const LONGEST_MS = 3 * SESSION_MS

export const killRandom: KafkaScenario = onCluster({
  name: 'kill-random',
  story: 'consumers are killed at random under load; their in-flight messages are delivered again',
  messages: { quick: 4_000, full: 110_000 },
  async play(world) {
    const rate = world.scale === 'full' ? RATE : RATE / 3
    const load = { consumers: CONSUMERS, ratePerSecond: rate }
    await underLoad(world, load, async (fleet) => {
      fleet.supervise()
      const end = world.fault('random kills')
      while (world.isSending()) {
        await lasting(SHORTEST_MS + Math.random() * (LONGEST_MS - SHORTEST_MS))
        const ready = fleet.members().filter(({ isReady }) => isReady)
        // On a busy machine a process takes seconds to start. Without this check no process would
        // be left to kill.
        if (ready.length < 2) continue
        ready[Math.floor(Math.random() * ready.length)]?.signal('SIGKILL')
      }
      end()
    })
  },
})
