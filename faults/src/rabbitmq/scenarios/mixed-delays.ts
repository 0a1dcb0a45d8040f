import { POLICY } from '../../consumer-options.ts'
import { ready } from '../../fleet.ts'
import { checkPunctual, retryLateness, tellPunctual } from '../../punctual.ts'
import { declareSource } from '../topology.ts'
import type { RabbitScenario } from '../world.ts'

const SOON_MS = 1_000
/** One second late at most, for all but one in a hundred. */
const LATE_MS = 1_000
/** While Erlang corrects its clock, a second of the broker is up to a hundredth shorter than ours. */
const CLOCKS_MS = SOON_MS / 100

export const mixedDelays: RabbitScenario = {
  name: 'mixed-delays',
  story: 'retries in a second among retries in ten minutes; nobody waits behind anybody',
  service: 'rabbitmq',
  messages: { quick: 2_000, full: 2_000 },
  async play(world) {
    await declareSource(world.broker, world.run)
    const fleet = world.fleet({
      policy: {
        ...POLICY,
        // Every message fails once here: nobody may conclude anything from that.
        limit: 'off',
        poison: 'off',
        retry: {
          inlineBelow: 0,
          classes: {
            transient: { backoff: { kind: 'fixed', delay: SOON_MS, jitter: 'none' } },
            unknown: { backoff: { kind: 'fixed', delay: '10m', jitter: 'none' } },
          },
        },
      },
    })
    fleet.start()
    fleet.start()
    await ready(fleet, 2)
    await world.produce({ ratePerSecond: 400, mix: { soon: 50, later: 50 } })
    world.heal()
  },
  tell: (evidence) => tellPunctual('retries', retryLateness(evidence, SOON_MS)),
  check: (evidence) => checkPunctual('retry', retryLateness(evidence, SOON_MS), LATE_MS, CLOCKS_MS),
}
