import { describe, expect, test } from 'vitest'
import { catalog, type SelectionRequest } from '../src/index.ts'
import { groupId } from '../src/ingest/identity.ts'
import { dead, ListSource, migrated, NOW, refusal, rows } from './rig.ts'

const pool = await migrated('redrive_catalog_selection')
const made = catalog({ pool })
const SIGNATURE = '1-00000000000000aa'

/** Adds dead letters to a separate source for the test; returns the group. */
async function filled(source: string, count: number, message = 'no rate for eu-bank') {
  const all = Array.from({ length: count }, () => dead({ signature: SIGNATURE, message }))
  await made.ingest(new ListSource(all, source))
  return groupId(source, SIGNATURE)
}

const select = (query: SelectionRequest['query'], action: 'discard' | 'restore' = 'discard') =>
  made.select({ action, query, by: 'ada' })
const openOf = async (group: string) => (await made.group(group))?.openCount
const idsOf = async (group: string) =>
  (await made.deadLetters({ groups: [group], limit: 200 })).deadLetters.map(({ id }) => id)

describe('a selection', () => {
  test('has the exact count, changes nothing, and is then applied to exactly these', async () => {
    const group = await filled('a', 3)
    await filled('a', 2, 'no rate for us-bank')
    const { id, hash, ...frozen } = await select({ groups: [group], texts: ['eu-bank'] })
    expect(frozen).toMatchObject({ action: 'discard', count: 3, sources: ['a'], selectedBy: 'ada' })
    expect(await openOf(group)).toBe(5)
    // These match the filter, but failed after the selection.
    await filled('a', 4)
    const done = { changed: 3, skippedCount: 0, skipped: [] }
    expect(await made.applySelection('discard', id, { hash, by: 'ada' })).toEqual(done)
    expect(await openOf(group)).toBe(6)
    const { deadLetters } = await made.deadLetters({ groups: [group], statuses: ['discarded'] })
    expect(deadLetters.every(({ message }) => message.includes('eu-bank'))).toBe(true)
    expect(deadLetters.every(({ settledBy }) => settledBy === 'ada')).toBe(true)
    const back = await select({ groups: [group], texts: ['eu-bank'] }, 'restore')
    expect(back.count).toBe(3)
    const confirmation = { hash: back.hash, by: 'ada' }
    expect(await made.applySelection('restore', back.id, confirmation)).toEqual(done)
    expect(await openOf(group)).toBe(9)
  })

  test('skips and reports dead letters that have changed since, even if they look the same', async () => {
    const group = await filled('b', 5)
    const [one = '', two = '', three = ''] = await idsOf(group)
    const { id, hash } = await select({ groups: [group] })
    await made.discard({ ids: [one, two] }, { by: 'bob' })
    // Open again, but another user decided about it in between.
    await made.restore({ ids: [two] }, { by: 'bob' })
    await pool.query('delete from redrive_catalog.dead_letter where id = $1', [three])
    const result = await made.applySelection('discard', id, { hash, by: 'ada' })
    expect(result).toEqual({
      changed: 2,
      skippedCount: 3,
      skipped: [one, two, three].toSorted(),
    })
    expect(await made.deadLetter(one)).toMatchObject({ settledBy: 'bob' })
    expect(await made.deadLetter(two)).toMatchObject({ status: 'open' })
  })

  test('is applied once, also if two calls run at the same time or one is repeated', async () => {
    const group = await filled('c', 2_500)
    const { id, hash, count } = await select({ groups: [group] })
    expect(count).toBe(2_500)
    const confirm = () => made.applySelection('discard', id, { hash, by: 'ada' })
    await Promise.all([confirm(), confirm()])
    expect(await confirm()).toEqual({ changed: 2_500, skippedCount: 0, skipped: [] })
    expect(await openOf(group)).toBe(0)
    const versions = await rows(
      pool,
      'select distinct version from redrive_catalog.dead_letter where group_id = $1',
      [group],
    )
    expect(versions).toEqual([{ version: 1 }])
  })

  test('is refused with another hash, user or action, and after one hour', async () => {
    const group = await filled('d', 1)
    const { id, hash } = await select({ groups: [group] })
    const why = async (work: Promise<unknown>) => (await refusal(work)).message
    const confirm = { hash, by: 'ada' }
    expect(await why(made.applySelection('discard', id, { ...confirm, hash: 'x' }))).toContain(
      'hash',
    )
    expect(await why(made.applySelection('discard', id, { ...confirm, by: 'bob' }))).toContain(
      'another user',
    )
    expect(await why(made.applySelection('restore', id, confirm))).toContain('is for "discard"')
    expect(await why(made.applySelection('discard', 'no id', confirm))).toContain('does not exist')
    await pool.query(
      `update redrive_catalog.selection set selected_at = now() - interval '61 minutes' where id = $1`,
      [id],
    )
    expect(await why(made.applySelection('discard', id, confirm))).toContain('older than one hour')
    expect(await openOf(group)).toBe(1)
  })

  test('is refused if it is empty, unbounded or has a status', async () => {
    const group = await filled('e', 1)
    const problem = async (query: SelectionRequest['query']) =>
      (await refusal(select(query))).message
    expect(await problem({ groups: [group], texts: ['none'] })).toContain('no dead letters')
    expect(await problem({ class: 'schema' })).toContain('is required')
    expect(await problem({ groups: [group], statuses: ['open'] })).toContain('not allowed')
    expect(
      await rows(pool, `select from redrive_catalog.selection where 'e' = any(sources)`),
    ).toEqual([])
  })

  test('is deleted after a day', async () => {
    const group = await filled('f', 1)
    const [old, recent] = [await select({ groups: [group] }), await select({ groups: [group] })]
    await pool.query(
      `update redrive_catalog.selection set selected_at = now() - interval '25 hours' where id = $1`,
      [old.id],
    )
    await made.maintain()
    expect(await made.selection(old.id)).toBeUndefined()
    expect(await made.selection(recent.id)).toMatchObject({ id: recent.id, count: 1 })
    const items = 'select from redrive_catalog.selection_item where selection_id = $1'
    expect(await rows(pool, items, [old.id])).toEqual([])
    expect(await rows(pool, items, [recent.id])).toHaveLength(1)
  })

  test('selects by the time of the last failure', async () => {
    const at = NOW - 86_400_000
    await made.ingest(new ListSource([dead({ at, signature: SIGNATURE })], 'g'))
    await filled('g', 2)
    expect((await select({ sources: ['g'], after: 0, before: NOW })).count).toBe(1)
  })
})
