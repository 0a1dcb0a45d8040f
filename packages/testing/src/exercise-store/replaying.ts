import assert from 'node:assert/strict'
import type { DeadLetterStore, SendAgain, StoredDeadLetter } from '@redrive/runtime'
import { START, sample, samples, comparable } from './samples.ts'
import type { StoreScenario } from './scenario.ts'
import type { StoreScenarioContext } from './stage.ts'

/** A `send` that waits until the scenario ends it. */
class Sending {
  readonly sent: StoredDeadLetter[] = []
  resolve: () => void = () => undefined
  reject: (error: Error) => void = () => undefined

  readonly send: SendAgain = (deadLetter) => {
    this.sent.push(deadLetter)
    return new Promise((resolve, reject) => Object.assign(this, { resolve, reject }))
  }
}

async function forgetsAfterSending(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  const [one, other] = samples(2) as [StoredDeadLetter, StoredDeadLetter]
  for (const each of [one, other]) await store.save(each)
  const sending = new Sending()
  const replaying = store.replay(one.id, sending.send)
  await context.until('it is being sent', () => sending.sent.length === 1)
  assert.deepEqual(
    sending.sent.map(comparable),
    [comparable(one)],
    'what is sent is what was saved',
  )
  await context.holds(store, [one, other])
  sending.resolve()
  assert.equal(await context.within('the replay ends', replaying), true)
  await context.holds(store, [other])
  assert.equal(await store.replay(one.id, sending.send), false, 'there is no such one any more')
}

async function keepsWhatWasNotSent(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  await store.save(sample('a'))
  const error = new Error('still down')
  await assert.rejects(
    store.replay('a', () => Promise.reject(error)),
    (rejected) => rejected === error,
    'the replay rejects with the error of send',
  )
  await context.holds(store, [sample('a')])
  const thrown = new TypeError('thrown synchronously')
  const throwing = () => {
    throw thrown
  }
  await assert.rejects(store.replay('a', throwing), (rejected) => rejected === thrown)
  await context.holds(store, [sample('a')])
  assert.equal(await store.replay('a', () => Promise.resolve()), true, 'it can be tried again')
  await context.holds(store, [])
}

const sendsOnce =
  (others: (context: StoreScenarioContext, store: DeadLetterStore) => Promise<DeadLetterStore>) =>
  async (context: StoreScenarioContext): Promise<void> => {
    const store = await context.store()
    const other = await others(context, store)
    await store.save(sample('a'))
    const sending = new Sending()
    const first = store.replay('a', sending.send)
    await context.until('it is being sent', () => sending.sent.length === 1)
    const second = other.replay('a', sending.send)
    assert.equal(await context.within('the second results', second), false)
    const batch = await other.replayBatch({ limit: 5 }, sending.send)
    assert.deepEqual(batch, { replayed: 0, failed: 0 }, 'a batch leaves it to the first')
    sending.resolve()
    assert.equal(await context.within('the first ends', first), true)
    assert.equal(sending.sent.length, 1, 'it was sent once')
    await context.holds(store, [])
    await context.holds(other, [])
    await raceFor(context, [store, other])
  }

const RACES = 20

/** Starts both replays together, many times; some sends fail. */
async function raceFor(
  context: StoreScenarioContext,
  stores: readonly DeadLetterStore[],
): Promise<void> {
  for (let race = 0; race < RACES; race++) {
    const id = `race ${race}`
    await stores[race % stores.length]?.save(sample(id))
    let sent = 0
    const send = async () => {
      sent += 1
    }
    const results = await Promise.all(stores.map((each) => each.replay(id, send)))
    assert.equal(results.filter((result) => result).length, 1, `${id}: replays that returned true`)
    assert.equal(sent, 1, `${id} was sent once`)
  }
  for (const store of stores) await context.holds(store, [])
}

async function savedAgainWhileSent(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  await store.save(sample('a'))
  const later = sample('a', { savedAt: START + 9, message: 'given up again' })
  assert.equal(await store.replay('a', () => store.save(later)), true)
  await context.holds(store, [later])
}

async function deletedWhileSent(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  await store.save(sample('a'))
  const error = new Error('down')
  const send = async () => {
    assert.equal(await store.delete('a'), true)
    throw error
  }
  await assert.rejects(store.replay('a', send), (rejected) => rejected === error)
  await context.holds(store, [])
}

async function oldestFirst(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  const all = samples(6)
  for (const each of all.toReversed()) await store.save(each)
  const sent: string[] = []
  let inFlight = 0
  const send: SendAgain = async ({ id }) => {
    inFlight += 1
    assert.equal(inFlight, 1, 'sends at a time')
    await nextTurn()
    sent.push(id)
    inFlight -= 1
  }
  assert.deepEqual(await store.replayBatch({ limit: 4 }, send), { replayed: 4, failed: 0 })
  assert.deepEqual(
    sent,
    all.slice(0, 4).map(({ id }) => id),
  )
  await context.holds(store, all.slice(4))
  const filter = { savedAfter: START + 4_000 }
  assert.deepEqual(await store.replayBatch({ filter, limit: 4 }, send), { replayed: 1, failed: 0 })
  await context.holds(store, all.slice(4, 5))
}

async function countsFailures(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  const all = samples(6)
  for (const each of all) await store.save(each)
  const isBad = ({ id }: StoredDeadLetter) => id === all[1]?.id || id === all[4]?.id
  const send: SendAgain = (one) =>
    isBad(one) ? Promise.reject(new Error('no')) : Promise.resolve()
  assert.deepEqual(await store.replayBatch({ limit: 5 }, send), { replayed: 3, failed: 2 })
  await context.holds(store, [all[1], all[4], all[5]] as StoredDeadLetter[])
}

const AT_ONCE = 3

async function concurrentSends(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  for (const each of samples(10)) await store.save(each)
  let inFlight = 0
  let most = 0
  const open: (() => void)[] = []
  const send: SendAgain = async () => {
    inFlight += 1
    most = Math.max(most, inFlight)
    await new Promise<void>((resolve) => open.push(resolve))
    inFlight -= 1
  }
  const replaying = store.replayBatch({ limit: 10, concurrency: AT_ONCE }, send)
  let ended = 0
  while (ended < 10) {
    await context.until('more are being sent', () => open.length > 0)
    // The first sends wait until the maximum is in flight.
    if (ended === 0) await context.until('the maximum is in flight', () => inFlight === AT_ONCE)
    open.shift()?.()
    ended += 1
  }
  const result = await context.within('the batch ends', replaying)
  assert.deepEqual(result, { replayed: 10, failed: 0 })
  assert.equal(most, AT_ONCE, 'maximum of concurrent sends')
  await context.holds(store, [])
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

export const REPLAYING: readonly StoreScenario[] = [
  { name: 'a replay deletes only after send resolved', play: forgetsAfterSending },
  { name: 'a replay whose send rejects keeps the dead letter', play: keepsWhatWasNotSent },
  {
    name: 'two concurrent replays send once',
    play: sendsOnce((_, store) => Promise.resolve(store)),
  },
  {
    name: 'two processes that replay concurrently send once',
    play: sendsOnce((context) => context.store()),
  },
  { name: 'a dead letter that is saved again while it is sent is kept', play: savedAgainWhileSent },
  { name: 'a dead letter that is deleted while it is sent stays deleted', play: deletedWhileSent },
  { name: 'a batch is replayed oldest first, one after the other', play: oldestFirst },
  { name: 'a batch counts and keeps failed dead letters', play: countsFailures },
  { name: 'a batch replays with the given concurrency', play: concurrentSends },
]
