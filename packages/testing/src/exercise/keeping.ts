import assert from 'node:assert/strict'
import { type Delivery, SETTLE } from '@redrive/core'
import type { ConsumerGroup } from './world.ts'
import { memoryInbox } from '../memory-inbox.ts'
import { deadLetterOf, failedCycle, failureOf, numbered, retryIn } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { Stage } from './stage.ts'
import type { Tap } from './tap.ts'

const STACK = 'Error: it broke “café”\n    at handle (orders.ts:42:7)\n    at run (loop.ts:7:3)'

async function stackIsKept(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  const cycle = failedCycle(1, stage.clock.now())
  for (const stack of [STACK, undefined]) {
    await stage.world.send(numbered(1))
    const failure = { ...failureOf('unknown'), stack }
    await tap.put(await tap.next(), { ...deadLetterOf(cycle), failure })
    const deadLetter = await stage.drainOne()
    assert.equal(deadLetter.stack, stack, 'the stack of the drained dead letter')
    assert.deepEqual(deadLetter.delivery.headerProblems, [])
  }
}

/** An hour: longer than any scenario, so that the dead letter is still there. */
const RETENTION_MS = 3_600_000
/** A minute: brokers that report the time left have counted some of it down. */
const TOLERANCE_MS = 60_000

async function retentionIsApplied(stage: Stage): Promise<void> {
  const world = stage.having('retentionMs')
  const tap = await stage.tap({ needs: { deadLetterRetentionMs: RETENTION_MS } })
  const id = await world.send(numbered(1))
  await tap.put(await tap.next(), deadLetterOf(failedCycle(1, stage.clock.now())))
  await stage.places({ backlog: 0, deadLetters: 1 })
  const appliedMs = await world.retentionMs()
  const differenceMs = Math.abs(appliedMs - RETENTION_MS)
  assert.ok(
    differenceMs <= TOLERANCE_MS,
    `retention of dead letters: open() asked for ${RETENTION_MS} ms, the broker applies ${appliedMs} ms`,
  )
  assert.equal(
    (await stage.drainOne()).delivery.id,
    id,
    'a dead letter within its retention is kept',
  )
}

async function replayPublishedTwice(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  await stage.world.send({ ...numbered(1), key: 'order-1' })
  await tap.put(await tap.next(), deadLetterOf(failedCycle(1, stage.clock.now())))
  await tap.close()
  const replay = { deadLetter: await stage.drainOne(), replayId: 'replay-1' }
  await stage.source().publish(replay)
  await stage.source().publish(replay)
  let effects = 0
  await stage.consume(() => void effects++, { inbox: memoryInbox() })
  await stage.places({ backlog: 0, deadLetters: 0 })
  await stage.quiet()
  const deliveries = stage.enacted('settle').length
  const most = stage.capabilities.duplicateReplays === 'discarded' ? 1 : 2
  assert.ok(
    deliveries <= most,
    `a replay published twice is delivered ${deliveries} times, at most ${most}`,
  )
  assert.equal(effects, 1, 'effects of a replay that is published twice')
  const confirmations = await stage.confirmed(deliveries)
  assert.deepEqual(new Set(confirmations.map(({ replayId }) => replayId)), new Set(['replay-1']))
}

/** A message that both groups got and the other one has handled. */
async function sharedMessage(stage: Stage): Promise<SharedMessage> {
  const group = stage.having('otherGroup').otherGroup()
  const ours = await stage.tap()
  const theirs = await stage.tap({ transport: group.transport() })
  const id = await stage.world.send(numbered(1))
  const delivery = await firstOf(stage, ours, 'first')
  const copy = await firstOf(stage, theirs, 'second')
  assert.deepEqual([delivery.id, copy.id], [id, id])
  await theirs.put(copy, SETTLE)
  return { group, ours, theirs, delivery }
}

interface SharedMessage {
  readonly group: ConsumerGroup
  readonly ours: Tap
  readonly theirs: Tap
  readonly delivery: Delivery
}

async function groupsAreIndependent(stage: Stage): Promise<void> {
  const { group, ours, theirs, delivery } = await sharedMessage(stage)
  const cycle = failedCycle(1, stage.clock.now())
  await ours.put(delivery, retryIn(0, cycle, stage.clock.now()))
  const retried = await ours.next()
  await isUndisturbed(stage, theirs, 'a retry of one group reached the other')
  await ours.put(retried, deadLetterOf(cycle))
  await stage.places({ backlog: 0, deadLetters: 1 })
  const depth = await stage.controlPlane(group.source()).depth()
  assert.equal(depth, 0, 'dead letters of the group that handled the message')
}

async function replayStaysInItsGroup(stage: Stage): Promise<void> {
  const { ours, theirs, delivery } = await sharedMessage(stage)
  await ours.put(delivery, deadLetterOf(failedCycle(1, stage.clock.now())))
  await stage.source().publish({ deadLetter: await stage.drainOne(), replayId: 'replay-1' })
  await ours.put(await ours.next(), SETTLE)
  await isUndisturbed(stage, theirs, 'a replay of one group reached the other')
  await stage.places({ backlog: 0, deadLetters: 0 })
}

async function firstOf(stage: Stage, tap: Tap, which: string): Promise<Delivery> {
  await stage.until(`both groups get the message: the ${which} has none`, () => {
    return tap.deliveries.length > 0
  })
  return tap.next()
}

async function isUndisturbed(stage: Stage, { deliveries }: Tap, what: string): Promise<void> {
  await stage.quiet()
  assert.equal(deliveries.length, 1, what)
}

export const KEEPING: readonly Scenario[] = [
  { name: 'a dead letter keeps the stack of its failure', play: stackIsKept },
  {
    name: 'the retention of dead letters reaches the broker',
    play: retentionIsApplied,
    needs: 'retentionMs',
  },
  { name: 'a replay published twice takes effect once', play: replayPublishedTwice },
  {
    name: 'every group gets every message and only its own failures',
    play: groupsAreIndependent,
    needs: 'otherGroup',
  },
  {
    name: 'a replay reaches only the group that gave the message up',
    play: replayStaysInItsGroup,
    needs: 'otherGroup',
  },
]
