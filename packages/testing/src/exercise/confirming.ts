import assert from 'node:assert/strict'
import { type Delivery, SETTLE } from '@redrive/core'
import type { ReplayConfirmation } from '@redrive/runtime'
import { assertNotStored } from './places.ts'
import { memoryInbox } from '../memory-inbox.ts'
import { deadLetterOf, dropOf, failedCycle, numbered, retryIn, text } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { ScenarioContext } from './scenario-context.ts'
import type { RecordingReceiver } from './recording-receiver.ts'

/** The fields that a user changed before the replay. */
type Edit = Partial<Pick<Delivery, 'bytes' | 'key' | 'replaces'>>

/** Drains the only dead letter and publishes it as a replay. */
async function replay(context: ScenarioContext, replayId: string, edit: Edit = {}): Promise<void> {
  const deadLetter = await context.drainOne()
  const delivery = { ...deadLetter.delivery, ...edit }
  await context.source().publish({ deadLetter: { ...deadLetter, delivery }, replayId })
}

/** Sends a message, gives it up and returns its replay. */
async function replayed(
  context: ScenarioContext,
  receiver: RecordingReceiver,
  replayId: string,
): Promise<Delivery> {
  await context.world.send({ ...numbered(1), key: 'order-1' })
  await receiver.put(await receiver.next(), deadLetterOf(failedCycle(1, context.clock.now())))
  await replay(context, replayId)
  return receiver.next()
}

/** An hour: participants have clocks that differ by less. */
const CLOCK_TOLERANCE_MS = 3_600_000

