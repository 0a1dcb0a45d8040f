import assert from 'node:assert/strict'
import { type Decision, SETTLE } from '@redrive/core'
import { assertNotStored } from './places.ts'
import { deadLetterOf, failedCycle, numbered, retryIn, unreachable } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { ScenarioContext } from './scenario-context.ts'

async function historySurvivesCrash(context: ScenarioContext): Promise<void> {
  const { world, clock, capabilities } = context
  const id = await world.send({ ...numbered(1), key: 'order-1' })
  const before = await context.receiver()
  const delayMs = capabilities.delay.kind === 'none' ? 0 : 50
  const cycle = failedCycle(3, clock.now())
  await before.put(await before.next(), retryIn(delayMs, cycle, clock.now()))
  await world.crash(before.transport)
  const after = await context.receiver()
  const delivery = await after.next()
  assert.equal(delivery.id, id)
  assert.equal(delivery.key, 'order-1')
  assert.deepEqual(delivery.cycle, cycle, 'attempts and history are as they were handed off')
  await after.put(delivery, SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
}

/** Decisions that make a copy, and where messages are after the process crashed halfway. */
const HAND_OFFS: readonly {
  readonly decision: (now: number) => Decision
  readonly left: { readonly backlog: number; readonly deadLetters: number }
}[] = [
  { decision: (now) => deadLetterOf(failedCycle(1, now)), left: { backlog: 1, deadLetters: 1 } },
  {
    decision: (now) => retryIn(0, failedCycle(1, now), now),
    left: { backlog: 2, deadLetters: 0 },
  },
]

async function crashHalfway(context: ScenarioContext): Promise<void> {
  for (const { decision, left } of HAND_OFFS) {
    const id = await context.world.send(numbered(1))
    const dying = await context.receiver({ fault: 'dies_halfway' })
    const delivery = await dying.next()
    // It may never return, because the process has crashed.
    void ignored(() => dying.transport.enact(delivery, decision(context.clock.now())))
    if (context.capabilities.atomicHandOff) await assertTotal(context, 1)
    else await context.places(left)
    await assertAllAre(context, id)
  }
}

async function crashImmediately(context: ScenarioContext): Promise<void> {
  for (const { decision } of HAND_OFFS) {
    const id = await context.world.send(numbered(1))
    const dying = await context.receiver()
    const delivery = await dying.next()
    void ignored(() => dying.transport.enact(delivery, decision(context.clock.now())))
    await context.world.crash(dying.transport)
    await assertTotal(context, 1)
    await assertAllAre(context, id)
  }
}

async function ignored(act: () => unknown): Promise<void> {
  try {
    await act()
  } catch {
    // Expected of a transport whose process has crashed.
  }
}

const NOWHERE = 'the message is lost: it is neither in the source nor in the dead-letter queue'

async function assertTotal(context: ScenarioContext, least: number): Promise<void> {
  await context.until(
    NOWHERE,
    async () => (await context.world.backlog()) + (await context.source().depth()) >= least,
  )
}

/** Asserts that at least one message is left and all have that id; removes them. */
async function assertAllAre(context: ScenarioContext, id: string): Promise<void> {
  const left: string[] = []
  const next = await context.receiver()
  while ((await context.world.backlog()) > 0) {
    const delivery = await next.next()
    left.push(delivery.id)
    await next.put(delivery, SETTLE)
  }
  await next.close()
  const deadLetters = await context.drain(await context.source().depth())
  left.push(...deadLetters.map(({ delivery }) => delivery.id))
  assert.ok(left.length > 0, NOWHERE)
  assert.deepEqual(new Set(left), new Set([id]))
  await context.places({ backlog: 0, deadLetters: 0 })
}

async function unconfirmedCopy(context: ScenarioContext): Promise<void> {
  const { world, clock } = context
  const id = await world.send(numbered(1))
  const receiver = await context.receiver({ fault: 'copies_refused' })
  const delivery = await receiver.next()
  const decision = deadLetterOf(failedCycle(1, clock.now()))
  const enactment = await receiver.enact(delivery, decision)
  assertNotStored(enactment, 'a copy')
  await context.places({ backlog: 1, deadLetters: 0 })
  await world.heal()
  assert.equal((await receiver.put(delivery, decision)).destination, 'dead_letter')
  await context.places({ backlog: 0, deadLetters: 1 })
  assert.equal((await context.drainOne()).delivery.id, id)
}

const INNOCENT = 100

/**
 * Crashes one process with all its deliveries in flight, so all are suspect and run alone. With a single
 * trial, an innocent message that was in flight during the crash of the poison would be quarantined
 * with it.
 */
async function crashLoop(context: ScenarioContext): Promise<void> {
  const startedAt = context.clock.now()
  const poisonId = await context.world.send(numbered(0))
  const innocent = new Set<string>()
  for (let number = 1; number <= INNOCENT; number++) {
    innocent.add(await context.world.send(numbered(number)))
  }
  const handled = new Set<string>()
  let inFlight = 0
  await live(context, (_, die) => {
    inFlight += 1
    return inFlight > INNOCENT ? die() : never()
  })
  await live(context, (id, die) => {
    if (id === poisonId) return die()
    handled.add(id)
    return Promise.resolve()
  })
  await context.consume(({ id }) => void handled.add(id), CRASHY)
  await context.until('every innocent message is handled', () => handled.size >= INNOCENT)
  await context.places({ backlog: 0, deadLetters: 1 })
  assert.deepEqual(handled, innocent)
  const deadLetter = await context.drainOne()
  assert.equal(deadLetter.delivery.id, poisonId, 'only the poison message')
  assert.equal(deadLetter.quarantined, true)
  assert.equal(deadLetter.reason, 'crash_loop')
  const { firstFailedAt = 0, history } = deadLetter.delivery.cycle
  const last = history.at(-1)
  assert.equal(last?.code, 'CRASH_LOOP', 'the crashes are the last failure')
  const times = [startedAt, firstFailedAt, last.at, context.clock.now()]
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
    'the crashes have a time',
  )
}

