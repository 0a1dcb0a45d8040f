import { lasting } from '../../wait.ts'
import { type KafkaScenario, SESSION_MS } from '../world.ts'
import { onCluster, underLoad } from './load.ts'

const CONSUMERS = 3
const RATE = 1_000
/** Between two kills: from one that comes into the rebalance of the last to one long after it. */
const SHORTEST_MS = SESSION_MS / 3
const LONGEST_MS = 3 * SESSION_MS

export const killRandom: KafkaScenario = onCluster({
  name: 'kill-random',
  story: 'consumers are killed at random under load; whatever they had in hand comes back',
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
        // On a busy machine a process takes seconds to start, and nobody would be left to kill.
        if (ready.length < 2) continue
        ready[Math.floor(Math.random() * ready.length)]?.signal('SIGKILL')
      }
      end()
    })
  },
})