async function confirmedOnce(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  await context.world.send(numbered(0))
  await receiver.put(await receiver.next(), SETTLE)
  const handled = await replayed(context, receiver, 'replay-1')
  await receiver.put(handled, SETTLE)
  // Enacted again, as after a lost result.
  await receiver.enact(handled, SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
  const [confirmation] = await context.confirmed(1)
  assert.deepEqual(
    { replayId: confirmation?.replayId, outcome: confirmation?.outcome },
    { replayId: 'replay-1', outcome: 'handled' },
  )
  const skewMs = Math.abs((confirmation?.at ?? Number.NaN) - context.clock.now())
  assert.ok(skewMs < CLOCK_TOLERANCE_MS, `confirmed ${skewMs} ms from now`)
}

async function droppedIsConfirmed(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  const delivery = await replayed(context, receiver, 'replay-1')
  const cycle = { ...failedCycle(1, context.clock.now()), number: 2 }
  assert.equal((await receiver.put(delivery, dropOf(cycle))).destination, 'dropped')
  await context.places({ backlog: 0, deadLetters: 0 })
  const [confirmation] = await context.confirmed(1)
  assert.equal(confirmation?.replayId, 'replay-1')
  assert.equal(confirmation.outcome, 'dropped')
}

async function keptUntilRelease(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  const ids = ['replay-1', 'replay-2', 'replay-3']
  for (const id of ids) await receiver.put(await replayed(context, receiver, id), SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
  const first = context.world.source()
  const some = await first.confirmations({ limit: 2 })
  assert.ok(some.confirmations.length <= 2, 'a batch is no larger than its limit')
  await some.abandon()
  // Returned and never released, as to a control plane that crashed.
  const seen = new Set<string>()
  await context.until('all are handed out', async () => {
    const { confirmations } = await first.confirmations({ limit: ids.length })
    for (const { replayId } of confirmations) seen.add(replayId)
    return seen.size >= ids.length
  })
  await first.close()
  assert.deepEqual(replayIds(await context.confirmed(ids.length)), ids)
  await context.confirmed(0)
}

const replayIds = (confirmations: readonly ReplayConfirmation[]) =>
  confirmations.map(({ replayId }) => replayId).sort()

async function unstoredKeepsTheReplay(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  await context.world.send(numbered(1))
  await receiver.put(await receiver.next(), deadLetterOf(failedCycle(1, context.clock.now())))
  await receiver.close()
  await replay(context, 'replay-1')
  const refused = await context.receiver({ fault: 'copies_refused' })
  const delivery = await refused.next()
  const enactment = await refused.enact(delivery, SETTLE)
  assertNotStored(enactment, 'a confirmation')
  await context.places({ backlog: 1, deadLetters: 0 })
  await context.world.heal()
  await refused.put(delivery, SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
  await context.confirmed(1)
}

async function crashConfirmsAgain(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  await context.world.send({ ...numbered(1), key: 'order-1' })
  await receiver.put(await receiver.next(), deadLetterOf(failedCycle(1, context.clock.now())))
  await receiver.close()
  await replay(context, 'replay-1')
  const inbox = memoryInbox()
  let effects = 0
  const handler = () => void effects++
  await context.consume(handler, { inbox }, context.transport('dies_halfway'))
  await context.until('the replay takes effect', () => inbox.count === 1)
  await context.consume(handler, { inbox })
  await context.places({ backlog: 0, deadLetters: 0 })
  const { atomicHandOff } = context.capabilities
  const confirmations = await context.confirmed(atomicHandOff ? 1 : 2)
  assert.deepEqual(new Set(replayIds(confirmations)), new Set(['replay-1']))
  // In one step the crash also loses the first confirmation, and the inbox confirms again.
  assert.ok(atomicHandOff || confirmations.some(({ outcome }) => outcome === 'handled'))
  assert.equal(effects, 1, 'effects')
}

async function failedAgainIsNotConfirmed(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  const first = await replayed(context, receiver, 'replay-1')
  const cycle = { ...failedCycle(1, context.clock.now()), number: 2 }
  await receiver.put(first, retryIn(0, cycle, context.clock.now()))
  const retried = await receiver.next()
  assert.equal(retried.replayId, 'replay-1', 'a retry has the id of its replay')
  await receiver.put(retried, deadLetterOf({ ...cycle, attempts: 2 }))
  await context.places({ backlog: 0, deadLetters: 1 })
  await context.confirmed(0)
  const { delivery } = await context.drainOne()
  assert.equal(delivery.cycle.number, 2)
  assert.equal(delivery.replayId, 'replay-1', 'the id of the replay that failed')
}

const EDIT = { bytes: text('{"number":2}'), key: 'order-1/edited', replaces: 'order-1' }

async function editSurvives(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  await context.world.send({ ...numbered(1), key: 'order-1' })
  const plain = await receiver.next()
  assert.equal(plain.replaces, undefined, 'a message that replaces no other')
  await receiver.put(plain, deadLetterOf(failedCycle(1, context.clock.now())))
  await replay(context, 'replay-1', EDIT)
  const edited = await receiver.next()
  assertEdited(edited, plain)
  const cycle = { ...failedCycle(1, context.clock.now()), number: 2 }
  await receiver.put(edited, retryIn(0, cycle, context.clock.now()))
  const retried = await receiver.next()
  assertEdited(retried, plain)
  await receiver.put(retried, deadLetterOf({ ...cycle, attempts: 2 }))
  const deadLetter = await context.drainOne()
  assertEdited(deadLetter.delivery, plain)
  await context.source().publish({ deadLetter, replayId: 'replay-2' })
  const again = await receiver.next()
  assertEdited(again, plain)
  assert.equal(again.replayId, 'replay-2')
  assert.equal(again.cycle.number, 3)
  await receiver.put(again, SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
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
  { name: 'a dropped replay is confirmed as dropped', play: droppedIsConfirmed },
  { name: 'a confirmation is kept until it is released', play: keptUntilRelease },
  { name: 'a confirmation that is not stored keeps the replay', play: unstoredKeepsTheReplay },
  {
    name: 'a crash between confirmation and acknowledge confirms again, without a second effect',
    play: crashConfirmsAgain,
  },
  {
    name: 'a replay that fails again is not confirmed and keeps its replay id',
    play: failedAgainIsNotConfirmed,
  },
  {
    name: 'an edited replay keeps the key it replaces, through retries and dead letters',
    play: editSurvives,
  },
]
