import assert from 'node:assert/strict'
import { type Decision, type Delivery, SETTLE } from '@redrive/core'
import { deadLetterOf, failedCycle, numbered, retryIn } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { Stage } from './stage.ts'
import type { Tap } from './tap.ts'

/** 3 leases: a lease that is renewed only once ends within them. */
const LEASES = 3

async function longHandlerKeepsItsMessage(stage: Stage): Promise<void> {
  const { lease } = stage.having('lease')
  const owner = await stage.tap({ transport: lease.transport() })
  await stage.world.send(numbered(1))
  const delivery = await owner.next()
  const rival = await stage.tap({ transport: lease.transport() })
  await stage.pass(lease.ms * LEASES)
  const again = owner.deliveries.length - 1 + rival.deliveries.length
  assert.equal(
    again,
    0,
    `second deliveries while the owner lives: the lease of ${lease.ms} ms ended`,
  )
  assert.deepEqual(owner.losses, [], 'deliveries reported as lost while the owner lives')
  await owner.put(delivery, SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

/** A message whose owner was replaced: the stale delivery, and the one that counts now. */
interface Stolen {
  readonly owner: Tap
  readonly stale: Delivery
  readonly holder: Tap
  readonly current: Delivery
}

async function stolen(stage: Stage): Promise<Stolen> {
  const world = stage.having('stealOwnership')
  const owner = await stage.tap()
  const id = await world.send(numbered(1))
  const stale = await owner.next()
  const rival = await stage.tap()
  await stage.within('the broker takes the message back', world.stealOwnership(owner.transport))
  await stage.until('the broker delivers the message to its next owner', () => {
    return owner.deliveries.length + rival.deliveries.length > 1
  })
  const holder = rival.deliveries.length > 0 ? rival : owner
  const current = holder.deliveries.at(-1) as Delivery
  assert.equal(current.id, id)
  return { owner, stale, holder, current }
}

async function staleOwnerChangesNothing(stage: Stage): Promise<void> {
  const { owner, stale, holder, current } = await stolen(stage)
  for (const decision of [SETTLE, deadLetterOf(failedCycle(1, stage.clock.now()))]) {
    const { kind } = await owner.enact(stale, decision)
    assert.equal(kind, 'lost', `a stale owner's ${decision.kind} returns lost`)
    await stage.places({ backlog: 1, deadLetters: 0 })
  }
  await holder.put(current, SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

async function lossIsReported(stage: Stage): Promise<void> {
  const { owner, stale, holder, current } = await stolen(stage)
  await stage.until('receiver.lost() is called for the delivery that the broker took back', () => {
    return owner.losses.includes(stale)
  })
  await stage.quiet()
  assert.deepEqual(owner.losses, [stale], 'deliveries reported as lost, each once')
  await holder.put(current, SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

/** 6 messages, 2 in flight: each settlement starts a read, and the pause comes into it. */
const MESSAGES = 6
const IN_FLIGHT = 2
const ROUNDS = 4

async function pauseWaitsForTheRead(stage: Stage): Promise<void> {
  for (let number = 0; number < MESSAGES; number++) await stage.world.send(numbered(number))
  const tap = await stage.tap({ limit: IN_FLIGHT })
  for (let round = 0; round < ROUNDS; round++) {
    const settling = tap.transport.enact(await tap.next(), SETTLE)
    // Half of the rounds pause before the settlement has ended, half right after it.
    if (round % 2 === 0) await stage.within('settle is enacted', settling)
    await stage.within('the transport pauses', tap.transport.pause())
    const before = tap.deliveries.length
    await stage.within('settle is enacted', settling)
    await stage.quiet()
    assert.equal(
      tap.deliveries.length,
      before,
      'deliveries after pause() resolved: it did not wait for the read',
    )
    tap.transport.resume()
  }
  for (let left = MESSAGES - ROUNDS; left > 0; left--) await tap.put(await tap.next(), SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

/** 8 tries, 25 s in all: a transport may have to connect again first. */
const MOST_TRIES = 8
const WAIT_MS = 100

async function lostResponse(stage: Stage): Promise<void> {
  const world = stage.having('dropResponse')
  const now = stage.clock.now()
  const tap = await stage.tap()
  const enactWithLoss = async (decision: Decision) => {
    const id = await world.send(numbered(1))
    const delivery = await tap.next()
    await world.dropResponse(tap.transport)
    return { id, most: copiesOf(stage, await insist(stage, tap, delivery, decision)) }
  }
  const dead = await enactWithLoss(deadLetterOf(failedCycle(1, now)))
  await backlogIs(stage, 0)
  const copies = await stage.source().depth()
  assert.ok(copies >= 1, 'the dead letter is stored before the original is released')
  assert.ok(copies <= dead.most, `${copies} dead letters of one message, at most ${dead.most}`)
  for (const { delivery } of await stage.drain(copies)) assert.equal(delivery.id, dead.id)

  const retried = await enactWithLoss(retryIn(0, failedCycle(1, now), now))
  await settleCopies(stage, tap, retried)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

async function settleCopies(
  stage: Stage,
  tap: Tap,
  { id, most }: { readonly id: string; readonly most: number },
): Promise<void> {
  let copies = 0
  do {
    const delivery = await tap.next()
    assert.equal(delivery.id, id)
    copies += 1
    assert.ok(copies <= most, `${copies} retries of one message, at most ${most}`)
    await tap.put(delivery, SETTLE)
    await stage.quiet()
  } while ((await stage.world.backlog()) > 0)
}

/** Enacts again while the result is unknown, with growing waits, as the runtime does. Returns the tries. */
async function insist(
  stage: Stage,
  tap: Tap,
  delivery: Delivery,
  decision: Decision,
): Promise<number> {
  for (let tries = 1; tries <= MOST_TRIES; tries++) {
    const { kind } = await tap.enact(delivery, decision)
    if (kind !== 'unknown') return tries
    await stage.pass(WAIT_MS * 2 ** (tries - 1))
  }
  assert.fail(`${decision.kind} stays unknown after ${MOST_TRIES} tries`)
}

/** One copy where copy and release are one step; else each unknown try may leave one. */
const copiesOf = ({ capabilities }: Stage, tries: number) =>
  capabilities.atomicHandOff ? 1 : tries

async function backlogIs(stage: Stage, expected: number): Promise<void> {
  await stage.until(`the backlog is ${expected}`, async () => {
    return (await stage.world.backlog()) === expected
  })
}

export const OWNING: readonly Scenario[] = [
  {
    name: 'a handler that runs longer than the lease keeps its message',
    play: longHandlerKeepsItsMessage,
    needs: 'lease',
    isAlone: true,
  },
  {
    name: 'a stale owner cannot change the message of the next owner',
    play: staleOwnerChangesNothing,
    needs: 'stealOwnership',
  },
  {
    name: 'a delivery that the broker takes back is reported as lost',
    play: lossIsReported,
    needs: 'stealOwnership',
  },
  { name: 'a pause waits for the read in progress', play: pauseWaitsForTheRead },
  {
    name: 'a hand-off whose response is lost is repeated without more copies than declared',
    play: lostResponse,
    needs: 'dropResponse',
  },
]
