import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { underLoad } from '../../harness/load.ts'
import { lasting } from '../../harness/wait.ts'
import type { SqsScenario } from '../world.ts'

const RATE = 150
const EVERY = 5

export const deliveredTwice: SqsScenario = {
  name: 'delivered-twice',
  story:
    'every fifth message is delivered to two consumers at the same time; each takes effect once',
  service: 'elasticmq',
  messages: { quick: 1_000, full: 6_000 },
  async play(world) {
    const fleet = { workMs: 50, twiceEvery: EVERY }
    // A message and each of its retries can be delivered twice.
    const end = world.fault('messages are delivered twice', world.messages)
    await underLoad(world, { consumers: 2, ratePerSecond: RATE, fleet }, () => lasting(1_000))
    end()
    world.heal()
  },
  check: checkTwice,
}

/** Checks that a message ran twice in the same attempt; otherwise the scenario proves nothing. */
function checkTwice({ entries }: Evidence): readonly Violation[] {
  const runs = entries.flatMap((entry) =>
    entry.what === 'handler_started' ? [`${entry.id} ${entry.attempt}`] : [],
  )
  return new Set(runs).size < runs.length
    ? []
    : [{ rule: 'scenario', text: 'no message was delivered twice' }]
}
