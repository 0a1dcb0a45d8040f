import assert from 'node:assert/strict'
import type { DeadLetterStore, StoredDeadLetter, StoreFilter } from '@redrive/runtime'
import { type SampleChanges, START, sample, samples } from './samples.ts'
import type { StoreScenario } from './scenario.ts'
import type { StoreScenarioContext } from './stage.ts'

/** Samples in the order of saving, which is not the order of time. */
const MIXED: readonly (readonly [id: string, changes: SampleChanges])[] = [
  ['c', { savedAt: START + 30, sink: 'loki', class: 'schema', job: 'import' }],
  ['a', { savedAt: START + 10, sink: 'loki', class: 'transient', job: 'billing' }],
  ['d', { savedAt: START + 40, sink: 'sentry', class: 'transient', event: { type: 'order.sent' } }],
  ['b', { savedAt: START + 20, sink: 'sentry', class: 'schema', job: 'billing' }],
  ['e', { savedAt: START + 50, sink: 'loki', class: 'unknown', event: { type: 'order.sent' } }],
]

const FILTERS: readonly (readonly [filter: StoreFilter, ids: string])[] = [
  [{}, 'abcde'],
  [{ sink: 'loki' }, 'ace'],
  [{ type: 'order.sent' }, 'de'],
  [{ class: 'schema' }, 'bc'],
  [{ job: 'billing' }, 'ab'],
  [{ savedAfter: START + 20 }, 'cde'],
  [{ savedBefore: START + 30 }, 'ab'],
  [{ savedAfter: START + 10, savedBefore: START + 50 }, 'bcd'],
  [{ sink: 'loki', class: 'schema' }, 'c'],
  [{ sink: 'sentry', job: 'billing' }, 'b'],
  [{ sink: 'loki', type: 'order.sent', class: 'unknown', savedAfter: START }, 'e'],
  [{ sink: 'loki', type: 'order.paid', class: 'transient', job: 'billing' }, 'a'],
  [{ sink: 'sentry', type: 'order.sent', job: 'billing' }, ''],
  [{ sink: 'missing' }, ''],
  [{ type: 'order.*' }, ''],
  [{ job: '' }, ''],
]

async function filters(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  for (const [id, changes] of MIXED) await store.save(sample(id, changes))
  for (const [filter, expected] of FILTERS) {
    const ids = await context.ids(store, filter)
    assert.equal(ids.join(''), expected, `filter ${JSON.stringify(filter)}`)
    const paged = (await context.all(store, filter, 1)).map(({ id }) => id)
    assert.equal(paged.join(''), expected, `filter ${JSON.stringify(filter)}, one on a page`)
  }
}

async function ends(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  assert.deepEqual(await store.list({ limit: 3 }), { deadLetters: [], nextCursor: undefined })
  for (const deadLetter of samples(3)) await store.save(deadLetter)
  assert.equal(
    (await store.list({ limit: 4 })).nextCursor,
    undefined,
    'a page with room is the last',
  )
  const filtered = await store.list({ filter: { savedBefore: START + 1 }, limit: 5 })
  assert.deepEqual([filtered.deadLetters.length, filtered.nextCursor], [1, undefined])
  const pages = [await store.list({ limit: 2 })]
  for (let next = pages[0]?.nextCursor; next !== undefined; next = pages.at(-1)?.nextCursor) {
    pages.push(await store.list({ limit: 2, cursor: next }))
  }
  assert.deepEqual(
    pages.flatMap(({ deadLetters }) => deadLetters.map(({ id }) => id)),
    samples(3).map(({ id }) => id),
  )
}

const PAGED = 60
const PAGE = 7

/** Some entries have the same time: a cursor of only the time would repeat or skip them. */
const withEqualTimes = (count: number) =>
  samples(count).map((one, number) => ({ ...one, savedAt: START + Math.floor(number / 5) * 1_000 }))

async function pagesWhileThingsChange(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  const there = withEqualTimes(PAGED)
  for (const deadLetter of there) await store.save(deadLetter)
  const gone = new Set<string>()
  const seen: StoredDeadLetter[] = []
  let after: string | undefined
  for (let page = 0; ; page++) {
    const { deadLetters, nextCursor } = await store.list({
      limit: PAGE,
      ...(after === undefined ? {} : { cursor: after }),
    })
    seen.push(...deadLetters)
    if (nextCursor === undefined) break
    after = nextCursor
    await disturb(store, deadLetters, page, gone)
  }
  expectOnce(seen, there, gone)
}

