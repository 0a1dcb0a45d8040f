import assert from 'node:assert/strict'
import type { DeadLetterStore, StoredDeadLetter } from '@redrive/runtime'
import { AWKWARD, START, sample, samples, comparable } from './samples.ts'
import type { StoreScenario } from './scenario.ts'
import type { StoreScenarioContext } from './stage.ts'

type End = (context: StoreScenarioContext, store: DeadLetterStore) => Promise<void>

const closed: End = (_, store) => store.close()
const crashed: End = (context, store) => context.crash(store)

/** Saves, replaces, deletes, replays and cleans up; then the process ends and the next one checks. */
const reopened = (end: End) => async (context: StoreScenarioContext) => {
  const before = await context.store()
  const all = samples(12)
  for (const each of all) await before.save(each)
  for (const [, awkward] of AWKWARD) await before.save({ ...awkward, savedAt: START + 500_000 })
  const replaced = sample(all[3]?.id ?? '', { savedAt: START + 100_000, message: 'the second' })
  await before.save(replaced)
  assert.equal(await before.delete(all[4]?.id ?? ''), true)
  assert.equal(await before.replay(all[5]?.id ?? '', () => Promise.resolve()), true)
  assert.equal(await before.cleanup({ savedBefore: START + 2_000 }), 2)
  await end(context, before)
  const after = await context.store()
  const expected = [all[2] as StoredDeadLetter, ...all.slice(6), replaced]
  const found = await context.all(after, { savedBefore: START + 500_000 })
  assert.deepEqual(found.map(comparable), expected.map(comparable))
  for (const [what, awkward] of AWKWARD) {
    const survivor = await after.get(awkward.id)
    const whole = { ...awkward, savedAt: START + 500_000 }
    assert.deepEqual(survivor && comparable(survivor), comparable(whole), what)
  }
  assert.equal((await after.stats()).count, expected.length + AWKWARD.length)
  await after.save(sample('next', { savedAt: START + 900_000 }))
  assert.equal((await context.ids(after)).at(-1), 'next')
}

/** Checks that every acknowledged dead letter exists. Others may exist too. */
async function crashWhileSaving(context: StoreScenarioContext): Promise<void> {
  const dying = await context.store()
  const acknowledged = new Set<string>()
  const all = samples(200)
  for (const each of all) {
    dying.save(each).then(
      () => acknowledged.add(each.id),
      () => undefined,
    )
  }
  await context.until('some are acknowledged', () => acknowledged.size > 0)
  const promised = [...acknowledged]
  await context.crash(dying)
  const after = await context.store()
  for (const id of promised) {
    const found = await after.get(id)
    const expected = all.find((each) => each.id === id) as StoredDeadLetter
    assert.deepEqual(found && comparable(found), comparable(expected), `${id} was acknowledged`)
  }
  for (const found of await context.all(after)) {
    const expected = all.find(({ id }) => id === found.id)
    assert.deepEqual(
      comparable(found),
      expected && comparable(expected),
      'a stored dead letter is complete',
    )
  }
}

async function crashWhileReplaying(context: StoreScenarioContext): Promise<void> {
  const dying = await context.store()
  await dying.save(sample('a'))
  let isSending = false
  const endless = () => {
    isSending = true
    return new Promise<void>(() => undefined)
  }
  void dying.replay('a', endless)
  await context.until('it is being sent', () => isSending)
  await context.crash(dying)
  const after = await context.store()
  await context.holds(after, [sample('a')])
  let sent = 0
  const send = async () => {
    sent += 1
  }
  await context.until('another process may send it', () => after.replay('a', send))
  assert.equal(sent, 1)
  await context.holds(after, [])
}

// ---- two processes ------------------------------------------------------------------------------

async function seesTheOther(context: StoreScenarioContext): Promise<void> {
  const one = await context.store()
  const other = await context.store()
  await context.holds(other, [])
  const [a, b, c] = samples(3) as [StoredDeadLetter, StoredDeadLetter, StoredDeadLetter]
  await one.save(a)
  await context.holds(other, [a])
  await other.save(b)
  await one.save(c)
  await context.holds(one, [a, b, c])
  await context.holds(other, [a, b, c])
  assert.equal(await other.delete(a.id), true)
  assert.equal(await one.delete(a.id), false, 'the other has deleted it')
  await context.holds(one, [b, c])
  const replaced = { ...b, savedAt: START + 50_000 }
  await one.save(replaced)
  await context.holds(other, [c, replaced])
  assert.equal(await one.replay(c.id, () => Promise.resolve()), true)
  await context.holds(other, [replaced])
  assert.equal(await other.cleanup({ savedBefore: START + 60_000 }), 1)
  await context.holds(one, [])
  await one.save(b)
  await context.holds(other, [b])
}

const TOGETHER = 100

async function concurrentSaves(context: StoreScenarioContext): Promise<void> {
  const [one, other] = [await context.store(), await context.store()]
  const all = samples(TOGETHER)
  await Promise.all(all.map((each, number) => (number % 2 === 0 ? one : other).save(each)))
  for (const store of [one, other]) await context.holds(store, all)
}

export const SURVIVING: readonly StoreScenario[] = [
  { name: 'every acknowledged dead letter exists after close', play: reopened(closed) },
  {
    name: 'every acknowledged dead letter exists after a crash',
    play: reopened(crashed),
    needs: 'crash',
  },
  {
    name: 'a crash while saving loses no acknowledged dead letter',
    play: crashWhileSaving,
    needs: 'crash',
  },
  {
    name: 'after a crash while sending, another process can send the dead letter',
    play: crashWhileReplaying,
    needs: 'crash',
  },
  { name: 'two processes see the changes of the other', play: seesTheOther },
  { name: 'a hundred concurrent saves by two processes are all kept', play: concurrentSaves },
]
