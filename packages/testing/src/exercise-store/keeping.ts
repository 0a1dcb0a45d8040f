import assert from 'node:assert/strict'
import { AWKWARD, START, sample, samples, told } from './samples.ts'
import type { StoreScenario } from './scenario.ts'
import type { StoreStage } from './stage.ts'

async function keepsEveryByte(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  for (const [what, deadLetter] of AWKWARD) {
    await store.save(deadLetter)
    const found = await store.get(deadLetter.id)
    assert.ok(found !== undefined, `${what}: it is not there`)
    assert.deepEqual(told(found), told(deadLetter), what)
  }
  const listed = await stage.all(store)
  assert.equal(listed.length, AWKWARD.length)
  for (const [what, deadLetter] of AWKWARD) {
    const found = listed.find(({ id }) => id === deadLetter.id)
    assert.deepEqual(found && told(found), told(deadLetter), `${what}, in a list`)
  }
}

async function keepsWhatIsAbsent(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  const bare = sample('bare', { reason: 'rate_limited' })
  await store.save({ ...bare, cycle: { ...bare.cycle, attempts: 0, history: [] } })
  const found = await store.get('bare')
  assert.equal(found?.job, undefined)
  assert.equal(found?.event.lane, undefined)
  assert.equal(found?.failure.stack, undefined)
  assert.equal(found?.cycle.notBefore, undefined)
  assert.deepEqual(found?.cycle.history, [])
  assert.equal(found?.reason, 'rate_limited')
}

async function sameIdReplaces(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  await store.save(sample('a', { savedAt: START, sink: 'loki' }))
  await store.save(sample('b', { savedAt: START + 1 }))
  const later = sample('a', { savedAt: START + 2, sink: 'sentry', class: 'schema' })
  await store.save(later)
  await stage.holds(store, [sample('b', { savedAt: START + 1 }), later])
  const { byClass, bySink, oldestSavedAt } = await store.stats()
  assert.deepEqual(byClass, { transient: 1, schema: 1 })
  assert.deepEqual({ ...bySink }, { loki: 1, sentry: 1 })
  assert.equal(oldestSavedAt, START + 1)
}

/** The clock of whoever saves may have been set back. */
async function lastSaveWins(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  await store.save(sample('a', { savedAt: START + 5 }))
  const later = sample('a', { savedAt: START, message: 'the second' })
  await store.save(later)
  await stage.holds(store, [later])
}

async function unknownId(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  const ids = ['missing', '', '__proto__', '../..', '*']
  for (const id of ids) {
    assert.equal(await store.get(id), undefined)
    assert.equal(await store.delete(id), false)
    assert.equal(await store.replay(id, neverCalled), false)
  }
  await stage.holds(store, [])
}

const neverCalled = () => Promise.reject(new Error('There is nothing to send.'))

async function changedAfterwards(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  const bytes = Uint8Array.of(1, 2, 3)
  const saving = store.save(sample('a', { event: { bytes } }))
  bytes.fill(0)
  await saving
  const found = await store.get('a')
  assert.deepEqual([...(found?.event.bytes ?? [])], [1, 2, 3])
}

async function closedStore(stage: StoreStage): Promise<void> {
  const store = await stage.store()
  await store.save(sample('a'))
  await store.close()
  await store.close()
  const sent = () => Promise.resolve()
  const calls: Readonly<Record<string, () => Promise<unknown>>> = {
    save: () => store.save(sample('b')),
    get: () => store.get('a'),
    list: () => store.list({ most: 1 }),
    replay: () => store.replay('a', sent),
    replayBatch: () => store.replayBatch({ most: 1 }, sent),
    delete: () => store.delete('a'),
    stats: () => store.stats(),
    cleanup: () => store.cleanup({ savedBefore: START }),
  }
  for (const [what, call] of Object.entries(calls)) await stage.rejects(what, 'DLQ_CLOSED', call)
}

/** Far more than a bounded store of the suite has room for. */
const MANY = 10_000

async function fullStore(stage: StoreStage): Promise<void> {
  const store = await stage.bounded()
  const kept = []
  for (const deadLetter of samples(MANY)) {
    const isKept = await store.save(deadLetter).then(
      () => true,
      async (error: unknown) => {
        await stage.rejects('a full store', 'DLQ_FULL', () => Promise.reject(error as Error))
        return false
      },
    )
    if (!isKept) break
    kept.push(deadLetter)
  }
  assert.ok(kept.length > 0 && kept.length < MANY, `it took ${kept.length}, then no more`)
  await stage.holds(store, kept)
  const [first, ...others] = kept
  assert.equal(await store.delete(first?.id ?? ''), true)
  const next = sample(first?.id ?? '', { savedAt: START + MANY * 1_000 })
  await store.save(next)
  await stage.holds(store, [...others, next])
}

export const KEEPING: readonly StoreScenario[] = [
  { name: 'what is saved comes back byte for byte', play: keepsEveryByte },
  { name: 'what is absent stays absent', play: keepsWhatIsAbsent },
  { name: 'what changes after save was called is not saved', play: changedAfterwards },
  { name: 'the same id replaces', play: sameIdReplaces },
  { name: 'the last save of an id wins, whatever time it carries', play: lastSaveWins },
  { name: 'an unknown id is no error', play: unknownId },
  { name: 'after close every call rejects with DLQ_CLOSED', play: closedStore },
  {
    name: 'a full store rejects with DLQ_FULL and takes more once there is room',
    play: fullStore,
    needs: 'bounded',
  },
]
