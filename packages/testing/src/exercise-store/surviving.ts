import assert from 'node:assert/strict'
import type { DeadLetterStore, StoredDeadLetter } from '@redrive/runtime'
import { AWKWARD, START, sample, samples, told } from './samples.ts'
import type { StoreScenario } from './scenario.ts'
import type { StoreStage } from './stage.ts'

type End = (stage: StoreStage, store: DeadLetterStore) => Promise<void>

const closed: End = (_, store) => store.close()
const crashed: End = (stage, store) => stage.crash(store)

/** Saved, replaced, deleted, replayed and cleaned up; then the process ends and the next one looks. */
const reopened = (end: End) => async (stage: StoreStage) => {
  const before = await stage.store()
  const all = samples(12)
  for (const each of all) await before.save(each)
  for (const [, awkward] of AWKWARD) await before.save({ ...awkward, savedAt: START + 500_000 })
  const replaced = sample(all[3]?.id ?? '', { savedAt: START + 100_000, message: 'the second' })
  await before.save(replaced)
  assert.equal(await before.delete(all[4]?.id ?? ''), true)
  assert.equal(await before.replay(all[5]?.id ?? '', () => Promise.resolve()), true)
  assert.equal(await before.cleanup({ savedBefore: START + 2_000 }), 2)
  await end(stage, before)
  const after = await stage.store()
  const expected = [all[2] as StoredDeadLetter, ...all.slice(6), replaced]
  const found = await stage.all(after, { savedBefore: START + 500_000 })
  assert.deepEqual(found.map(told), expected.map(told))
  for (const [what, awkward] of AWKWARD) {
    const survivor = await after.get(awkward.id)
    const whole = { ...awkward, savedAt: START + 500_000 }
    assert.deepEqual(survivor && told(survivor), told(whole), what)
  }
  assert.equal((await after.stats()).count, expected.length + AWKWARD.length)
  await after.save(sample('next', { savedAt: START + 900_000 }))
  assert.equal((await stage.ids(after)).at(-1), 'next')
}

/** Everything that was acknowledged is there; what was not may be. */
async function crashWhileSaving(stage: StoreStage): Promise<void> {
  const dying = await stage.store()
  const acknowledged = new Set<string>()
  const all = samples(200)
  for (const each of all) {
    dying.save(each).then(
      () => acknowledged.add(each.id),
      () => undefined,
    )
  }
  await stage.until('some are acknowledged', () => acknowledged.size > 0)
  const promised = [...acknowledged]
  await stage.crash(dying)
  const after = await stage.store()
  for (const id of promised) {
    const found = await after.get(id)
    const expected = all.find((each) => each.id === id) as StoredDeadLetter
    assert.deepEqual(found && told(found), told(expected), `${id} was acknowledged`)
  }
  for (const found of await stage.all(after)) {
    const expected = all.find(({ id }) => id === found.id)
    assert.deepEqual(told(found), expected && told(expected), 'what is there is whole')
  }
}

async function crashWhileReplaying(stage: StoreStage): Promise<void> {
  const dying = await stage.store()
  await dying.save(sample('a'))
  let isSending = false
  const endless = () => {
    isSending = true
    return new Promise<void>(() => undefined)
  }
  void dying.replay('a', endless)
  await stage.until('it is being sent', () => isSending)
  await stage.crash(dying)
  const after = await stage.store()
  await stage.holds(after, [sample('a')])
  let sent = 0
  const send = async () => {
    sent += 1
  }
  await stage.until('someone else may send it', () => after.replay('a', send))
  assert.equal(sent, 1)
  await stage.holds(after, [])
}

// ---- two processes ------------------------------------------------------------------------------

async function seesTheOther(stage: StoreStage): Promise<void> {
  const one = await stage.store()
  const other = await stage.store()
  await stage.holds(other, [])
  const [a, b, c] = samples(3) as [StoredDeadLetter, StoredDeadLetter, StoredDeadLetter]
  await one.save(a)
  await stage.holds(other, [a])
  await other.save(b)
  await one.save(c)
  await stage.holds(one, [a, b, c])
  await stage.holds(other, [a, b, c])
  assert.equal(await other.delete(a.id), true)
  assert.equal(await one.delete(a.id), false, 'the other has deleted it')
  await stage.holds(one, [b, c])
  const replaced = { ...b, savedAt: START + 50_000 }
  await one.save(replaced)
  await stage.holds(other, [c, replaced])
  assert.equal(await one.replay(c.id, () => Promise.resolve()), true)
  await stage.holds(other, [replaced])
  assert.equal(await other.cleanup({ savedBefore: START + 60_000 }), 1)
  await stage.holds(one, [])
  await one.save(b)
  await stage.holds(other, [b])
}

const TOGETHER = 100

async function manyAtOnce(stage: StoreStage): Promise<void> {
  const [one, other] = [await stage.store(), await stage.store()]
  const all = samples(TOGETHER)
  await Promise.all(all.map((each, number) => (number % 2 === 0 ? one : other).save(each)))
  for (const store of [one, other]) await stage.holds(store, all)
}

export const SURVIVING: readonly StoreScenario[] = [
  { name: 'everything acknowledged is there after close', play: reopened(closed) },
  {
    name: 'everything acknowledged is there after a crash',
    play: reopened(crashed),
    needs: 'crash',
  },
  {
    name: 'a crash while saving loses nothing acknowledged',
    play: crashWhileSaving,
    needs: 'crash',
  },
  {
    name: 'a crash while sending leaves the dead letter to others',
    play: crashWhileReplaying,
    needs: 'crash',
  },
  { name: 'two processes see what the other does', play: seesTheOther },
  { name: 'a hundred saves at once by two processes are all kept', play: manyAtOnce },
]
