import assert from 'node:assert/strict'
import { isRedriveError, SETTLE } from '@redrive/core'
import type { DeadLetterSource, DrainedBatch } from '@redrive/runtime'
import { describeError } from './describe-error.ts'
import { deadLetterOf, failedCycle, numbered, retryIn } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { Stage } from './stage.ts'
import type { Tap } from './tap.ts'

/** Gives up that many messages and returns their ids. */
async function giveUp(stage: Stage, tap: Tap, count: number): Promise<ReadonlySet<string>> {
  const ids = new Set<string>()
  for (let number = 0; number < count; number++) {
    ids.add(await stage.world.send(numbered(number)))
    await tap.put(await tap.next(), deadLetterOf(failedCycle(1, stage.clock.now())))
  }
  return ids
}

/** 6 dead letters, 2 in a batch: two control planes meet several times. */
const DEAD_LETTERS = 6
const BATCH = 2

async function concurrentDrains(stage: Stage): Promise<void> {
  const ids = await giveUp(stage, await stage.tap(), DEAD_LETTERS)
  await stage.places({ backlog: 0, deadLetters: DEAD_LETTERS })
  const planes = [stage.controlPlane(), stage.controlPlane()]
  const drained = new Set<string>()
  const released: string[] = []
  await stage.until('two control planes drain every dead letter', async () => {
    for (const id of await drainTogether(planes, drained)) {
      assert.ok(!released.includes(id), `dead letter ${id} is released by two control planes`)
      released.push(id)
    }
    return (await stage.source().depth()) === 0
  })
  assert.deepEqual(drained, ids, 'dead letters that two control planes drained')
}

/** Drains a batch with each control plane at the same time. Returns what they released, twice if both did. */
async function drainTogether(
  planes: readonly DeadLetterSource[],
  drained: Set<string>,
): Promise<readonly string[]> {
  const batches = await Promise.all(planes.map((plane) => plane.drain({ most: BATCH })))
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

async function lagCountsWhatIsDue(stage: Stage): Promise<void> {
  for (let number = 0; number < 3; number++) await stage.world.send(numbered(number))
  await lagIs(stage, 3, 'messages without a consumer')
  const tap = await stage.tap()
  const now = stage.clock.now()
  const canDelay = stage.capabilities.delay.kind !== 'none'
  const delayed = retryIn(LATER_MS, failedCycle(1, now), now)
  await tap.put(await tap.next(), canDelay ? delayed : SETTLE)
  await tap.put(await tap.next(), deadLetterOf(failedCycle(1, now)))
  await tap.put(await tap.next(), SETTLE)
  await stage.places({ backlog: canDelay ? 1 : 0, deadLetters: 1 })
  await lagIs(stage, 0, 'a delayed retry and a dead letter')
}

async function lagIs(stage: Stage, expected: number, what: string): Promise<void> {
  let seen: number | string = 'not read'
  try {
    await stage.until(`lag() is ${expected}`, async () => {
      // A broker that has just started may not answer yet.
      seen = await stage.lag().catch(describeError)
      return seen === expected
    })
  } catch (cause) {
    assert.equal(seen, expected, `lag() with ${what}: ${String(seen)}`)
    throw cause
  }
}

export const CONTROLLING: readonly Scenario[] = [
  { name: 'two control planes drain each dead letter once', play: concurrentDrains },
  { name: 'lag counts what consumers could handle now', play: lagCountsWhatIsDue, needs: 'lag' },
]
