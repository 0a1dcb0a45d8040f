import assert from 'node:assert/strict'
import { type Decision, type Delivery, isRedriveError, SETTLE } from '@redrive/core'
import { isUnfinished } from '@redrive/runtime/internal'
import { deadLetterOf, failedCycle, numbered, retryIn } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { ScenarioContext } from './scenario-context.ts'
import type { RecordingReceiver } from './recording-receiver.ts'

/** 3 leases: a lease that is renewed only once ends within them. */
const LEASES = 3

async function longHandlerKeepsItsMessage(context: ScenarioContext): Promise<void> {
  const { lease } = context.having('lease')
  const owner = await context.receiver({ transport: lease.transport() })
  await context.world.send(numbered(1))
  const delivery = await owner.next()
  const rival = await context.receiver({ transport: lease.transport() })
  await context.pass(lease.ms * LEASES)
  const again = owner.deliveries.length - 1 + rival.deliveries.length
  assert.equal(
    again,
    0,
    `second deliveries while the owner lives: the lease of ${lease.ms} ms ended`,
  )
  assert.deepEqual(owner.losses, [], 'deliveries reported as lost while the owner lives')
  await owner.put(delivery, SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
}

/** A message whose owner was replaced: the stale delivery, and the current one. */
interface StolenMessage {
  readonly owner: RecordingReceiver
  readonly stale: Delivery
  readonly holder: RecordingReceiver
  readonly current: Delivery
}

async function stolen(context: ScenarioContext): Promise<StolenMessage> {
  const world = context.having('stealOwnership')
  const owner = await context.receiver()
  const id = await world.send(numbered(1))
  const stale = await owner.next()
  const rival = await context.receiver()
  await context.within('the broker takes the message back', world.stealOwnership(owner.transport))
  await context.until('the broker delivers the message to its next owner', () => {
    return owner.deliveries.length + rival.deliveries.length > 1
  })
  const holder = rival.deliveries.length > 0 ? rival : owner
  const current = holder.deliveries.at(-1) as Delivery
  assert.equal(current.id, id)
  return { owner, stale, holder, current }
}

async function staleOwnerChangesNothing(context: ScenarioContext): Promise<void> {
  const { owner, stale, holder, current } = await stolen(context)
  for (const decision of [SETTLE, deadLetterOf(failedCycle(1, context.clock.now()))]) {
    const { kind } = await owner.enact(stale, decision)
    assert.equal(kind, 'lost', `a stale owner's ${decision.kind} returns lost`)
    await context.places({ backlog: 1, deadLetters: 0 })
  }
  await holder.put(current, SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
}

async function lossIsReported(context: ScenarioContext): Promise<void> {
  const { owner, stale, holder, current } = await stolen(context)
  await context.until(
    'receiver.lost() is called for the delivery that the broker took back',
    () => {
      return owner.losses.includes(stale)
    },
  )
  await context.quiet()
  assert.deepEqual(owner.losses, [stale], 'deliveries reported as lost, each once')
  await holder.put(current, SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
}

/** The signal of a lost run fires. Only the next owner retries or settles the message. */
async function lostRunEnds(context: ScenarioContext): Promise<void> {
  const world = context.having('stealOwnership')
  const transport = context.transport()
  const signals: AbortSignal[] = []
  const handler = (_: unknown, { signal }: { readonly signal: AbortSignal }) =>
    new Promise<void>((resolve, reject) => {
      signals.push(signal)
      if (signals.length > 1) resolve()
      else signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
  await context.consume(handler, {}, transport)
  await world.send(numbered(1))
  await context.until('the handler runs', () => signals.length === 1)
  await context.within('the broker takes the message back', world.stealOwnership(transport))
  await context.until('the signal of the handler fires', () => signals[0]?.aborted === true)
  assert.ok(isRedriveError(signals[0]?.reason, 'DELIVERY_LOST'), 'the reason is DELIVERY_LOST')
  await context.until('the next owner runs the message', () => signals.length > 1)
  await context.places({ backlog: 0, deadLetters: 0 })
  await context.quiet()
  assert.equal(signals.length, 2, 'runs: one of each owner')
  const failed = context.events.filter(({ type }) => type === 'attempt_failed')
  assert.deepEqual(failed, [], 'the lost run counts as no failure')
}

/** 6 messages, 2 in flight: each settlement starts a read, and the pause comes during it. */
const MESSAGES = 6
const IN_FLIGHT = 2
const ROUNDS = 4

async function pauseWaitsForTheRead(context: ScenarioContext): Promise<void> {
  for (let number = 0; number < MESSAGES; number++) await context.world.send(numbered(number))
  const receiver = await context.receiver({ limit: IN_FLIGHT })
  for (let round = 0; round < ROUNDS; round++) {
    const settling = receiver.transport.enact(await receiver.next(), SETTLE)
    // Half of the rounds pause before the settlement has ended, half right after it.
    if (round % 2 === 0) await context.within('settle is enacted', settling)
    await context.within('the transport pauses', receiver.transport.pause())
    const before = receiver.deliveries.length
    await context.within('settle is enacted', settling)
    await context.quiet()
    assert.equal(
      receiver.deliveries.length,
      before,
      'deliveries after pause() resolved: it did not wait for the read',
    )
    receiver.transport.resume()
  }
  for (let left = MESSAGES - ROUNDS; left > 0; left--)
    await receiver.put(await receiver.next(), SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
}

/** 8 tries, 25 s in all: a transport may have to connect again first. */
const MAX_TRIES = 8
const WAIT_MS = 100

async function lostResponse(context: ScenarioContext): Promise<void> {
  const world = context.having('dropResponse')
  const now = context.clock.now()
  const receiver = await context.receiver()
  const enactWithLoss = async (decision: Decision) => {
    const id = await world.send(numbered(1))
    const delivery = await receiver.next()
    await world.dropResponse(receiver.transport)
    return {
      id,
      most: copiesOf(context, await enactUntilKnown(context, receiver, delivery, decision)),
    }
  }
  const dead = await enactWithLoss(deadLetterOf(failedCycle(1, now)))
  await backlogIs(context, 0)
  const copies = await context.source().depth()
  assert.ok(copies >= 1, 'the dead letter is stored before the original is released')
  assert.ok(copies <= dead.most, `${copies} dead letters of one message, at most ${dead.most}`)
  for (const { delivery } of await context.drain(copies)) assert.equal(delivery.id, dead.id)

  const retried = await enactWithLoss(retryIn(0, failedCycle(1, now), now))
  await settleCopies(context, receiver, retried)
  await context.places({ backlog: 0, deadLetters: 0 })
}

async function settleCopies(
  context: ScenarioContext,
  receiver: RecordingReceiver,
  { id, most }: { readonly id: string; readonly most: number },
): Promise<void> {
  let copies = 0
  do {
    const delivery = await receiver.next()
    assert.equal(delivery.id, id)
    copies += 1
    assert.ok(copies <= most, `${copies} retries of one message, at most ${most}`)
    await receiver.put(delivery, SETTLE)
    await context.quiet()
  } while ((await context.world.backlog()) > 0)
}

/** Enacts again while the result is unknown or refused, with growing waits, as the runtime does. Returns the number of tries. */
async function enactUntilKnown(
  context: ScenarioContext,
  receiver: RecordingReceiver,
  delivery: Delivery,
  decision: Decision,
): Promise<number> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const enactment = await receiver.enact(delivery, decision)
    if (!isUnfinished(enactment)) return tries
    await context.pass(WAIT_MS * 2 ** (tries - 1))
  }
  assert.fail(`${decision.kind} is not done after ${MAX_TRIES} tries`)
}

/** Returns one where copy and release are one step; otherwise each unknown try may leave a copy. */
const copiesOf = ({ capabilities }: ScenarioContext, tries: number) =>
  capabilities.atomicHandOff ? 1 : tries

async function backlogIs(context: ScenarioContext, expected: number): Promise<void> {
  await context.until(`the backlog is ${expected}`, async () => {
    return (await context.world.backlog()) === expected
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
  {
    name: 'the signal of a handler fires when the broker takes its delivery back, and only the next owner settles it',
    play: lostRunEnds,
    needs: 'stealOwnership',
  },
  { name: 'a pause waits for the read in progress', play: pauseWaitsForTheRead },
  {
    name: 'a hand-off whose response is lost is repeated without more copies than declared',
    play: lostResponse,
    needs: 'dropResponse',
  },
]
