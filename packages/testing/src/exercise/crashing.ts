import assert from 'node:assert/strict'
import { type Decision, SETTLE } from '@redrive/core'
import { deadLetterOf, failedCycle, numbered, retryIn, unreachable } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { Stage } from './stage.ts'

async function historySurvivesCrash(stage: Stage): Promise<void> {
  const { world, clock, capabilities } = stage
  const id = await world.send({ ...numbered(1), key: 'order-1' })
  const before = await stage.tap()
  const delayMs = capabilities.delay.kind === 'none' ? 0 : 50
  const cycle = failedCycle(3, clock.now())
  await before.put(await before.next(), retryIn(delayMs, cycle, clock.now()))
  await world.crash(before.transport)
  const after = await stage.tap()
  const delivery = await after.next()
  assert.equal(delivery.id, id)
  assert.equal(delivery.key, 'order-1')
  const { notBefore: _, ...expected } = cycle
  const { notBefore: __, ...actual } = delivery.cycle
  assert.deepEqual(actual, expected, 'attempts and history are as they were handed off')
  await after.put(delivery, SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

/** Decisions that make a copy, and where messages are once the process died halfway through one. */
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

async function crashHalfway(stage: Stage): Promise<void> {
  for (const { decision, left } of HAND_OFFS) {
    const id = await stage.world.send(numbered(1))
    const dying = await stage.tap({ fault: 'dies_halfway' })
    const delivery = await dying.next()
    // It may never answer: nobody is there any more.
    void ignored(() => dying.transport.enact(delivery, decision(stage.clock.now())))
    if (stage.capabilities.atomicHandOff) await assertTotal(stage, 1)
    else await stage.places(left)
    await assertAllAre(stage, id)
  }
}

async function crashAtOnce(stage: Stage): Promise<void> {
  for (const { decision } of HAND_OFFS) {
    const id = await stage.world.send(numbered(1))
    const dying = await stage.tap()
    const delivery = await dying.next()
    void ignored(() => dying.transport.enact(delivery, decision(stage.clock.now())))
    await stage.world.crash(dying.transport)
    await assertTotal(stage, 1)
    await assertAllAre(stage, id)
  }
}

async function ignored(act: () => unknown): Promise<void> {
  try {
    await act()
  } catch {
    // Expected of a transport whose process is gone.
  }
}

const NOWHERE = 'the message is lost: it is neither in the source nor among the dead letters'

async function assertTotal(stage: Stage, least: number): Promise<void> {
  await stage.until(
    NOWHERE,
    async () => (await stage.world.backlog()) + (await stage.source().depth()) >= least,
  )
}

/** There is something left, and all of it has that id; takes it all away. */
async function assertAllAre(stage: Stage, id: string): Promise<void> {
  const left: string[] = []
  const next = await stage.tap()
  while ((await stage.world.backlog()) > 0) {
    const delivery = await next.next()
    left.push(delivery.id)
    await next.put(delivery, SETTLE)
  }
  await next.close()
  const deadLetters = await stage.drain(await stage.source().depth())
  left.push(...deadLetters.map(({ delivery }) => delivery.id))
  assert.ok(left.length > 0, NOWHERE)
  assert.deepEqual(new Set(left), new Set([id]))
  await stage.places({ backlog: 0, deadLetters: 0 })
}

async function unconfirmedCopy(stage: Stage): Promise<void> {
  const { world, clock } = stage
  const id = await world.send(numbered(1))
  const tap = await stage.tap({ fault: 'copies_refused' })
  const delivery = await tap.next()
  const decision = deadLetterOf(failedCycle(1, clock.now()))
  const enactment = await tap.enact(delivery, decision)
  assert.equal(enactment.kind, 'unknown', 'a copy that the broker refused is unknown, not done')
  await stage.places({ backlog: 1, deadLetters: 0 })
  await world.heal()
  assert.equal((await tap.put(delivery, decision)).place, 'dead_letter')
  await stage.places({ backlog: 0, deadLetters: 1 })
  assert.equal((await stage.drainOne()).delivery.id, id)
}

const INNOCENT = 100

/**
 * One process dies with everything in hand, so everything is suspect and runs alone. With a single
 * trial allowed, an innocent message that was still in hand when the poison killed would be set
 * aside with it.
 */
async function crashLoop(stage: Stage): Promise<void> {
  const poisonId = await stage.world.send(numbered(0))
  const innocent = new Set<string>()
  for (let number = 1; number <= INNOCENT; number++) {
    innocent.add(await stage.world.send(numbered(number)))
  }
  const handled = new Set<string>()
  let inHand = 0
  await live(stage, (_, die) => {
    inHand += 1
    return inHand > INNOCENT ? die() : never()
  })
  await live(stage, (id, die) => {
    if (id === poisonId) return die()
    handled.add(id)
    return Promise.resolve()
  })
  await stage.consume(({ id }) => void handled.add(id), CRASHY)
  await stage.until('every innocent message is handled', () => handled.size >= INNOCENT)
  await stage.places({ backlog: 0, deadLetters: 1 })
  assert.deepEqual(handled, innocent)
  const deadLetter = await stage.drainOne()
  assert.equal(deadLetter.delivery.id, poisonId, 'the poison, nobody else')
  assert.equal(deadLetter.quarantined, true)
  assert.equal(deadLetter.reason, 'crash_loop')
}

const CRASHY = { poison: { suspectDeliveries: 2, trials: 1 }, concurrency: INNOCENT + 1 }

/** A process that lives until its handler dies. */
async function live(
  stage: Stage,
  handler: (id: string, die: () => Promise<never>) => Promise<void>,
): Promise<void> {
  const transport = stage.transport()
  let isDead = false
  const die = async () => {
    await stage.world.crash(transport)
    isDead = true
    return never()
  }
  const consumer = await stage.consume(({ id }) => handler(id, die), CRASHY, transport)
  await stage.until('the process dies', () => isDead)
  await stage.within('a dead process ends', consumer.stop({ drain: 0 }))
}

const never = () => new Promise<never>(() => undefined)

/** Some in hand, some waiting, one delayed, one given up: what a restart finds. */
async function brokerRestart(stage: Stage): Promise<void> {
  const { world, clock } = stage
  const tap = await stage.tap({ limit: 1 })
  const deadId = await world.send(numbered(0))
  await tap.put(await tap.next(), deadLetterOf(failedCycle(1, clock.now())))
  await tap.close()
  await stage.places({ backlog: 0, deadLetters: 1 })

  const ids = new Set<string>()
  const handled = new Set<string>()
  const before = { isOver: false }
  await stage.consume(
    async ({ id, body }, { attempt }) => {
      const { number } = body as { number: number }
      if (number === 1 && attempt === 1) throw unreachable()
      if (!before.isOver) await stoppedBy(before, stage)
      handled.add(id)
    },
    { concurrency: 3 },
  )
  for (let number = 1; number <= 10; number++) ids.add(await world.send(numbered(number)))
  await stage.until('some are in hand and one failed', () => {
    return stage.events.some((event) => event.type === 'attempt_failed')
  })
  await stage.within('the broker restarts', stage.restartBroker())
  before.isOver = true
  for (let number = 11; number <= 15; number++) ids.add(await world.send(numbered(number)))
  await stage.until('every message is handled', () => handled.size >= ids.size)
  assert.deepEqual(handled, ids)
  await stage.places({ backlog: 0, deadLetters: 1 })
  assert.equal((await stage.drainOne()).delivery.id, deadId)
}

/** Waits as a handler waits for its dependency. */
async function stoppedBy(state: { readonly isOver: boolean }, { clock }: Stage): Promise<void> {
  while (!state.isOver) await new Promise<void>((resolve) => clock.after(5, resolve))
}

export const CRASHING: readonly Scenario[] = [
  { name: 'attempt history survives a process crash', play: historySurvivesCrash },
  {
    name: 'a crash between publish and acknowledge duplicates under the same id, never loses',
    play: crashHalfway,
  },
  { name: 'a crash right after a hand-off began loses nothing', play: crashAtOnce },
  { name: 'a copy that is not confirmed keeps the original', play: unconfirmedCopy },
  {
    name: 'a crash loop among 100 innocent messages quarantines only the poison',
    play: crashLoop,
    excuse: ({ deliveryCount }) =>
      deliveryCount === 'exact'
        ? undefined
        : `the broker does not count how often a message was handed out (deliveryCount: '${deliveryCount}')`,
  },
  { name: 'a broker restart loses nothing', play: brokerRestart, isAlone: true },
]
