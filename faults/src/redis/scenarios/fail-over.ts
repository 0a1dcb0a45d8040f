import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { underLoad } from '../../harness/load.ts'
import { services } from '../../harness/services.ts'
import { lasting } from '../../harness/wait.ts'
import type { RedisScenario, RedisWorld } from '../world.ts'

const SERVICE = 'redis-pair'
const RATE = 200
/** The replica is a second behind when it becomes the primary. */
const BEHIND_MS = 1_000

export const failOver: RedisScenario = {
  name: 'fail-over',
  story:
    'the primary is killed while its replica is a second behind, and the replica takes over; producers wait for the replica',
  service: SERVICE,
  messages: { quick: 1_500, full: 3_000 },
  async play(world) {
    const { broker, urls } = world
    broker.needsReplica = true
    await underLoad(world, { consumers: 2, ratePerSecond: RATE }, async () => {
      await lasting(2_000)
      await services('do', SERVICE, 'cut_replica')
      // The results of this time are lost: their messages are handled again.
      const end = world.fault('the replica is behind', (2 * RATE * BEHIND_MS) / 1_000)
      await lasting(BEHIND_MS)
      await services('do', SERVICE, 'kill_primary')
      broker.proxy.aimAt(Number(new URL(urls[1] ?? '').port))
      // The new primary has no replica.
      broker.needsReplica = false
      end()
    })
  },
  check: countLost,
}

/**
 * Counts messages with a response of the old primary that the replica did not have. Replication is
 * asynchronous, so they are lost. Their producer got 0 as the result of `WAIT`.
 */
function countLost({ entries, effects, found }: Evidence, world: RedisWorld): readonly Violation[] {
  const known = new Set([...effects.keys(), ...found.map(({ id }) => id)])
  for (const entry of entries) if (entry.what === 'acknowledged') known.add(entry.id)
  const lost = [...world.broker.responded].filter((id) => !known.has(id))
  world.say(`${lost.length} messages had a response of the old primary only, and are lost`)
  return lost.length > 0
    ? []
    : [{ rule: 'scenario', text: 'the replica was not behind: no message was lost' }]
}
