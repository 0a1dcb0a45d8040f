import type { Evidence, Violation } from '../evidence/evidence.ts'
import { POLICY } from './consumer-options.ts'
import { underLoad } from './load.ts'
import type { LoadScenario } from './load-scenario.ts'
import { lasting } from './wait.ts'
import type { World } from './world.ts'

const RATE = 150
/** Twice the lease: by then others have handled everything that the process held. */
const STOPPED_MS = 10_000

/** A process is stopped past its lease. A transport adds the server. */
export const STOPPED: Omit<LoadScenario<World>, 'service'> = {
  name: 'stopped',
  story:
    'a process is stopped past its lease, others get its messages a second time, then it continues with old state',
  messages: { quick: 1_500, full: 9_000 },
  async play(world) {
    const times = world.scale === 'full' ? 4 : 1
    // The handler is slow enough that many messages are in flight when the process stops.
    const fleet = { workMs: 100, policy: { ...POLICY, adaptiveConcurrency: 'off' } } as const
    await underLoad(world, { consumers: 2, ratePerSecond: RATE, fleet }, async (members) => {
      for (let time = 0; time < times; time++) {
        await lasting(1_000)
        const member = members.members()[time % 2]
        const end = world.fault('a process is stopped', member?.inFlight)
        member?.signal('SIGSTOP')
        await lasting(STOPPED_MS)
        member?.signal('SIGCONT')
        end()
      }
    })
  },
  check: checkLost,
}

/** Checks that the stopped process noticed that it had lost its messages. */
function checkLost({ entries }: Evidence): readonly Violation[] {
  return entries.some(
    (entry) =>
      entry.what === 'event' && /lost/.test(entry.type) && entry.type !== 'connection_lost',
  )
    ? []
    : [{ rule: 'scenario', text: 'no delivery was lost' }]
}
