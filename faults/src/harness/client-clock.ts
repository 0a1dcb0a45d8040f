import { setTimeout as after } from 'node:timers/promises'
import type { Evidence, Violation } from '../evidence/evidence.ts'
import { checkPunctual, type Lateness, retryLateness, tellPunctual } from '../evidence/lateness.ts'
import {
  type ConsumerOptions,
  type JsonPolicy,
  POLICY,
  type WrongClock,
} from './consumer-options.ts'
import { type FleetOptions, ready } from './fleet.ts'
import type { World } from './world.ts'

const SKEW_MS = 120_000
const NEVER = { jumpMs: 0, everyMs: SKEW_MS }
const CLOCKS: readonly WrongClock[] = [
  { aheadMs: SKEW_MS, ...NEVER },
  { aheadMs: 0, ...NEVER },
  { aheadMs: -SKEW_MS, ...NEVER },
]

/** Longer than a restart of all consumers, and no single step of any broker. */
const RETRY_MS = 18_000
/** At most 1.2 times the delay and 2 s. */
const LATE_MS = RETRY_MS * 0.2 + 2_000
/** While a broker corrects its clock, its second is up to 1 % shorter than ours. */
const CLOCKS_MS = RETRY_MS / 100
const RATE = 100

/** Every message fails once here, so the guards are off. */
const RETRY_ONCE: JsonPolicy = {
  ...POLICY,
  adaptiveConcurrency: 'off',
  poison: 'off',
  retry: { ...POLICY.retry, backoff: { kind: 'fixed', delay: RETRY_MS, jitter: 'none' } },
}

/** Stalls of the machine are much shorter than the permitted lateness, so they excuse nothing. */
const latenessIn = (evidence: Evidence): Lateness =>
  retryLateness(evidence, RETRY_MS).map(({ ms }) => ({ ms, isDisturbed: false }))

/** A scenario for brokers whose clocks differ from those of all consumers. */
export const CLIENT_CLOCK = {
  name: 'client-clock',
  story:
    'clocks of consumers are two minutes ahead or behind, and all consumers are replaced while retries wait',
  messages: { quick: 500, full: 5_000 },
  summarize: (evidence: Evidence): string => tellPunctual('retries', latenessIn(evidence)),
  check: (evidence: Evidence): readonly Violation[] =>
    checkPunctual('retry', latenessIn(evidence), LATE_MS, { clocksMs: CLOCKS_MS, percent: 100 }),
} as const

/**
 * Sends messages that fail once, and replaces all consumers. In between, no consumer runs for a while. A retry that is
 * due then is late, whatever the clocks are.
 */
export async function playWithWrongClocks<Options extends ConsumerOptions>(
  world: World<Options>,
  { downMs, ratePerSecond = RATE }: { readonly downMs: number; readonly ratePerSecond?: number },
): Promise<void> {
  const startAll = async () => {
    const fleet = world.fleet({ policy: RETRY_ONCE } as Partial<FleetOptions<Options>>)
    for (const clock of CLOCKS) fleet.start({ clock } as Partial<FleetOptions<Options>>)
    await ready(fleet, CLOCKS.length)
    return fleet
  }
  const first = await startAll()
  const end = world.fault('wrong clocks')
  await world.produce({ ratePerSecond, mix: { soon: 100 } })
  await first.stop()
  await after(downMs)
  await startAll()
  end()
  world.heal()
}
