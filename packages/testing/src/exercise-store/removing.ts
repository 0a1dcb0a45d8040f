import assert from 'node:assert/strict'
import { START, sample, samples } from './samples.ts'
import type { StoreScenario } from './scenario.ts'
import type { StoreScenarioContext } from './stage.ts'

async function deletes(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  const all = samples(3)
  for (const each of all) await store.save(each)
  const id = all[1]?.id ?? ''
  assert.equal(await store.delete(id), true)
  assert.equal(await store.delete(id), false, 'it is gone already')
  assert.equal(await store.get(id), undefined)
  await context.holds(store, [...all.slice(0, 1), ...all.slice(2)])
  await store.save(all[1] as (typeof all)[number])
  await context.holds(store, all)
}

async function deletesOnce(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  for (const each of samples(1)) await store.save(each)
  const id = samples(1)[0]?.id ?? ''
  const answers = await Promise.all([store.delete(id), store.delete(id), store.delete(id)])
  assert.ok(answers.includes(true))
  await context.holds(store, [])
}

async function cleansUp(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  const all = samples(10)
  for (const each of all) await store.save(each)
  assert.equal(await store.cleanup({ savedBefore: START }), 0, 'nothing is older than the first')
  await context.holds(store, all)
  const savedBefore = START + 4_000
  assert.equal(
    await store.cleanup({ savedBefore }),
    4,
    'an entry saved exactly at that time is kept',
  )
  await context.holds(store, all.slice(4))
  assert.equal(await store.cleanup({ savedBefore }), 0)
  assert.equal(await store.cleanup({ savedBefore: START + 1_000_000 }), 6)
  await context.holds(store, [])
  await store.save(all[0] as (typeof all)[number])
  await context.holds(store, all.slice(0, 1))
}

async function cleansUpWhatWasReplaced(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  const old = sample('a', { savedAt: START })
  await store.save(old)
  const fresh = { ...old, savedAt: START + 60_000 }
  await store.save(fresh)
  assert.equal(await store.cleanup({ savedBefore: START + 30_000 }), 0)
  await context.holds(store, [fresh])
}

export const REMOVING: readonly StoreScenario[] = [
  { name: 'delete removes one dead letter, once', play: deletes },
  { name: 'concurrent deletes remove it once', play: deletesOnce },
  { name: 'cleanup removes dead letters saved before the given time', play: cleansUp },
  { name: 'cleanup uses the time of the last save of an id', play: cleansUpWhatWasReplaced },
]