/**
 * Deletes the last entry returned, which is the position of the cursor, and a later one. Then it
 * alternates: it deletes another entry that was returned, or adds older ones. So the two changes do not
 * cancel each other out.
 */
async function disturb(
  store: DeadLetterStore,
  deadLetters: readonly StoredDeadLetter[],
  page: number,
  gone: Set<string>,
): Promise<void> {
  const last = deadLetters.at(-1)
  assert.ok(last !== undefined, 'a page that is not the last holds something')
  const coming = `n${String((page + 1) * PAGE + 3).padStart(4, '0')}`
  const isUp = page % 2 === 0
  for (const id of [last.id, coming, ...(isUp ? [deadLetters[0]?.id ?? ''] : [])]) {
    if (await store.delete(id)) gone.add(id)
  }
  for (const which of isUp ? [] : [1, 2, 3]) {
    await store.save(sample(`before ${page} ${which}`, { savedAt: START - 1_000 }))
  }
  await store.save(sample(`behind ${page}`, { savedAt: START + 1_000_000 }))
}

function expectOnce(
  seen: readonly StoredDeadLetter[],
  there: readonly StoredDeadLetter[],
  gone: ReadonlySet<string>,
): void {
  const ids = seen.map(({ id }) => id)
  assert.equal(new Set(ids).size, ids.length, 'no page repeats')
  const skipped = there.filter(({ id }) => !gone.has(id) && !ids.includes(id))
  assert.deepEqual(skipped, [], 'no page skips an entry that existed all the time')
  const times = seen.map(({ savedAt }) => savedAt)
  assert.deepEqual(
    times,
    times.toSorted((one, other) => one - other),
    'oldest first',
  )
}

async function refusesForeignCursors(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  for (const deadLetter of samples(3)) await store.save(deadLetter)
  const garbage = ['x', '', '0', 'not a cursor', '{"a":1}', 'AAAAAAAA', '\u{1f600}']
  for (const after of garbage) {
    await assert.rejects(store.list({ limit: 1, cursor: after }), /cursor/, `cursor ${after}`)
  }
}

async function statistics(context: StoreScenarioContext): Promise<void> {
  const store = await context.store()
  const empty = await store.stats()
  assert.deepEqual(withoutZeros(empty), {
    count: 0,
    oldestSavedAt: undefined,
    byClass: {},
    bySink: {},
  })
  for (const [id, changes] of MIXED) await store.save(sample(id, changes))
  const full = await store.stats()
  assert.deepEqual(withoutZeros(full), {
    count: 5,
    oldestSavedAt: START + 10,
    byClass: { schema: 2, transient: 2, unknown: 1 },
    bySink: { loki: 3, sentry: 2 },
  })
  assert.ok(full.bytes > 0, 'they take room')
  await store.delete('a')
  await store.delete('e')
  const fewer = await store.stats()
  assert.deepEqual(withoutZeros(fewer), {
    count: 3,
    oldestSavedAt: START + 20,
    byClass: { schema: 2, transient: 1 },
    bySink: { loki: 1, sentry: 2 },
  })
  assert.ok(fewer.bytes > 0 && fewer.bytes < full.bytes, 'fewer take less room')
}

/** Removes zero counts: a class or sink without dead letters may be 0 or absent. */
function withoutZeros({
  bytes: _,
  byClass,
  bySink,
  ...rest
}: Awaited<ReturnType<DeadLetterStore['stats']>>) {
  const some = (counts: Readonly<Record<string, number>>) =>
    Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0))
  return { ...rest, byClass: some(byClass), bySink: some(bySink) }
}

export const LISTING: readonly StoreScenario[] = [
  { name: 'lists matching dead letters, oldest first, for every filter', play: filters },
  { name: 'pages end where the list ends', play: ends },
  {
    name: 'pages neither repeat nor skip while others are saved and deleted',
    play: pagesWhileThingsChange,
  },
  { name: 'a foreign cursor is rejected', play: refusesForeignCursors },
  { name: 'stats count the stored dead letters, also after deletes', play: statistics },
]
