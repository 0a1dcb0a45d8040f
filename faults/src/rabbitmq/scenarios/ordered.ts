import { checkKeys, keyIn } from '../../evidence/check-keys.ts'
import { ready } from '../../harness/fleet.ts'
import { LANE_POLICY, planWithKeys } from '../../harness/lane-order.ts'
import { lasting } from '../../harness/wait.ts'
import { declareOrdered } from '../topology.ts'
import type { RabbitScenario } from '../world.ts'

/** Few enough that the next message of a key often arrives while one waits for its retry. */
const KEYS = 40
const RATE = 250
const CONSUMERS = 3
/** Between two ends of a process: long enough that the next one handles some messages. */
const SHORTEST_MS = 500
const LONGEST_MS = 2_000

export const ordered: RabbitScenario = {
  name: 'ordered',
  story: `messages of ${KEYS} keys, some of which fail, are handled in the order of their key while the active consumer is killed or stopped`,
  service: 'rabbitmq',
  messages: { quick: 3_000, full: 30_000 },
  async play(world) {
    await declareOrdered(world.broker, world.run)
    const fleet = world.fleet({
      order: 'lane',
      policy: LANE_POLICY,
    })
    for (let count = 0; count < CONSUMERS; count++) fleet.start()
    await ready(fleet, CONSUMERS)
    fleet.supervise()
    let isSending = true
    const produced = world.send(world.run, planWithKeys(world, KEYS), RATE).finally(() => {
      isSending = false
    })
    const end = world.fault('consumers die and stop')
    for (let time = 0; isSending; time++) {
      await lasting(SHORTEST_MS + Math.random() * (LONGEST_MS - SHORTEST_MS))
      // The oldest is the active one.
      const [victim, ...others] = fleet.members().filter(({ isReady }) => isReady)
      if (others.length === 0) continue
      // It is replaced in both cases.
      if (time % 2 === 0) victim?.signal('SIGKILL')
      else await victim?.stop()
    }
    end()
    await produced
    world.heal()
  },
  check: ({ entries }) => checkKeys(entries, keyIn),
}
