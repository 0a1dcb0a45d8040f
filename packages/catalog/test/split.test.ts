import { describe, expect, test } from 'vitest'
import { catalog, type SplitConditions } from '../src/index.ts'
import { groupId, namedGroupId } from '../src/ingest/identity.ts'
import { applyFingerprints } from '../src/regrouping/fingerprints.ts'
import { dead, ListSource, migrated, refusal, rows, type Said } from './rig.ts'

const pool = await migrated('redrive_catalog_split')
const made = catalog({ pool })
const A = '1-00000000000000aa'
const BY = { by: 'ada', reason: 'two tables' }
const LEDGER = { signature: A, message: 'lock timeout in relation "ledger"' }
const OTHER = { signature: A, message: 'lock timeout' }

const add = (source: string, count: number, said: Said) =>
  made.ingest(
    new ListSource(
      Array.from({ length: count }, () => dead(said)),
      source,
    ),
  )

const openOf = async (id: string) => (await made.group(id))?.openCount
const split = (source: string, conditions: SplitConditions, name = 'ledger') =>
  made.regrouping.split(groupId(source, A), { conditions, name, ...BY })

/** Compares all stored counts of the groups with their rows; returns the differences. */
const miscounted = () =>
  rows(
    pool,
    `select g.id from redrive_catalog.failure_group g
       cross join lateral (select count(*) as count, count(*) filter (where status = 'open') as open
         from redrive_catalog.dead_letter d where d.group_id = g.id) d
       cross join lateral (select coalesce(sum(count), 0) as count from redrive_catalog.group_hour where group_id = g.id) h
       where (g.open_count, g.count, h.count) is distinct from (d.open, d.count, d.count)`,
  )

