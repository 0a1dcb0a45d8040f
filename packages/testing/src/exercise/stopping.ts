import assert from 'node:assert/strict'
import { isRedriveError, SETTLE } from '@redrive/core'
import { isUnfinished } from '@redrive/runtime/internal'
import { numbered, unreachable } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { ScenarioContext } from './scenario-context.ts'

async function closeWhileHandlerFinishes(context: ScenarioContext): Promise<void> {
  let finish: (() => void) | undefined
  const consumer = await context.consume(
    () =>
      new Promise<void>((resolve) => {
        finish = resolve
      }),
  )
  await context.world.send(numbered(1))
  await context.until('the handler runs', () => finish !== undefined)
  const stopping = consumer.stop({ drain: '10s' })
  finish?.()
  await context.within('the consumer stops', stopping)
  await context.places({ backlog: 0, deadLetters: 0 })
}

async function closeWhileHandlerHangs(context: ScenarioContext): Promise<void> {
  let signal: AbortSignal | undefined
  const id = await context.world.send(numbered(1))
  const consumer = await context.consume((_, context) => {
    signal = context.signal
    return new Promise(() => undefined)
  })
  await context.until('the handler runs', () => signal !== undefined)
  await context.within('the consumer stops', consumer.stop({ drain: 50 }))
  assert.ok(
    isRedriveError(signal?.reason, 'STOPPING'),
    'the signal of the handler fired with STOPPING',
  )
  await context.places({ backlog: 1, deadLetters: 0 })
  const next = await context.receiver()
  const delivery = await next.next()
  assert.equal(delivery.id, id)
  assert.equal(delivery.cycle.attempts, 0, 'an attempt that the consumer aborts does not count')
  await next.put(delivery, SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
}

async function closeWhilePaused(context: ScenarioContext): Promise<void> {
  const handled = new Set<string>()
  const handler = ({ id }: { readonly id: string }) => void handled.add(id)
  const paused = await context.consume(handler)
  paused.pause()
  await context.quiet()
  const ids = new Set<string>()
  for (let number = 0; number < 3; number++) ids.add(await context.world.send(numbered(number)))
  await context.within('the paused consumer stops', paused.stop({ drain: '1s' }))
  await context.places({ backlog: 3, deadLetters: 0 })
  assert.equal(handled.size, 0)
  await context.consume(handler)
  await context.places({ backlog: 0, deadLetters: 0 })
  assert.deepEqual(handled, ids)
}

async function closeWhileBlocked(context: ScenarioContext): Promise<void> {
  const id = await context.world.send(numbered(1))
  const consumer = await context.consume(
    () => Promise.reject(new Error('it broke')),
    { retry: { attempts: 1 } },
    context.transport('copies_refused'),
  )
  const isBlocked = () =>
    context.enacted('deadLetter').some(({ enactment }) => isUnfinished(enactment))
  await context.until('the hand-off is blocked', isBlocked)
  await context.within('the blocked consumer stops', consumer.stop({ drain: 50 }))
  await context.world.heal()
  await context.places({ backlog: 1, deadLetters: 0 })
  const next = await context.receiver()
  const delivery = await next.next()
  assert.equal(delivery.id, id)
  await next.put(delivery, SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
}

async function pauseAndResume(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  const inFlight = await context.world.send(numbered(0))
  const delivery = await receiver.next()
  await context.within('the pause takes effect', receiver.transport.pause())
  const later = await context.world.send(numbered(1))
  await context.quiet()
  assert.deepEqual(
    receiver.deliveries.map(({ id }) => id),
    [inFlight],
    'no delivery arrives while paused',
  )
  await receiver.put(delivery, SETTLE)
  await context.places({ backlog: 1, deadLetters: 0 })
  receiver.transport.resume()
  const next = await receiver.next()
  assert.equal(next.id, later)
  await receiver.put(next, SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
}

const BREAKER = {
  trip: { kind: 'consecutive', failures: 1 },
  minOpen: '50ms',
  maxOpen: '50ms',
  successes: 1,
} as const

/** The first failure opens the breaker. One counted failure would use up the only attempt. */
const ATTEMPTS = 1
const FAILURES = 10

async function breakerPauses(context: ScenarioContext): Promise<void> {
  const ids = new Set([
    await context.world.send(numbered(0)),
    await context.world.send(numbered(1)),
  ])
  const handled = new Set<string>()
  let calls = 0
  const handler = ({ id }: { readonly id: string }) => {
    calls += 1
    if (calls <= FAILURES) throw unreachable()
    handled.add(id)
  }
  const retry = { ...context.policy().retry, attempts: ATTEMPTS }
  await context.consume(handler, { breaker: BREAKER, concurrency: 1, retry })
  await context.until('every message is handled', () => handled.size === ids.size)
  await context.places({ backlog: 0, deadLetters: 0 })
  assert.deepEqual(handled, ids)
  const counted = context.events.filter((event) => event.type === 'attempt_failed' && event.counted)
  assert.equal(counted.length, 0, 'failures that count')
  const openings = context.events.filter(
    (event) => event.type === 'breaker_changed' && event.to === 'open',
  ).length
  assert.equal(openings, FAILURES, 'each probe that failed opened it again')
  const returned = context.enacted('pause').length
  assert.ok(returned <= 2 * (openings + 1), `${returned} deliveries arrived while it was paused`)
}

export const STOPPING: readonly Scenario[] = [
  { name: 'close while a handler runs lets it finish', play: closeWhileHandlerFinishes },
  { name: 'close while a handler hangs returns the message', play: closeWhileHandlerHangs },
  { name: 'close while paused leaves everything in the source', play: closeWhilePaused },
  { name: 'close while a hand-off is blocked keeps the message', play: closeWhileBlocked },
  { name: 'pause stops new deliveries and resume starts them', play: pauseAndResume },
  {
    name: 'an open breaker pauses consumption without spending attempts',
    play: breakerPauses,
  },
]
