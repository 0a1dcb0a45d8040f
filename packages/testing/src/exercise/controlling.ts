import assert from 'node:assert/strict'
import { isRedriveError, SETTLE } from '@redrive/core'
import type { DeadLetterSource, DrainedBatch } from '@redrive/runtime'
import { describeError } from './describe-error.ts'
import { deadLetterOf, failedCycle, numbered, retryIn } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { ScenarioContext } from './scenario-context.ts'
import type { RecordingReceiver } from './recording-receiver.ts'

/** Gives up that many messages and returns their ids. */
async function giveUp(
  context: ScenarioContext,
  receiver: RecordingReceiver,
  count: number,
): Promise<ReadonlySet<string>> {
  const ids = new Set<string>()
  for (let number = 0; number < count; number++) {
    ids.add(await context.world.send(numbered(number)))
    await receiver.put(await receiver.next(), deadLetterOf(failedCycle(1, context.clock.now())))
  }
  return ids
}

/** 6 dead letters, 2 in a batch: two control planes meet several times. */
const DEAD_LETTERS = 6
const BATCH = 2

async function concurrentDrains(context: ScenarioContext): Promise<void> {
  const ids = await giveUp(context, await context.receiver(), DEAD_LETTERS)
  await context.places({ backlog: 0, deadLetters: DEAD_LETTERS })
  const planes = [context.controlPlane(), context.controlPlane()]
  const drained = new Set<string>()
  const released: string[] = []
  await context.until('two control planes drain every dead letter', async () => {
    for (const id of await drainTogether(planes, drained)) {
      assert.ok(!released.includes(id), `dead letter ${id} is released by two control planes`)
      released.push(id)
    }
    return (await context.source().depth()) === 0
  })
  assert.deepEqual(drained, ids, 'dead letters that two control planes drained')
}

/** Drains a batch with each control plane at the same time. Returns the released ids, twice if both released one. */
async function drainTogether(
  planes: readonly DeadLetterSource[],
  drained: Set<string>,
): Promise<readonly string[]> {
  const batches = await Promise.all(planes.map((plane) => plane.drain({ limit: BATCH })))
  for (const id of batches.flatMap(idsOf)) drained.add(id)
  const ends = await Promise.allSettled(batches.map((batch) => batch.release()))
  return batches.flatMap((batch, index) => {
    const end = ends[index]
    if (end?.status !== 'rejected') return idsOf(batch)
    // The broker moved them to the other control plane; it may have released some of them before.
    if (!isRedriveError(end.reason, 'DELIVERY_LOST')) throw end.reason
    return []
  })
}

const idsOf = ({ deadLetters }: DrainedBatch) => deadLetters.map(({ delivery }) => delivery.id)

/** A minute: the retry waits until the end of the scenario. */
const LATER_MS = 60_000

async function lagCountsWhatIsDue(context: ScenarioContext): Promise<void> {
  for (let number = 0; number < 3; number++) await context.world.send(numbered(number))
  await lagIs(context, 3, 'messages without a consumer')
  const receiver = await context.receiver()
  const now = context.clock.now()
  const canDelay = context.capabilities.delay.kind !== 'none'
  const delayed = retryIn(LATER_MS, failedCycle(1, now), now)
  await receiver.put(await receiver.next(), canDelay ? delayed : SETTLE)
  await receiver.put(await receiver.next(), deadLetterOf(failedCycle(1, now)))
  await receiver.put(await receiver.next(), SETTLE)
  await context.places({ backlog: canDelay ? 1 : 0, deadLetters: 1 })
  await lagIs(context, 0, 'a delayed retry and a dead letter')
}

async function lagIs(context: ScenarioContext, expected: number, what: string): Promise<void> {
  let seen: number | string = 'not read'
  try {
    await context.until(`lag() is ${expected}`, async () => {
      // A broker that has just started may not respond yet.
      seen = await context.lag().catch(describeError)
      return seen === expected
    })
  } catch (cause) {
    assert.equal(seen, expected, `lag() with ${what}: ${String(seen)}`)
    throw cause
  }
}

export const CONTROLLING: readonly Scenario[] = [
  { name: 'two control planes drain each dead letter once', play: concurrentDrains },
  {
    name: 'lag counts the messages that consumers could handle now',
    play: lagCountsWhatIsDue,
    needs: 'lag',
  },
]
