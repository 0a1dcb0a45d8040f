import assert from 'node:assert/strict'
import { isRedriveError, SETTLE } from '@redrive/core'
import { numbered, unreachable } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { Stage } from './stage.ts'

async function closeWhileHandlerFinishes(stage: Stage): Promise<void> {
  let finish: (() => void) | undefined
  const consumer = await stage.consume(
    () =>
      new Promise<void>((resolve) => {
        finish = resolve
      }),
  )
  await stage.world.send(numbered(1))
  await stage.until('the handler runs', () => finish !== undefined)
  const stopping = consumer.stop({ drain: '10s' })
  finish?.()
  await stage.within('the consumer stops', stopping)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

async function closeWhileHandlerHangs(stage: Stage): Promise<void> {
  let signal: AbortSignal | undefined
  const id = await stage.world.send(numbered(1))
  const consumer = await stage.consume((_, context) => {
    signal = context.signal
    return new Promise(() => undefined)
  })
  await stage.until('the handler runs', () => signal !== undefined)
  await stage.within('the consumer stops', consumer.stop({ drain: 50 }))
  assert.ok(isRedriveError(signal?.reason, 'STOPPING'), 'the handler was told to end')
  await stage.places({ backlog: 1, deadLetters: 0 })
  const next = await stage.tap()
  const delivery = await next.next()
  assert.equal(delivery.id, id)
  assert.equal(delivery.cycle.attempts, 0, 'an attempt cut short by us does not count')
  await next.put(delivery, SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

async function closeWhilePaused(stage: Stage): Promise<void> {
  const handled = new Set<string>()
  const handler = ({ id }: { readonly id: string }) => void handled.add(id)
  const paused = await stage.consume(handler)
  paused.pause()
  await stage.quiet()
  const ids = new Set<string>()
  for (let number = 0; number < 3; number++) ids.add(await stage.world.send(numbered(number)))
  await stage.within('the paused consumer stops', paused.stop({ drain: '1s' }))
  await stage.places({ backlog: 3, deadLetters: 0 })
  assert.equal(handled.size, 0)
  await stage.consume(handler)
  await stage.places({ backlog: 0, deadLetters: 0 })
  assert.deepEqual(handled, ids)
}

async function closeWhileBlocked(stage: Stage): Promise<void> {
  const id = await stage.world.send(numbered(1))
  const consumer = await stage.consume(
    () => Promise.reject(new Error('it broke')),
    { retry: { attempts: 1 } },
    stage.transport('copies_refused'),
  )
  const isBlocked = () =>
    stage.enacted('deadLetter').some(({ enactment }) => enactment.kind === 'unknown')
  await stage.until('the hand-off is blocked', isBlocked)
  await stage.within('the blocked consumer stops', consumer.stop({ drain: 50 }))
  await stage.world.heal()
  await stage.places({ backlog: 1, deadLetters: 0 })
  const next = await stage.tap()
  const delivery = await next.next()
  assert.equal(delivery.id, id)
  await next.put(delivery, SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

async function pauseAndResume(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  const inHand = await stage.world.send(numbered(0))
  const delivery = await tap.next()
  await stage.within('the pause takes effect', tap.transport.pause())
  const later = await stage.world.send(numbered(1))
  await stage.quiet()
  assert.deepEqual(
    tap.deliveries.map(({ id }) => id),
    [inHand],
    'nothing comes in while paused',
  )
  await tap.put(delivery, SETTLE)
  await stage.places({ backlog: 1, deadLetters: 0 })
  tap.transport.resume()
  const next = await tap.next()
  assert.equal(next.id, later)
  await tap.put(next, SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

const BREAKER = {
  trip: { kind: 'consecutive', failures: 3 },
  minOpen: '50ms',
  maxOpen: '50ms',
  successes: 1,
} as const

/** 2 failures count before the third opens the breaker; one more that counted could use up the 3 attempts. */
const ATTEMPTS = 3
const FAILURES = 10

async function breakerPauses(stage: Stage): Promise<void> {
  const ids = new Set([await stage.world.send(numbered(0)), await stage.world.send(numbered(1))])
  const handled = new Set<string>()
  let calls = 0
  const handler = ({ id }: { readonly id: string }) => {
    calls += 1
    if (calls <= FAILURES) throw unreachable()
    handled.add(id)
  }
  const retry = { ...stage.policy().retry, attempts: ATTEMPTS }
  await stage.consume(handler, { breaker: BREAKER, concurrency: 1, retry })
  await stage.until('every message is handled', () => handled.size === ids.size)
  await stage.places({ backlog: 0, deadLetters: 0 })
  assert.deepEqual(handled, ids)
  const counted = stage.events.filter((event) => event.type === 'attempt_failed' && event.counted)
  assert.equal(counted.length, BREAKER.trip.failures - 1, 'failures that count')
  const openings = stage.events.filter(
    (event) => event.type === 'breaker_changed' && event.to === 'open',
  ).length
  assert.equal(openings, FAILURES - counted.length, 'each probe that failed opened it again')
  const returned = stage.enacted('pause').length
  assert.ok(returned <= 2 * (openings + 1), `${returned} deliveries came in while it was paused`)
}

export const STOPPING: readonly Scenario[] = [
  { name: 'close while a handler runs lets it finish', play: closeWhileHandlerFinishes },
  { name: 'close while a handler hangs gives the message back', play: closeWhileHandlerHangs },
  { name: 'close while paused leaves everything in the source', play: closeWhilePaused },
  { name: 'close while a hand-off is blocked keeps the message', play: closeWhileBlocked },
  { name: 'pause stops new deliveries and resume brings them', play: pauseAndResume },
  {
    name: 'an open breaker pauses consumption without spending attempts',
    play: breakerPauses,
  },
]
