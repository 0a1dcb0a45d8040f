import type { Evidence, Violation } from '../../check.ts'
import { ready } from '../fleet.ts'
import { declareSource } from '../topology.ts'
import { POLICY, type RabbitScenario } from '../world.ts'

const SOON_MS = 1_000
/** One second late at most, for all but one in a hundred. */
const LATE_MS = 1_000

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
  tell: tellPunctual,
  check: checkPunctual,
}

/** How late each retry was, sorted: from the moment an attempt failed to the start of the next one. */
function latenessIn({ entries }: Evidence): readonly number[] {
  const failedAt = new Map<string, number>()
  const lateness: number[] = []
  for (const entry of entries) {
    if (entry.what === 'failed') failedAt.set(entry.id, entry.at)
    const since = entry.what === 'handler_started' ? failedAt.get(entry.id) : undefined
    if (since !== undefined) lateness.push(entry.at - since - SOON_MS)
  }
  return lateness.sort((a, b) => a - b)
}

const earliestOf = (lateness: readonly number[]) => lateness[0] ?? 0
const p99Of = (lateness: readonly number[]) => lateness[Math.floor(lateness.length * 0.99)] ?? 0

function tellPunctual(evidence: Evidence): string {
  const lateness = latenessIn(evidence)
  return `retries late by ${earliestOf(lateness)} ms at least and ${p99Of(lateness)} ms at p99`
}

function checkPunctual(evidence: Evidence): readonly Violation[] {
  const lateness = latenessIn(evidence)
  const earliest = earliestOf(lateness)
  const p99 = p99Of(lateness)
  return [
    ...(earliest < 0 ? [violation(`a retry ran ${-earliest} ms early`)] : []),
    ...(p99 > LATE_MS ? [violation(`one in a hundred ran more than ${p99} ms late`)] : []),
  ]
}

const violation = (text: string): Violation => ({ rule: 'scenario', text })
