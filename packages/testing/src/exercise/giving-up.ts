import assert from 'node:assert/strict'
import { type FailureCycle, SETTLE } from '@redrive/core'
import type { DrainedBatch, DrainedDeadLetter } from '@redrive/runtime'
import { memoryInbox } from '../memory-inbox.ts'
import { BINARY, deadLetterOf, failedCycle, numbered, text } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { Stage } from './stage.ts'
import type { Tap } from './tap.ts'

const HEADERS = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'ce-source': '/shop/checkout',
  'x-tenant': 'tenant-7',
}

/** Header values in the words the producer used: some clients hand out text as bytes. */
function plainHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const decode = (value: unknown) =>
    value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value)
  return Object.fromEntries(
    Object.keys(HEADERS)
      .filter((name) => name in headers)
      .map((name) => [name, decode(headers[name])]),
  )
}

async function deadLetterKeepsAll(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  const id = await stage.world.send({
    bytes: BINARY,
    headers: HEADERS,
    contentType: 'application/octet-stream',
    type: 'order.placed',
    key: 'order-42',
  })
  const delivery = await tap.next()
  assert.deepEqual(Uint8Array.from(delivery.bytes), BINARY, 'the bytes as they arrive')
  const cycle = failedCycle(10, stage.clock.now())
  assert.equal((await tap.put(delivery, deadLetterOf(cycle))).place, 'dead_letter')
  await stage.places({ backlog: 0, deadLetters: 1 })

  const deadLetter = await stage.drainOne()
  assert.equal(deadLetter.quarantined, false, 'it is with the dead letters, not in quarantine')
  assert.equal(deadLetter.delivery.id, id)
  assert.deepEqual(Uint8Array.from(deadLetter.delivery.bytes), BINARY, 'the bytes as they are kept')
  assert.deepEqual(plainHeaders(deadLetter.delivery.headers), HEADERS)
  assert.equal(deadLetter.delivery.key, 'order-42')
  assert.equal(deadLetter.delivery.contentType, 'application/octet-stream')
  assert.equal(deadLetter.delivery.type, 'order.placed')
  assert.equal(deadLetter.origin, tap.transport.source)
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

/** A failure's message of 200 characters takes six bytes for each on the wire. */
const RECORD_BYTES = 1_200
/** The longest history a policy allows. */
const MOST_RECORDS = 100

async function oversizedHistory(stage: Stage): Promise<void> {
  const { headerBudgetBytes } = stage.capabilities
  const count = Math.min(MOST_RECORDS, Math.ceil(headerBudgetBytes / RECORD_BYTES) + 5)
  const tap = await stage.tap()
  const cycle = failedCycle(count, stage.clock.now(), () => 'ü'.repeat(200))
  await stage.world.send({ bytes: text('{}'), headers: HEADERS })
  const enactment = await tap.put(await tap.next(), deadLetterOf(cycle))
  const { delivery } = await stage.drainOne()
  const isTooLong = headerBudgetBytes < count * RECORD_BYTES
  assert.equal(enactment.truncated > 0, isTooLong, 'the enactment says that something is missing')
  assert.deepEqual(delivery.headerProblems, [])
  assert.deepEqual(
    delivery.cycle.history,
    cycle.history.slice(enactment.truncated),
    'the oldest attempts are missing, as many as it says',
  )
  assert.equal(delivery.cycle.attempts, count, 'the count is not cut')
  assert.deepEqual(plainHeaders(delivery.headers), HEADERS)
}

async function quarantineFreesTheLane(stage: Stage): Promise<void> {
  const ids: string[] = []
  for (let number = 0; number < 4; number++) {
    ids.push(await stage.world.send(numbered(number, 'lane')))
  }
  const handled: string[] = []
  await stage.consume(
    ({ id, body }) => {
      if ((body as { number: number }).number === 1) throw new Error('cannot divide the order')
      handled.push(id)
    },
    { order: stage.capabilities.ordering, poison: { repeats: 2 }, concurrency: 1 },
  )
  await stage.places({ backlog: 0, deadLetters: 1 })
  const others = ids.filter((_, index) => index !== 1)
  if (stage.capabilities.ordering === 'lane') assert.deepEqual(handled, others)
  else assert.deepEqual(new Set(handled), new Set(others))
  const poison = await stage.drainOne()
  assert.equal(poison.delivery.id, ids[1])
  assert.equal(poison.quarantined, true, 'it is in quarantine, not with the dead letters')
  assert.equal(poison.reason, 'same_failure_repeated')
  assert.equal(poison.delivery.cycle.attempts, 2)
}

async function deadLettered(stage: Stage, tap: Tap, count: number): Promise<readonly string[]> {
  const ids: string[] = []
  for (let number = 0; number < count; number++) {
    ids.push(
      await stage.world.send({ ...numbered(number), key: `order-${number}`, headers: HEADERS }),
    )
    await tap.put(await tap.next(), deadLetterOf(failedCycle(2, stage.clock.now())))
  }
  return ids
}

const idsOf = (deadLetters: readonly DrainedDeadLetter[]) =>
  deadLetters.map(({ delivery }) => delivery.id).sort()

async function namesAreStable(stage: Stage): Promise<void> {
  const ids = [...(await deadLettered(stage, await stage.tap(), 2))].sort()
  await stage.places({ backlog: 0, deadLetters: 2 })
  for (const end of ['abandon', 'release'] as const) {
    const drained: DrainedDeadLetter[] = []
    const batches: DrainedBatch[] = []
    await stage.until('both can be drained', async () => {
      const batch = await stage.source().drain({ most: 2 - drained.length })
      drained.push(...batch.deadLetters)
      batches.push(batch)
      return drained.length >= 2
    })
    assert.deepEqual(idsOf(drained), ids, 'the same ids whenever they are drained')
    assert.deepEqual(
      drained.map(({ naming }) => naming),
      ['named', 'named'],
    )
    for (const batch of batches) await batch[end]()
  }
}

async function drainKeepsUntilRelease(stage: Stage): Promise<void> {
  const ids = [...(await deadLettered(stage, await stage.tap(), 3))].sort()
  await stage.places({ backlog: 0, deadLetters: 3 })
  const first = stage.world.source()
  const some = await first.drain({ most: 2 })
  assert.ok(some.deadLetters.length <= 2, 'a batch is no larger than asked for')
  await some.abandon()
  // Drained and never released, as by a control plane that died.
  await collect(stage, first, 3)
  await first.close()
  await stage.places({ backlog: 0, deadLetters: 3 })
  assert.deepEqual(idsOf(await stage.drain(3)), ids)
  await stage.places({ backlog: 0, deadLetters: 0 })
  const rest = await stage.source().drain({ most: 10 })
  assert.deepEqual(rest.deadLetters, [])
  await rest.abandon()
}

async function collect(
  stage: Stage,
  source: ReturnType<Stage['source']>,
  count: number,
): Promise<void> {
  const seen = new Set<string>()
  await stage.until(`${count} dead letters can be drained`, async () => {
    const { deadLetters } = await source.drain({ most: count })
    for (const { delivery } of deadLetters) seen.add(delivery.id)
    return seen.size >= count
  })
}

async function replayIsTheNextCycle(stage: Stage): Promise<void> {
  const tap = await stage.tap()
  const [id] = await deadLettered(stage, tap, 1)
  const batch = await stage.source().drain({ most: 1 })
  const [deadLetter] = batch.deadLetters
  assert.ok(deadLetter !== undefined)
  assert.equal(deadLetter.delivery.id, id)
  const replay = { deadLetter, replayId: 'replay-1' }
  await stage.source().publish(replay)
  const replayed = await tap.next()
  const left = stage.source().replay === 'copy' ? 1 : 0
  assert.equal(
    await stage.source().depth(),
    left,
    'a copy leaves the dead letter until it is released',
  )
  await batch.release()
  assert.equal(replayed.id, id)
  assert.equal(replayed.key, 'order-0')
  assert.equal(replayed.replayId, 'replay-1')
  assert.equal(replayed.source, tap.transport.source)
  assert.deepEqual(Uint8Array.from(replayed.bytes), Uint8Array.from(deadLetter.delivery.bytes))
  assert.deepEqual(plainHeaders(replayed.headers), HEADERS)
  const { number, attempts, history } = replayed.cycle
  assert.deepEqual(
    { number, attempts, history },
    { number: 2, attempts: 0, history: [] },
    'a replay opens the next cycle',
  )
  await tap.put(replayed, SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

async function replayAlreadyHandled(stage: Stage): Promise<void> {
  const message = { ...numbered(1), key: 'order-1' }
  const inbox = memoryInbox()
  let calls = 0
  // Handled under one delivery and given up under another: what a lost acknowledgement leaves behind.
  const tap = await stage.tap({ limit: 1 })
  await stage.world.send(message)
  await tap.put(await tap.next(), deadLetterOf(failedCycle(1, stage.clock.now())))
  await tap.close()
  const handler = () => void calls++
  await stage.consume(handler, { inbox })
  await stage.world.send(message)
  await stage.until('the first one is handled', () => inbox.count === 1)
  await stage.places({ backlog: 0, deadLetters: 1 })
  const deadLetter = await stage.drainOne()
  await stage.source().publish({ deadLetter, replayId: 'replay-1' })
  const isRefused = () =>
    stage.enacted('settle').some(({ decision }) => decision.reason === 'already_handled')
  await stage.until('the replay is settled as already handled', isRefused)
  assert.equal(calls, 1, 'the handler ran once')
  await stage.places({ backlog: 0, deadLetters: 0 })
  const [confirmation] = await stage.confirmed(1)
  assert.equal(confirmation?.replayId, 'replay-1')
  assert.equal(confirmation.outcome, 'already_handled')
}

export const GIVING_UP: readonly Scenario[] = [
  { name: 'a dead letter keeps bytes, headers, key, source and history', play: deadLetterKeepsAll },
  { name: 'oversized history is truncated visibly', play: oversizedHistory },
  {
    name: 'quarantine takes a poison message out of its lane and the lane moves on',
    play: quarantineFreesTheLane,
  },
  { name: 'draining keeps what is not released', play: drainKeepsUntilRelease },
  { name: 'a dead letter keeps its name however often it is drained', play: namesAreStable },
  { name: 'a replay goes back to its origin as the next cycle', play: replayIsTheNextCycle },
  { name: 'a replay already in the inbox settles as already handled', play: replayAlreadyHandled },
]
