import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { underLoad } from '../../harness/load.ts'
import { lasting } from '../../harness/wait.ts'
import type { RedisScenario } from '../world.ts'

const FULL_MS = 4_000

export const fullServer: RedisScenario = {
  name: 'full-server',
  story:
    'the server has no memory left and rejects messages and copies; hand-offs wait and succeed later',
  service: 'redis-restarts',
  messages: { smoke: 1_200, quick: 1_500, full: 8_000 },
  async play(world) {
    const limit = (bytes: number) => world.broker.client.config('SET', 'maxmemory', bytes)
    // Handlers that fail run when the server gets full: it rejects their copies.
    const load = { ratePerSecond: 200, mix: { flaky: 40, business: 10 }, fleet: { workMs: 300 } }
    await underLoad(world, { consumers: 2, ...load }, async () => {
      await lasting(1_000)
      const end = world.fault('the server is full')
      await limit(1)
      await lasting(FULL_MS)
      await limit(0)
      end()
    })
  },
  check: checkRefused,
}

/** Checks that copies and messages were rejected; otherwise the scenario proves nothing. */
function checkRefused({ entries }: Evidence): readonly Violation[] {
  const wereCopies = entries.some((entry) => entry.what === 'event' && entry.type === 'refused')
  const wereMessages = entries.some(({ what }) => what === 'refused')
  return [
    ...(wereCopies ? [] : [{ rule: 'scenario', text: 'no copy was rejected' } as const]),
    ...(wereMessages ? [] : [{ rule: 'scenario', text: 'no message was rejected' } as const]),
  ]
}
