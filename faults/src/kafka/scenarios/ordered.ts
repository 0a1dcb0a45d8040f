import { checkKeys, keyIn } from '../../evidence/check-keys.ts'
import { ready } from '../../harness/fleet.ts'
import { LANE_POLICY, planWithKeys } from '../../harness/lane-order.ts'
import { lasting } from '../../harness/wait.ts'
import { type KafkaScenario, SESSION_MS } from '../world.ts'
import { createSource, onCluster } from './load.ts'

const KEYS = 1_000
const RATE = 500
const CONSUMERS = 3

export const ordered: KafkaScenario = onCluster({
  name: 'ordered',
  story: `records of ${KEYS} keys (fewer with --quick), some of which fail, are handled in the order of their key through kills and rebalances`,
  messages: { quick: 4_000, full: 40_000 },
  async play(world) {
    const isFull = world.scale === 'full'
    const rate = isFull ? RATE : RATE / 2
    const keys = isFull ? KEYS : KEYS / 5
    await createSource(world)
    const fleet = world.fleet({
      order: 'lane',
      // A message still running at the hand-over of its partition would run twice. A short delay
      // must not cause that.
      drainMs: 10_000,
      policy: LANE_POLICY,
    })
    for (let count = 0; count < CONSUMERS; count++) fleet.start()
    await ready(fleet, CONSUMERS)
    fleet.supervise()
    const produced = world.send(world.run, planWithKeys(world, keys), rate)
    const end = world.fault('members die, join and leave')
    for (let time = 0; world.isSending(); time++) {
      await lasting(SESSION_MS * (0.5 + Math.random()))
      const members = fleet.members().filter(({ isReady }) => isReady)
      if (members.length < 2) continue
      const victim = members[Math.floor(Math.random() * members.length)]
      // It is replaced in both cases.
      if (time % 2 === 0) victim?.signal('SIGKILL')
      else await victim?.stop()
    }
    end()
    await produced
    world.heal()
  },
  check: ({ entries }) => checkKeys(entries, keyIn),
})