const CRASHY = { poison: { suspectDeliveries: 2, trials: 1 }, concurrency: INNOCENT + 1 }

/** Runs a process until its handler crashes it. */
async function live(
  context: ScenarioContext,
  handler: (id: string, die: () => Promise<never>) => Promise<void>,
): Promise<void> {
  const transport = context.transport()
  let isDead = false
  const die = async () => {
    await context.world.crash(transport)
    isDead = true
    return never()
  }
  const consumer = await context.consume(({ id }) => handler(id, die), CRASHY, transport)
  await context.until('the process dies', () => isDead)
  await context.within('a dead process ends', consumer.stop({ drain: 0 }))
}

const never = () => new Promise<never>(() => undefined)

/** Some in flight, some waiting, one delayed, one given up: the state before a restart. */
async function brokerRestart(context: ScenarioContext): Promise<void> {
  const { world, clock } = context
  const receiver = await context.receiver({ limit: 1 })
  const deadId = await world.send(numbered(0))
  await receiver.put(await receiver.next(), deadLetterOf(failedCycle(1, clock.now())))
  await receiver.close()
  await context.places({ backlog: 0, deadLetters: 1 })

  const ids = new Set<string>()
  const handled = new Set<string>()
  const before = { isOver: false }
  await context.consume(
    async ({ id, body }, { attempt }) => {
      const { number } = body as { number: number }
      if (number === 1 && attempt === 1) throw unreachable()
      if (!before.isOver) await stoppedBy(before, context)
      handled.add(id)
    },
    { concurrency: 3 },
  )
  for (let number = 1; number <= 10; number++) ids.add(await world.send(numbered(number)))
  await context.until('some are in flight and one failed', () => {
    return context.events.some((event) => event.type === 'attempt_failed')
  })
  await context.within('the broker restarts', context.restartBroker())
  before.isOver = true
  for (let number = 11; number <= 15; number++) ids.add(await world.send(numbered(number)))
  await context.until(
    'every message is handled',
    () => handled.size >= ids.size,
    () => [...ids].filter((id) => !handled.has(id)).join(', '),
  )
  assert.deepEqual(handled, ids)
  await context.places({ backlog: 0, deadLetters: 1 })
  assert.equal((await context.drainOne()).delivery.id, deadId)
}

/** Waits like a handler that waits for its dependency. */
async function stoppedBy(
  state: { readonly isOver: boolean },
  { clock }: ScenarioContext,
): Promise<void> {
  while (!state.isOver) await new Promise<void>((resolve) => clock.after(5, resolve))
}

export const CRASHING: readonly Scenario[] = [
  { name: 'attempt history survives a process crash', play: historySurvivesCrash },
  {
    name: 'a crash between publish and acknowledge duplicates under the same id, and loses nothing',
    play: crashHalfway,
  },
  { name: 'a crash right after a hand-off began loses nothing', play: crashImmediately },
  { name: 'a copy that is not confirmed keeps the original', play: unconfirmedCopy },
  {
    name: 'a crash loop among 100 innocent messages quarantines only the poison',
    play: crashLoop,
    excuse: ({ deliveryCount }) =>
      deliveryCount === 'exact'
        ? undefined
        : `the broker does not count how often a message was delivered (deliveryCount: '${deliveryCount}')`,
  },
  { name: 'a broker restart loses nothing', play: brokerRestart, isAlone: true },
]
