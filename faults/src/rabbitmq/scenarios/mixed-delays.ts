import { POLICY } from '../../harness/consumer-options.ts'
import { ready } from '../../harness/fleet.ts'
import { checkPunctual, retryLateness, tellPunctual } from '../../evidence/lateness.ts'
import { declareSource } from '../topology.ts'
import type { RabbitScenario } from '../world.ts'

const SOON_MS = 1_000
/** At most one second late, for 99 in a hundred. */
const LATE_MS = 1_000
/** While Erlang corrects its clock, the broker's second is up to 1 % shorter than ours. */
const CLOCKS_MS = SOON_MS / 100

export const mixedDelays: RabbitScenario = {
  name: 'mixed-delays',
  story: 'retries in a second among retries in ten minutes; no retry waits behind another one',
  service: 'rabbitmq',
  messages: { quick: 2_000, full: 2_000 },
  async play(world) {
    await declareSource(world.broker, world.run)
    const fleet = world.fleet({
      policy: {
        ...POLICY,
        // Every message fails once here, so the guards are off.
        adaptiveConcurrency: 'off',
        poison: 'off',
        retry: {
          maxInlineDelay: 0,
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
  summarize: (evidence) => tellPunctual('retries', retryLateness(evidence, SOON_MS)),
  check: (evidence) =>
    checkPunctual('retry', retryLateness(evidence, SOON_MS), LATE_MS, { clocksMs: CLOCKS_MS }),
}
