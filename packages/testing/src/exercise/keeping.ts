import assert from 'node:assert/strict'
import { type Delivery, SETTLE } from '@redrive/core'
import type { ConsumerGroup } from './world.ts'
import { memoryInbox } from '../memory-inbox.ts'
import { deadLetterOf, failedCycle, failureOf, numbered, quarantineOf, retryIn } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { ScenarioContext } from './scenario-context.ts'
import type { RecordingReceiver } from './recording-receiver.ts'

const STACK = 'Error: it broke “café”\n    at handle (orders.ts:42:7)\n    at run (loop.ts:7:3)'

async function stackIsKept(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  const cycle = failedCycle(1, context.clock.now())
  for (const stack of [STACK, undefined]) {
    await context.world.send(numbered(1))
    const failure = { ...failureOf('unknown'), stack }
    await receiver.put(await receiver.next(), { ...deadLetterOf(cycle), failure })
    const deadLetter = await context.drainOne()
    assert.equal(deadLetter.stack, stack, 'the stack of the drained dead letter')
    assert.deepEqual(deadLetter.delivery.headerProblems, [])
  }
}

async function handlerIsNamed(context: ScenarioContext): Promise<void> {
  const handler = 'charge “café”'
  const needs = { deadLetterRetentionMs: RETENTION_MS, handler }
  const receiver = await context.receiver({ needs })
  const cycle = failedCycle(1, context.clock.now())
  for (const decision of [deadLetterOf(cycle), quarantineOf(cycle)]) {
    await context.world.send(numbered(1))
    await receiver.put(await receiver.next(), retryIn(0, cycle, context.clock.now()))
    await receiver.put(await receiver.next(), decision)
    const deadLetter = await context.drainOne()
    assert.equal(deadLetter.handler, handler, 'the handler of the drained dead letter')
    assert.deepEqual(deadLetter.delivery.headerProblems, [])
  }
}

/** An hour: longer than any scenario, so that the dead letter still exists. */
const RETENTION_MS = 3_600_000
/** A minute: brokers that report the remaining time have already subtracted some. */
const TOLERANCE_MS = 60_000

async function retentionIsApplied(context: ScenarioContext): Promise<void> {
  const world = context.having('retentionMs')
  const receiver = await context.receiver({ needs: { deadLetterRetentionMs: RETENTION_MS } })
  const id = await world.send(numbered(1))
  await receiver.put(await receiver.next(), deadLetterOf(failedCycle(1, context.clock.now())))
  await context.places({ backlog: 0, deadLetters: 1 })
  const appliedMs = await world.retentionMs()
  const differenceMs = Math.abs(appliedMs - RETENTION_MS)
  assert.ok(
    differenceMs <= TOLERANCE_MS,
    `retention of dead letters: open() requested ${RETENTION_MS} ms, the broker applies ${appliedMs} ms`,
  )
  assert.equal(
    (await context.drainOne()).delivery.id,
    id,
    'a dead letter within its retention is kept',
  )
}

async function replayPublishedTwice(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  await context.world.send({ ...numbered(1), key: 'order-1' })
  await receiver.put(await receiver.next(), deadLetterOf(failedCycle(1, context.clock.now())))
  await receiver.close()
  const replay = { deadLetter: await context.drainOne(), replayId: 'replay-1' }
  await context.source().publish(replay)
  await context.source().publish(replay)
  let effects = 0
  await context.consume(() => void effects++, { inbox: memoryInbox() })
  await context.places({ backlog: 0, deadLetters: 0 })
  await context.quiet()
  const deliveries = context.enacted('settle').length
  const most = context.capabilities.duplicateReplays === 'discarded' ? 1 : 2
  assert.ok(
    deliveries <= most,
    `a replay published twice is delivered ${deliveries} times, at most ${most}`,
  )
  assert.equal(effects, 1, 'effects of a replay that is published twice')
  const confirmations = await context.confirmed(deliveries)
  assert.deepEqual(new Set(confirmations.map(({ replayId }) => replayId)), new Set(['replay-1']))
}

/** Sends a message that both groups got and the other group has handled. */
async function sharedMessage(context: ScenarioContext): Promise<SharedMessage> {
  const group = context.having('otherGroup').otherGroup()
  const ours = await context.receiver()
  const theirs = await context.receiver({ transport: group.transport() })
  const id = await context.world.send(numbered(1))
  const delivery = await firstOf(context, ours, 'first')
  const copy = await firstOf(context, theirs, 'second')
  assert.deepEqual([delivery.id, copy.id], [id, id])
  await theirs.put(copy, SETTLE)
  return { group, ours, theirs, delivery }
}

interface SharedMessage {
  readonly group: ConsumerGroup
  readonly ours: RecordingReceiver
  readonly theirs: RecordingReceiver
  readonly delivery: Delivery
}

async function groupsAreIndependent(context: ScenarioContext): Promise<void> {
  const { group, ours, theirs, delivery } = await sharedMessage(context)
  const cycle = failedCycle(1, context.clock.now())
  await ours.put(delivery, retryIn(0, cycle, context.clock.now()))
  const retried = await ours.next()
  await isUndisturbed(context, theirs, 'a retry of one group reached the other')
  await ours.put(retried, deadLetterOf(cycle))
  await context.places({ backlog: 0, deadLetters: 1 })
  const depth = await context.controlPlane(group.source()).depth()
  assert.equal(depth, 0, 'dead letters of the group that handled the message')
}

async function replayStaysInItsGroup(context: ScenarioContext): Promise<void> {
  const { ours, theirs, delivery } = await sharedMessage(context)
  await ours.put(delivery, deadLetterOf(failedCycle(1, context.clock.now())))
  await context.source().publish({ deadLetter: await context.drainOne(), replayId: 'replay-1' })
  await ours.put(await ours.next(), SETTLE)
  await isUndisturbed(context, theirs, 'a replay of one group reached the other')
  await context.places({ backlog: 0, deadLetters: 0 })
}

async function firstOf(
  context: ScenarioContext,
  receiver: RecordingReceiver,
  which: string,
): Promise<Delivery> {
  await context.until(`both groups get the message: the ${which} has none`, () => {
    return receiver.deliveries.length > 0
  })
  return receiver.next()
}

async function isUndisturbed(
  context: ScenarioContext,
  { deliveries }: RecordingReceiver,
  what: string,
): Promise<void> {
  await context.quiet()
  assert.equal(deliveries.length, 1, what)
}

export const KEEPING: readonly Scenario[] = [
  { name: 'a dead letter keeps the stack of its failure', play: stackIsKept },
  { name: 'a dead letter names its handler', play: handlerIsNamed },
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
    name: 'a replay reaches only the group that gave up the message',
    play: replayStaysInItsGroup,
    needs: 'otherGroup',
  },
]
