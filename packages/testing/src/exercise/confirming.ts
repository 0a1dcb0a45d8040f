import assert from 'node:assert/strict'
import { type Delivery, SETTLE } from '@redrive/core'
import type { ReplayConfirmation } from '@redrive/runtime'
import { memoryInbox } from '../memory-inbox.ts'
import { deadLetterOf, dropOf, failedCycle, numbered, retryIn, text } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { Stage } from './stage.ts'
import type { Tap } from './tap.ts'

/** What a person changed before the replay. */
type Edit = Partial<Pick<Delivery, 'bytes' | 'key' | 'replaces'>>

/** Takes the one dead letter there is and sends it back. */
async function replay(stage: Stage, replayId: string, edit: Edit = {}): Promise<void> {
  const deadLetter = await stage.drainOne()
  const delivery = { ...deadLetter.delivery, ...edit }
  await stage.source().publish({ deadLetter: { ...deadLetter, delivery }, replayId })
}

/** A message that failed and came back. */
async function replayed(stage: Stage, tap: Tap, replayId: string): Promise<Delivery> {
  await stage.world.send({ ...numbered(1), key: 'order-1' })
  await tap.put(await tap.next(), deadLetterOf(failedCycle(1, stage.clock.now())))
  await replay(stage, replayId)
  return tap.next()
}

/** An hour: a clock that is wrong by more is not the clock of anything that takes part. */
const CLOCK_TOLERANCE_MS = 3_600_000

