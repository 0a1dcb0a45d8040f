import assert from 'node:assert/strict'
import { AWKWARD, START, sample, samples, comparable } from './samples.ts'
import type { StoreScenario } from './scenario.ts'
import type { StoreScenarioContext } from './stage.ts'

async function keepsEveryByte(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  for (const [what, deadLetter] of AWKWARD) {
    await store.save(deadLetter)
    const found = await store.get(deadLetter.id)
    assert.ok(found !== undefined, `${what}: it is not there`)
    assert.deepEqual(comparable(found), comparable(deadLetter), what)
  }
  const listed = await context.all(store)
  assert.equal(listed.length, AWKWARD.length)
  for (const [what, deadLetter] of AWKWARD) {
    const found = listed.find(({ id }) => id === deadLetter.id)
    assert.deepEqual(found && comparable(found), comparable(deadLetter), `${what}, in a list`)
  }
}

async function keepsWhatIsAbsent(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  const bare = sample('bare', { reason: 'rate_limited' })
  await store.save({ ...bare, cycle: { ...bare.cycle, attempts: 0, history: [] } })
  const found = await store.get('bare')
  assert.equal(found?.job, undefined)
  assert.equal(found?.event.lane, undefined)
  assert.equal(found?.failure.stack, undefined)
  assert.equal(found?.cycle.remainingMs, 0)
  assert.deepEqual(found?.cycle.history, [])
  assert.equal(found?.reason, 'rate_limited')
}

async function sameIdReplaces(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  await store.save(sample('a', { savedAt: START, sink: 'loki' }))
  await store.save(sample('b', { savedAt: START + 1 }))
  const later = sample('a', { savedAt: START + 2, sink: 'sentry', class: 'schema' })
  await store.save(later)
  await context.holds(store, [sample('b', { savedAt: START + 1 }), later])
  const { byClass, bySink, oldestSavedAt } = await store.stats()
  assert.deepEqual(byClass, { transient: 1, schema: 1 })
  assert.deepEqual({ ...bySink }, { loki: 1, sentry: 1 })
  assert.equal(oldestSavedAt, START + 1)
}

/** Saves with an earlier time: the caller's clock may have been set back. */
async function lastSaveWins(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  await store.save(sample('a', { savedAt: START + 5 }))
  const later = sample('a', { savedAt: START, message: 'the second' })
  await store.save(later)
  await context.holds(store, [later])
}

async function unknownId(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  const ids = ['missing', '', '__proto__', '../..', '*']
  for (const id of ids) {
    assert.equal(await store.get(id), undefined)
    assert.equal(await store.delete(id), false)
    assert.equal(await store.replay(id, neverCalled), false)
  }
  await context.holds(store, [])
}

const neverCalled = () => Promise.reject(new Error('There is nothing to send.'))

async function changedAfterwards(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  const bytes = Uint8Array.of(1, 2, 3)
  const saving = store.save(sample('a', { event: { bytes } }))
  bytes.fill(0)
  await saving
  const found = await store.get('a')
  assert.deepEqual([...(found?.event.bytes ?? [])], [1, 2, 3])
}

async function closedStore(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  await store.save(sample('a'))
  await store.close()
  await store.close()
  const sent = () => Promise.resolve()
  const calls: Readonly<Record<string, () => Promise<unknown>>> = {
    save: () => store.save(sample('b')),
    get: () => store.get('a'),
    list: () => store.list({ limit: 1 }),
    replay: () => store.replay('a', sent),
    replayBatch: () => store.replayBatch({ limit: 1 }, sent),
    delete: () => store.delete('a'),
    stats: () => store.stats(),
    cleanup: () => store.cleanup({ savedBefore: START }),
  }
  for (const [what, call] of Object.entries(calls)) await context.rejects(what, 'DLQ_CLOSED', call)
}

/** Far more than a bounded store of the suite can store. */
const MANY = 10_000

async function fullStore(context: StoreScenarioContext): Promise<void> {
  const store = await context.bounded()
  const kept = []
  for (const deadLetter of samples(MANY)) {
    const isKept = await store.save(deadLetter).then(
      () => true,
      async (error: unknown) => {
        await context.rejects('a full store', 'DLQ_FULL', () => Promise.reject(error as Error))
        return false
      },
    )
    if (!isKept) break
    kept.push(deadLetter)
  }
  assert.ok(kept.length > 0 && kept.length < MANY, `it took ${kept.length}, then no more`)
  await context.holds(store, kept)
  const [first, ...others] = kept
  assert.equal(await store.delete(first?.id ?? ''), true)
  const next = sample(first?.id ?? '', { savedAt: START + MANY * 1_000 })
  await store.save(next)
  await context.holds(store, [...others, next])
}

export const KEEPING: readonly StoreScenario[] = [
  { name: 'a saved dead letter is returned byte for byte', play: keepsEveryByte },
  { name: 'absent fields stay absent', play: keepsWhatIsAbsent },
  { name: 'changes after the call of save are not saved', play: changedAfterwards },
  { name: 'the same id replaces', play: sameIdReplaces },
  { name: 'the last save of an id wins, whatever its time', play: lastSaveWins },
  { name: 'an unknown id is not an error', play: unknownId },
  { name: 'after close every call rejects with DLQ_CLOSED', play: closedStore },
  {
    name: 'a full store rejects with DLQ_FULL and saves again when it has room',
    play: fullStore,
    needs: 'bounded',
  },
]