describe('a split', () => {
  test('moves the matching open dead letters to a new group, and later ones follow', async () => {
    await add('moves', 3, LEDGER)
    await add('moves', 2, OTHER)
    const done = await split('moves', { texts: ['RELATION "ledger"'] })
    expect(done).toMatchObject({
      moved: 3,
      examined: 5,
      nextCursor: undefined,
      group: { id: namedGroupId('moves', 'ledger'), title: 'ledger', name: 'ledger', openCount: 3 },
    })
    expect(await openOf(groupId('moves', A))).toBe(2)
    await add('moves', 4, LEDGER)
    await add('moves', 1, OTHER)
    expect([await openOf(done.group.id), await openOf(groupId('moves', A))]).toEqual([7, 3])
    expect(await miscounted()).toEqual([])
    const { rows: stored } = await pool.query(
      `select name, split_by, reason from redrive_catalog.group_split where new_group_id = $1`,
      [done.group.id],
    )
    expect(stored).toEqual([{ name: 'ledger', split_by: 'ada', reason: 'two tables' }])
  })

  test.each<[string, Said, SplitConditions]>([
    ['code', { code: '55P03' }, { code: '55P03' }],
    ['class', { class: 'transient' }, { class: 'transient' }],
    ['type', { delivery: { type: 'order.placed' } }, { type: 'order.placed' }],
    ['header', { delivery: { headers: { tenant: 'acme' } } }, { headers: { tenant: 'acme' } }],
  ])('can select by %s, also for later dead letters', async (name, said, conditions) => {
    const source = `by ${name}`
    for (let round = 0; round < 2; round += 1) {
      await add(source, 2, { ...OTHER, ...said })
      await add(source, 1, OTHER)
      if (round === 0) await split(source, conditions)
    }
    const found = await made.deadLetters({ groups: [namedGroupId(source, 'ledger')] })
    expect(found.deadLetters).toHaveLength(4)
    expect(await openOf(groupId(source, A))).toBe(2)
  })

  test('is undone by a merge, and stays in force when its group is merged', async () => {
    const source = 'merged'
    await add(source, 1, LEDGER)
    await add(source, 1, { signature: '1-00000000000000bb', message: 'other' })
    const { group } = await split(source, { texts: ['ledger'] })
    const [a, b] = [groupId(source, A), groupId(source, '1-00000000000000bb')]
    await made.regrouping.merge(b, { groups: [a], ...BY })
    await add(source, 2, LEDGER)
    expect([await openOf(group.id), await openOf(b)]).toEqual([3, 1])
    await made.regrouping.merge(b, { groups: [group.id], ...BY })
    await add(source, 2, LEDGER)
    expect(await openOf(b)).toBe(6)
  })

  test('can be split again', async () => {
    await add('again', 1, LEDGER)
    await add('again', 1, { ...LEDGER, code: '55P03' })
    const { group } = await split('again', { texts: ['ledger'] })
    const request = { conditions: { code: '55P03' }, name: 'codes', ...BY }
    const second = await made.regrouping.split(group.id, request)
    await add('again', 3, { ...LEDGER, code: '55P03' })
    expect([await openOf(group.id), await openOf(second.group.id)]).toEqual([1, 4])
  })

  test('is kept when fingerprint rules are applied', async () => {
    await add('kept', 2, LEDGER)
    await add('kept', 1, OTHER)
    const { group } = await split('kept', { texts: ['ledger'] })
    expect(await made.regrouping.apply({ sources: ['kept'] })).toMatchObject({ moved: 0 })
    expect(await openOf(group.id)).toBe(2)
    expect((await made.regrouping.preview(['kept'])).rules).toEqual([])
  })

  test.each<[string, SplitConditions]>([
    ['text', { texts: ['ledger'] }],
    ['header', { headers: { tenant: 'acme' } }],
  ])('by %s during an apply is used by the rest of the apply', async (by, conditions) => {
    const source = `during apply by ${by}`
    const rule = { name: 'locks', match: { text: 'lock timeout' }, group: 'Locks' }
    const named = catalog({ pool, fingerprints: [rule] })
    const letters = Array.from({ length: 3 }, () =>
      dead({ ...LEDGER, delivery: { headers: { tenant: 'acme' } } }),
    )
    await named.ingest(new ListSource(letters, source))
    await add(source, 1, OTHER)
    // The rule is removed. The split happens after the page was read and before the first move.
    let isSplit = false
    const late = Object.assign(Object.create(pool) as typeof pool, {
      connect: async () => {
        if (!isSplit) {
          isSplit = true
          await split(source, conditions)
        }
        return pool.connect()
      },
    })
    const reader = { pool, timeoutMs: 5_000 }
    expect(await applyFingerprints({ pool: late, reader }, [], { sources: [source] })).toEqual({
      moved: 3,
      examined: 4,
      nextCursor: undefined,
    })
    expect(await openOf(namedGroupId(source, 'ledger'))).toBe(3)
    expect(await openOf(groupId(source, A))).toBe(1)
    expect(await miscounted()).toEqual([])
  })

  test('is rejected with the reason, and a repeated one continues', async () => {
    await add('no', 1, LEDGER)
    await add('no', 1, OTHER)
    const message = async (work: Promise<unknown>) => (await refusal(work)).message
    expect(await message(split('no', {}))).toContain('expected at least one of class, code')
    const wrong = { lane: 'x' } as unknown as SplitConditions
    expect(await message(split('no', wrong))).toContain('a split cannot use lane')
    expect(await message(split('no', { code: 'x' }, ''))).toContain('name: expected')
    await split('no', { texts: ['ledger'] })
    expect(await message(split('no', { texts: ['other'] }))).toContain(
      'already has a group with the name "ledger"',
    )
    expect(await split('no', { texts: ['ledger'] })).toMatchObject({
      moved: 0,
      group: { openCount: 1 },
    })
    const missing = groupId('no', 'never')
    const request = { conditions: { code: 'x' }, name: 'x', ...BY }
    expect(await message(made.regrouping.split(missing, request))).toContain('No group has the id')
  })

  test('keeps every count exact during an ingest', async () => {
    await add('busy', 100, LEDGER)
    const ingests = [LEDGER, OTHER, LEDGER].map(async (said) => {
      for (let round = 0; round < 5; round += 1) await add('busy', 10, said)
    })
    const [done] = await Promise.all([split('busy', { texts: ['ledger'] }), ...ingests])
    await made.regrouping.split(groupId('busy', A), {
      conditions: { texts: ['ledger'] },
      name: 'ledger',
      ...BY,
    })
    expect([await openOf(done.group.id), await openOf(groupId('busy', A))]).toEqual([200, 50])
    expect(await miscounted()).toEqual([])
  })
})

test('a source has at most 200 splits', async () => {
  await add('many', 1, OTHER)
  await pool.query(
    `insert into redrive_catalog.group_split (source_id, group_id, new_group_id, name, conditions, split_by, reason)
       select g.source_id, g.id, g.id, 'split ' || n, '{"types": ["never"]}', 'ada', 'r'
         from redrive_catalog.failure_group g, generate_series(1, 200) n where g.id = $1`,
    [groupId('many', A)],
  )
  const { message } = await refusal(split('many', { texts: ['lock'] }))
  expect(message).toContain('already has 200 splits')
})