async function confirmedOnce(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  await stage.world.send(numbered(0))
  await tap.put(await tap.next(), SETTLE)
  const handled = await replayed(stage, tap, 'replay-1')
  await tap.put(handled, SETTLE)
  // Asked again, as after an answer that was lost.
  await tap.enact(handled, SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
  const [confirmation] = await stage.confirmed(1)
  assert.deepEqual(
    { replayId: confirmation?.replayId, outcome: confirmation?.outcome },
    { replayId: 'replay-1', outcome: 'handled' },
  )
  const skewMs = Math.abs((confirmation?.at ?? Number.NaN) - stage.clock.now())
  assert.ok(skewMs < CLOCK_TOLERANCE_MS, `confirmed ${skewMs} ms from now`)
}

async function droppedIsSaid(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  const delivery = await replayed(stage, tap, 'replay-1')
  const cycle = { ...failedCycle(1, stage.clock.now()), number: 2 }
  assert.equal((await tap.put(delivery, dropOf(cycle))).place, 'dropped')
  await stage.places({ backlog: 0, deadLetters: 0 })
  const [confirmation] = await stage.confirmed(1)
  assert.equal(confirmation?.replayId, 'replay-1')
  assert.equal(confirmation.outcome, 'dropped')
}

async function keptUntilRelease(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  const ids = ['replay-1', 'replay-2', 'replay-3']
  for (const id of ids) await tap.put(await replayed(stage, tap, id), SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
  const first = stage.world.source()
  const some = await first.confirmations({ most: 2 })
  assert.ok(some.confirmations.length <= 2, 'a batch is no larger than asked for')
  await some.abandon()
  // Handed out and never released, as to a control plane that died.
  const seen = new Set<string>()
  await stage.until('all are handed out', async () => {
    const { confirmations } = await first.confirmations({ most: ids.length })
    for (const { replayId } of confirmations) seen.add(replayId)
    return seen.size >= ids.length
  })
  await first.close()
  assert.deepEqual(replayIds(await stage.confirmed(ids.length)), ids)
  await stage.confirmed(0)
}

const replayIds = (confirmations: readonly ReplayConfirmation[]) =>
  confirmations.map(({ replayId }) => replayId).sort()

async function unstoredKeepsTheReplay(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  await stage.world.send(numbered(1))
  await tap.put(await tap.next(), deadLetterOf(failedCycle(1, stage.clock.now())))
  await tap.close()
  await replay(stage, 'replay-1')
  const refused = await stage.tap({ fault: 'copies_refused' })
  const delivery = await refused.next()
  const enactment = await refused.enact(delivery, SETTLE)
  assert.equal(
    enactment.kind,
    'unknown',
    'a confirmation that the broker refused is unknown, not done',
  )
  await stage.places({ backlog: 1, deadLetters: 0 })
  await stage.world.heal()
  await refused.put(delivery, SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
  await stage.confirmed(1)
}

async function crashConfirmsAgain(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  await stage.world.send({ ...numbered(1), key: 'order-1' })
  await tap.put(await tap.next(), deadLetterOf(failedCycle(1, stage.clock.now())))
  await tap.close()
  await replay(stage, 'replay-1')
  const inbox = memoryInbox()
  let effects = 0
  const handler = () => void effects++
  await stage.consume(handler, { inbox }, stage.transport('dies_halfway'))
  await stage.until('the replay takes effect', () => inbox.count === 1)
  await stage.consume(handler, { inbox })
  await stage.places({ backlog: 0, deadLetters: 0 })
  const { atomicHandOff } = stage.capabilities
  const confirmations = await stage.confirmed(atomicHandOff ? 1 : 2)
  assert.deepEqual(new Set(replayIds(confirmations)), new Set(['replay-1']))
  // In one step the crash takes the first confirmation with it, and the inbox answers for it.
  assert.ok(atomicHandOff || confirmations.some(({ outcome }) => outcome === 'handled'))
  assert.equal(effects, 1, 'effects')
}

async function failedAgainIsNotConfirmed(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  const first = await replayed(stage, tap, 'replay-1')
  const cycle = { ...failedCycle(1, stage.clock.now()), number: 2 }
  await tap.put(first, retryIn(0, cycle, stage.clock.now()))
  const retried = await tap.next()
  assert.equal(retried.replayId, 'replay-1', 'a retry is still that replay')
  await tap.put(retried, deadLetterOf({ ...cycle, attempts: 2 }))
  await stage.places({ backlog: 0, deadLetters: 1 })
  await stage.confirmed(0)
  const { delivery } = await stage.drainOne()
  assert.equal(delivery.cycle.number, 2)
  assert.equal(delivery.replayId, 'replay-1', 'which replay it was that failed')
}

const EDIT = { bytes: text('{"number":2}'), key: 'order-1/edited', replaces: 'order-1' }

async function editSurvives(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  await stage.world.send({ ...numbered(1), key: 'order-1' })
  const plain = await tap.next()
  assert.equal(plain.replaces, undefined, 'a message that stands in for nobody')
  await tap.put(plain, deadLetterOf(failedCycle(1, stage.clock.now())))
  await replay(stage, 'replay-1', EDIT)
  const edited = await tap.next()
  assertEdited(edited, plain)
  const cycle = { ...failedCycle(1, stage.clock.now()), number: 2 }
  await tap.put(edited, retryIn(0, cycle, stage.clock.now()))
  const retried = await tap.next()
  assertEdited(retried, plain)
  await tap.put(retried, deadLetterOf({ ...cycle, attempts: 2 }))
  const deadLetter = await stage.drainOne()
  assertEdited(deadLetter.delivery, plain)
  await stage.source().publish({ deadLetter, replayId: 'replay-2' })
  const again = await tap.next()
  assertEdited(again, plain)
  assert.equal(again.replayId, 'replay-2')
  assert.equal(again.cycle.number, 3)
  await tap.put(again, SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

function assertEdited({ id, key, replaces, bytes }: Delivery, { id: original }: Delivery): void {
  assert.deepEqual(
    { id, key, replaces, bytes: Uint8Array.from(bytes) },
    { ...EDIT, id: original },
    'as it was edited',
  )
}

export const CONFIRMING: readonly Scenario[] = [
  { name: 'a handled replay is confirmed once, a plain message never', play: confirmedOnce },
  { name: 'a dropped replay is confirmed as dropped', play: droppedIsSaid },
  { name: 'a confirmation is kept until it is released', play: keptUntilRelease },
  { name: 'a confirmation that is not stored keeps the replay', play: unstoredKeepsTheReplay },
  {
    name: 'a crash between confirmation and acknowledge confirms again, without a second effect',
    play: crashConfirmsAgain,
  },
  {
    name: 'a replay that fails again is not confirmed and says which replay it was',
    play: failedAgainIsNotConfirmed,
  },
  {
    name: 'an edited replay says whom it stands in for, through retries and dead letters',
    play: editSurvives,
  },
]
