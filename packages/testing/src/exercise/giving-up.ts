import assert from 'node:assert/strict'
import { type FailureCycle, SETTLE } from '@redrive/core'
import type { DrainedBatch, DrainedDeadLetter } from '@redrive/runtime'
import { memoryInbox } from '../memory-inbox.ts'
import { BINARY, deadLetterOf, failedCycle, numbered, text } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { ScenarioContext } from './scenario-context.ts'
import type { RecordingReceiver } from './recording-receiver.ts'

const HEADERS = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'ce-source': '/shop/checkout',
  'x-tenant': 'tenant-7',
}

/** Returns header values as the producer's text: some clients return text as bytes. */
function plainHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const decode = (value: unknown) =>
    value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value)
  return Object.fromEntries(
    Object.keys(HEADERS)
      .filter((name) => name in headers)
      .map((name) => [name, decode(headers[name])]),
  )
}

async function deadLetterKeepsAll(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  const id = await context.world.send({
    bytes: BINARY,
    headers: HEADERS,
    contentType: 'application/octet-stream',
    type: 'order.placed',
    key: 'order-42',
  })
  const delivery = await receiver.next()
  assert.deepEqual(Uint8Array.from(delivery.bytes), BINARY, 'the bytes as they arrive')
  const cycle = failedCycle(10, context.clock.now())
  assert.equal((await receiver.put(delivery, deadLetterOf(cycle))).destination, 'dead_letter')
  await context.places({ backlog: 0, deadLetters: 1 })

  const deadLetter = await context.drainOne()
  assert.equal(deadLetter.quarantined, false, 'it is with the dead letters, not in quarantine')
  assert.equal(deadLetter.delivery.id, id)
  assert.deepEqual(Uint8Array.from(deadLetter.delivery.bytes), BINARY, 'the bytes as they are kept')
  assert.deepEqual(plainHeaders(deadLetter.delivery.headers), HEADERS)
  assert.equal(deadLetter.delivery.key, 'order-42')
  assert.equal(deadLetter.delivery.contentType, 'application/octet-stream')
  assert.equal(deadLetter.delivery.type, 'order.placed')
  assert.equal(deadLetter.origin, receiver.transport.source)
  assert.equal(deadLetter.reason, 'attempts_exhausted')
  assert.equal(deadLetter.class, 'unknown')
  assert.deepEqual(deadLetter.delivery.headerProblems, [])
  assertCycle(deadLetter.delivery.cycle, cycle)
}

function assertCycle(actual: FailureCycle, expected: FailureCycle): void {
  assert.deepEqual(actual.history, expected.history, 'the whole history')
  const { attempts, firstFailedAt, number } = expected
  assert.deepEqual(
    { attempts: actual.attempts, firstFailedAt: actual.firstFailedAt, number: actual.number },
    { attempts, firstFailedAt, number },
  )
}

/** A failure message of 200 characters takes six bytes per character in the headers. */
const RECORD_BYTES = 1_200
/** The longest history a policy allows. */
const MAX_RECORDS = 100

async function oversizedHistory(context: ScenarioContext): Promise<void> {
  const { headerBudgetBytes } = context.capabilities
  const count = Math.min(MAX_RECORDS, Math.ceil(headerBudgetBytes / RECORD_BYTES) + 5)
  const receiver = await context.receiver()
  const cycle = failedCycle(count, context.clock.now(), () => 'ü'.repeat(200))
  await context.world.send({ bytes: text('{}'), headers: HEADERS })
  const enactment = await receiver.put(await receiver.next(), deadLetterOf(cycle))
  const { delivery } = await context.drainOne()
  const isTooLong = headerBudgetBytes < count * RECORD_BYTES
  assert.equal(
    enactment.truncated > 0,
    isTooLong,
    'the enactment reports that attempts are missing',
  )
  assert.deepEqual(delivery.headerProblems, [])
  assert.deepEqual(
    delivery.cycle.history,
    cycle.history.slice(enactment.truncated),
    'the oldest attempts are missing, as many as reported',
  )
  assert.equal(delivery.cycle.attempts, count, 'the count is not cut')
  assert.deepEqual(plainHeaders(delivery.headers), HEADERS)
}

async function quarantineFreesTheLane(context: ScenarioContext): Promise<void> {
  const ids: string[] = []
  for (let number = 0; number < 4; number++) {
    ids.push(await context.world.send(numbered(number, 'lane')))
  }
  const handled: string[] = []
  await context.consume(
    ({ id, body }) => {
      if ((body as { number: number }).number === 1) throw new Error('cannot divide the order')
      handled.push(id)
    },
    { order: context.capabilities.ordering, poison: { repeats: 2 }, concurrency: 1 },
  )
  await context.places({ backlog: 0, deadLetters: 1 })
  const others = ids.filter((_, index) => index !== 1)
  if (context.capabilities.ordering === 'lane') assert.deepEqual(handled, others)
  else assert.deepEqual(new Set(handled), new Set(others))
  const poison = await context.drainOne()
  assert.equal(poison.delivery.id, ids[1])
  assert.equal(poison.quarantined, true, 'it is in quarantine, not with the dead letters')
  assert.equal(poison.reason, 'same_failure_repeated')
  assert.equal(poison.delivery.cycle.attempts, 2)
}

async function deadLettered(
  context: ScenarioContext,
  receiver: RecordingReceiver,
  count: number,
): Promise<readonly string[]> {
  const ids: string[] = []
  for (let number = 0; number < count; number++) {
    ids.push(
      await context.world.send({ ...numbered(number), key: `order-${number}`, headers: HEADERS }),
    )
    await receiver.put(await receiver.next(), deadLetterOf(failedCycle(2, context.clock.now())))
  }
  return ids
}

