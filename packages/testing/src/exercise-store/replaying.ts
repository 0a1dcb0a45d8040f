import assert from 'node:assert/strict'
import type { DeadLetterStore, SendAgain, StoredDeadLetter } from '@redrive/runtime'
import { START, sample, samples, told } from './samples.ts'
import type { StoreScenario } from './scenario.ts'
import type { StoreStage } from './stage.ts'

/** A `send` that waits until it is told how to end. */
class Sending {
  readonly sent: StoredDeadLetter[] = []
  resolve: () => void = () => undefined
  reject: (error: Error) => void = () => undefined

  readonly send: SendAgain = (deadLetter) => {
    this.sent.push(deadLetter)
    return new Promise((resolve, reject) => Object.assign(this, { resolve, reject }))
  }
}

async function forgetsAfterSending(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  const [one, other] = samples(2) as [StoredDeadLetter, StoredDeadLetter]
  for (const each of [one, other]) await store.save(each)
  const sending = new Sending()
  const replaying = store.replay(one.id, sending.send)
  await stage.until('it is being sent', () => sending.sent.length === 1)
  assert.deepEqual(sending.sent.map(told), [told(one)], 'what is sent is what was saved')
  await stage.holds(store, [one, other])
  sending.resolve()
  assert.equal(await stage.within('the replay ends', replaying), true)
  await stage.holds(store, [other])
  assert.equal(await store.replay(one.id, sending.send), false, 'there is no such one any more')
}

async function keepsWhatWasNotSent(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  await store.save(sample('a'))
  const error = new Error('still down')
  await assert.rejects(
    store.replay('a', () => Promise.reject(error)),
    (rejected) => rejected === error,
    'the replay rejects with the error of send',
  )
  await stage.holds(store, [sample('a')])
  const thrown = new TypeError('thrown at once')
  const throwing = () => {
    throw thrown
  }
  await assert.rejects(store.replay('a', throwing), (rejected) => rejected === thrown)
  await stage.holds(store, [sample('a')])
  assert.equal(await store.replay('a', () => Promise.resolve()), true, 'it can be tried again')
  await stage.holds(store, [])
}

const sendsOnce =
  (others: (stage: StoreStage, store: DeadLetterStore) => Promise<DeadLetterStore>) =>
  async (stage: StoreStage): Promise<void> => {
    const store = await stage.store()
    const other = await others(stage, store)
    await store.save(sample('a'))
    const sending = new Sending()
    const first = store.replay('a', sending.send)
    await stage.until('it is being sent', () => sending.sent.length === 1)
    const second = other.replay('a', sending.send)
    assert.equal(await stage.within('the second answers', second), false)
    const batch = await other.replayBatch({ most: 5 }, sending.send)
    assert.deepEqual(batch, { replayed: 0, failed: 0 }, 'a batch leaves it to the first')
    sending.resolve()
    assert.equal(await stage.within('the first ends', first), true)
    assert.equal(sending.sent.length, 1, 'it was sent once')
    await stage.holds(store, [])
    await stage.holds(other, [])
    await raceFor(stage, [store, other])
  }

const RACES = 20

/** Both begin at once, many times; one of them also fails now and then. */
async function raceFor(stage: StoreStage, stores: readonly DeadLetterStore[]): Promise<void> {
  for (let race = 0; race < RACES; race++) {
    const id = `race ${race}`
    await stores[race % stores.length]?.save(sample(id))
    let sent = 0
    const send = async () => {
      sent += 1
    }
    const answers = await Promise.all(stores.map((each) => each.replay(id, send)))
    assert.equal(answers.filter((answer) => answer).length, 1, `${id}: who sent it`)
    assert.equal(sent, 1, `${id} was sent once`)
  }
  for (const store of stores) await stage.holds(store, [])
}

async function savedAgainWhileSent(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  await store.save(sample('a'))
  const later = sample('a', { savedAt: START + 9, message: 'given up again' })
  assert.equal(await store.replay('a', () => store.save(later)), true)
  await stage.holds(store, [later])
}

async function deletedWhileSent(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  await store.save(sample('a'))
  const error = new Error('down')
  const send = async () => {
    assert.equal(await store.delete('a'), true)
    throw error
  }
  await assert.rejects(store.replay('a', send), (rejected) => rejected === error)
  await stage.holds(store, [])
}

async function oldestFirst(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  const all = samples(6)
  for (const each of all.toReversed()) await store.save(each)
  const sent: string[] = []
  let inHand = 0
  const send: SendAgain = async ({ id }) => {
    inHand += 1
    assert.equal(inHand, 1, 'one after the other')
    await nextTurn()
    sent.push(id)
    inHand -= 1
  }
  assert.deepEqual(await store.replayBatch({ most: 4 }, send), { replayed: 4, failed: 0 })
  assert.deepEqual(
    sent,
    all.slice(0, 4).map(({ id }) => id),
  )
  await stage.holds(store, all.slice(4))
  const filter = { savedAfter: START + 4_000 }
  assert.deepEqual(await store.replayBatch({ filter, most: 4 }, send), { replayed: 1, failed: 0 })
  await stage.holds(store, all.slice(4, 5))
}

async function countsFailures(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  const all = samples(6)
  for (const each of all) await store.save(each)
  const isBad = ({ id }: StoredDeadLetter) => id === all[1]?.id || id === all[4]?.id
  const send: SendAgain = (one) =>
    isBad(one) ? Promise.reject(new Error('no')) : Promise.resolve()
  assert.deepEqual(await store.replayBatch({ most: 5 }, send), { replayed: 3, failed: 2 })
  await stage.holds(store, [all[1], all[4], all[5]] as StoredDeadLetter[])
}

const AT_ONCE = 3

async function severalAtOnce(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  for (const each of samples(10)) await store.save(each)
  let inHand = 0
  let most = 0
  const open: (() => void)[] = []
  const send: SendAgain = async () => {
    inHand += 1
    most = Math.max(most, inHand)
    await new Promise<void>((resolve) => open.push(resolve))
    inHand -= 1
  }
  const replaying = store.replayBatch({ most: 10, atOnce: AT_ONCE }, send)
  let ended = 0
  while (ended < 10) {
    await stage.until('more are being sent', () => open.length > 0)
    // The first ones wait until as many are on their way as may be.
    if (ended === 0) await stage.until('as many as may be', () => inHand === AT_ONCE)
    open.shift()?.()
    ended += 1
  }
  const answer = await stage.within('the batch ends', replaying)
  assert.deepEqual(answer, { replayed: 10, failed: 0 })
  assert.equal(most, AT_ONCE, 'so many at once and no more')
  await stage.holds(store, [])
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

export const REPLAYING: readonly StoreScenario[] = [
  { name: 'a replay forgets only after send resolved', play: forgetsAfterSending },
  { name: 'a replay whose send rejects keeps the dead letter', play: keepsWhatWasNotSent },
  {
    name: 'two replays at once send once',
    play: sendsOnce((_, store) => Promise.resolve(store)),
  },
  {
    name: 'two processes that replay at once send once',
    play: sendsOnce((stage) => stage.store()),
  },
  { name: 'what is saved again while it is sent is kept', play: savedAgainWhileSent },
  { name: 'what is deleted while it is sent stays deleted', play: deletedWhileSent },
  { name: 'a batch is replayed oldest first, one after the other', play: oldestFirst },
  { name: 'a batch counts and keeps what failed', play: countsFailures },
  { name: 'a batch replays so many at once', play: severalAtOnce },
]
