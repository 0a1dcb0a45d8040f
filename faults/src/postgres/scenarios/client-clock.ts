import type { Evidence } from '../../evidence/evidence.ts'
import { POLICY, type WrongClock } from '../../harness/consumer-options.ts'
import { ready } from '../../harness/fleet.ts'
import { plan } from '../../evidence/message.ts'
import {
  checkPunctual,
  delayLateness,
  retryLateness,
  tellPunctual,
} from '../../evidence/lateness.ts'
import type { PlannedEvent } from '../producer.ts'
import { LONG_LEASE_MS, type PostgresScenario } from '../world.ts'

const HOUR_MS = 3_600_000
const CLOCKS: readonly WrongClock[] = [
  { aheadMs: HOUR_MS, jumpMs: -2 * HOUR_MS, everyMs: 700 },
  { aheadMs: -HOUR_MS, jumpMs: 2 * HOUR_MS, everyMs: 1_100 },
  { aheadMs: HOUR_MS, jumpMs: 0, everyMs: HOUR_MS },
]

/** Messages per second of each of the three kinds: no message waits for anything but a clock. */
const RATE = 60
const RETRY_MS = 1_000
const DELAY_MS = 1_500
/** Long enough that a process can be stalled for seconds, and still renewed while each handler runs. */
const RENEWED_MS = 10_000
/** Concurrent messages in each process that take twice as long. */
const LONG_AT_ONCE = 20
/** Two rounds of them; more would only add waiting time. */
const MOST_LONG = 2 * CLOCKS.length * LONG_AT_ONCE
/** At most one second late, for 99 in a hundred. */
const LATE_MS = 1_000

export const clientClock: PostgresScenario = {
  name: 'client-clock',
  story:
    'the clocks of consumers are an hour ahead or behind, and jump; no message is early, no lease is lost',
  service: 'postgres',
  messages: { quick: 600, full: 3_000 },
  async play(world) {
    const { run } = world
    const long = `${run}-long`
    const backoff = { kind: 'fixed', delay: RETRY_MS, jitter: 'none' } as const
    // Every message fails once here, so the guards are off.
    const policy = {
      ...POLICY,
      adaptiveConcurrency: 'off',
      poison: 'off',
      retry: { ...POLICY.retry, backoff },
    } as const
    const fleet = world.fleet({ policy, lease: LONG_LEASE_MS })
    for (const clock of CLOCKS) fleet.start({ clock })
    // The handler takes longer than the lease. The lease is renewed, and no other consumer takes
    // over.
    const slow = {
      queues: [long],
      lease: RENEWED_MS,
      workMs: 2 * RENEWED_MS,
      policy: { ...POLICY, concurrency: LONG_AT_ONCE, adaptiveConcurrency: 'off' },
    } as const
    for (const clock of CLOCKS) fleet.start({ ...slow, clock })
    await ready(fleet, 2 * CLOCKS.length)
    const longs = Math.min(MOST_LONG, Math.ceil(world.messages / 10))
    const end = world.fault('wrong clocks')
    await Promise.all([
      world.send(run, plan(`${run}/soon`, world.messages, { soon: 100 }), RATE),
      world.send(run, plan(`${run}/delayed`, world.messages, {}).map(delayed), RATE),
      world.send(long, plan(long, longs, {}), RATE),
    ])
    end()
    world.heal()
  },
  summarize: (evidence) =>
    `${tellPunctual('retries', retryLateness(evidence, RETRY_MS))}, ${tellPunctual('delayed', delayedIn(evidence))}`,
  check: (evidence) => [
    ...checkPunctual('retry', retryLateness(evidence, RETRY_MS), LATE_MS),
    ...checkPunctual('delayed message', delayedIn(evidence), LATE_MS),
  ],
}

const delayed = (event: PlannedEvent): PlannedEvent => ({ ...event, delayMs: DELAY_MS })

const delayedIn = (evidence: Evidence) =>
  delayLateness(evidence, (id) => id.includes('/delayed/'), DELAY_MS)