const idsOf = (deadLetters: readonly DrainedDeadLetter[]) =>
  deadLetters.map(({ delivery }) => delivery.id).sort()

async function namesAreStable(context: ScenarioContext): Promise<void> {
  const ids = [...(await deadLettered(context, await context.receiver(), 2))].sort()
  await context.places({ backlog: 0, deadLetters: 2 })
  for (const end of ['abandon', 'release'] as const) {
    const drained: DrainedDeadLetter[] = []
    const batches: DrainedBatch[] = []
    await context.until('both can be drained', async () => {
      const batch = await context.source().drain({ limit: 2 - drained.length })
      drained.push(...batch.deadLetters)
      batches.push(batch)
      return drained.length >= 2
    })
    assert.deepEqual(idsOf(drained), ids, 'the same ids on every drain')
    assert.deepEqual(
      drained.map(({ identity }) => identity),
      ['stable', 'stable'],
    )
    for (const batch of batches) await batch[end]()
  }
}

async function drainKeepsUntilRelease(context: ScenarioContext): Promise<void> {
  const ids = [...(await deadLettered(context, await context.receiver(), 3))].sort()
  await context.places({ backlog: 0, deadLetters: 3 })
  const first = context.world.source()
  const some = await first.drain({ limit: 2 })
  assert.ok(some.deadLetters.length <= 2, 'a batch is no larger than its limit')
  await some.abandon()
  // Drained and never released, as by a control plane that crashed.
  await collect(context, first, 3)
  await first.close()
  await context.places({ backlog: 0, deadLetters: 3 })
  assert.deepEqual(idsOf(await context.drain(3)), ids)
  await context.places({ backlog: 0, deadLetters: 0 })
  const rest = await context.source().drain({ limit: 10 })
  assert.deepEqual(rest.deadLetters, [])
  await rest.abandon()
}

async function collect(
  context: ScenarioContext,
  source: ReturnType<ScenarioContext['source']>,
  count: number,
): Promise<void> {
  const seen = new Set<string>()
  await context.until(`${count} dead letters can be drained`, async () => {
    const { deadLetters } = await source.drain({ limit: count })
    for (const { delivery } of deadLetters) seen.add(delivery.id)
    return seen.size >= count
  })
}

async function replayIsTheNextCycle(context: ScenarioContext): Promise<void> {
  const receiver = await context.receiver()
  const [id] = await deadLettered(context, receiver, 1)
  const batch = await context.source().drain({ limit: 1 })
  const [deadLetter] = batch.deadLetters
  assert.ok(deadLetter !== undefined)
  assert.equal(deadLetter.delivery.id, id)
  const replay = { deadLetter, replayId: 'replay-1' }
  await context.source().publish(replay)
  const replayed = await receiver.next()
  const left = context.source().replay === 'copy' ? 1 : 0
  assert.equal(
    await context.source().depth(),
    left,
    'a copy leaves the dead letter until it is released',
  )
  await batch.release()
  assert.equal(replayed.id, id)
  assert.equal(replayed.key, 'order-0')
  assert.equal(replayed.replayId, 'replay-1')
  assert.equal(replayed.source, receiver.transport.source)
  assert.deepEqual(Uint8Array.from(replayed.bytes), Uint8Array.from(deadLetter.delivery.bytes))
  assert.deepEqual(plainHeaders(replayed.headers), HEADERS)
  const { number, attempts, history } = replayed.cycle
  assert.deepEqual(
    { number, attempts, history },
    { number: 2, attempts: 0, history: [] },
    'a replay opens the next cycle',
  )
  await receiver.put(replayed, SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
}

async function replayAlreadyHandled(context: ScenarioContext): Promise<void> {
  const message = { ...numbered(1), key: 'order-1' }
  const inbox = memoryInbox()
  let calls = 0
  // Handled in one delivery and given up in another: the state after a lost acknowledgement.
  const receiver = await context.receiver({ limit: 1 })
  await context.world.send(message)
  await receiver.put(await receiver.next(), deadLetterOf(failedCycle(1, context.clock.now())))
  await receiver.close()
  const handler = () => void calls++
  await context.consume(handler, { inbox })
  await context.world.send(message)
  await context.until('the first one is handled', () => inbox.count === 1)
  await context.places({ backlog: 0, deadLetters: 1 })
  const deadLetter = await context.drainOne()
  await context.source().publish({ deadLetter, replayId: 'replay-1' })
  const isRefused = () =>
    context.enacted('settle').some(({ decision }) => decision.reason === 'already_handled')
  await context.until('the replay is settled as already handled', isRefused)
  assert.equal(calls, 1, 'the handler ran once')
  await context.places({ backlog: 0, deadLetters: 0 })
  const [confirmation] = await context.confirmed(1)
  assert.equal(confirmation?.replayId, 'replay-1')
  assert.equal(confirmation.outcome, 'already_handled')
}

export const GIVING_UP: readonly Scenario[] = [
  { name: 'a dead letter keeps bytes, headers, key, source and history', play: deadLetterKeepsAll },
  { name: 'an oversized history is truncated and reported', play: oversizedHistory },
  {
    name: 'quarantine removes a poison message from its lane and the lane continues',
    play: quarantineFreesTheLane,
  },
  { name: 'draining keeps dead letters that are not released', play: drainKeepsUntilRelease },
  { name: 'a dead letter keeps its id on every drain', play: namesAreStable },
  { name: 'a replay goes back to its origin as the next cycle', play: replayIsTheNextCycle },
  { name: 'a replay already in the inbox settles as already handled', play: replayAlreadyHandled },
]
