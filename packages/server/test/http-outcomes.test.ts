import type { ApiError } from '@redrive/api'
import { describe, expect, test } from 'vitest'
import { database, fill, staged } from './http-stage.ts'

const pool = await database('redrive_server_outcomes')
const { as, audit, catalog } = await staged(pool)

const problemOf = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: unknown) => (error as ApiError).problem,
  )

/** Dead letters whose replays did not return. */
async function notReturned(source: string, count: number) {
  const { group, ids } = await fill(catalog, source, count)
  const run = await as('admin').call('planReplay', { body: { selection: { ids: [...ids] } } })
  const params = { id: run.id }
  await as('second').call('approveReplay', { params, body: { hash: run.hash } })
  await pool.query(
    `update redrive_catalog.replay_item set state = 'not_returned' where run_id = $1`,
    [run.id],
  )
  await pool.query(
    `update redrive_catalog.dead_letter set status = 'not_returned' where id = any($1::uuid[])`,
    [ids],
  )
  return { group, ids }
}

const statusesOf = async (ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await catalog.deadLetterPreview(id))?.status))

const set = (who: string, filter: string) =>
  as(who).call('setOutcomes', { body: { filter, as: 'resolved' } })

describe('outcomes by a filter', () => {
  test('are set for all messages that match and have no known outcome', async () => {
    const { group, ids } = await notReturned('orders', 3)
    const other = await notReturned('orders', 1)
    const open = await fill(catalog, 'orders')
    expect(await set('operator', `group:${group}`)).toEqual({ changed: 3, skipped: [] })
    expect(await statusesOf([...ids, ...other.ids, ...open.ids])).toEqual([
      ...['resolved', 'resolved', 'resolved'],
      ...['not_returned', 'open'],
    ])
    expect(await set('operator', `group:${group}`)).toEqual({ changed: 0, skipped: [] })
    const { entries } = await audit.read({ operation: 'setOutcomes', limit: 2 })
    const facts = { as: 'resolved', sources: ['orders'], count: 3, filter: `group:${group}` }
    expect(entries).toMatchObject([
      { outcome: 'done', person: 'operator', source: 'orders', facts },
      { outcome: 'requested', facts },
    ])
  })

  test('are limited to the sources where the caller may replay', async () => {
    const { ids } = await notReturned('orders', 1)
    expect(await set('elsewhere', 'after:1h')).toEqual({ changed: 0, skipped: [] })
    expect(await problemOf(set('elsewhere', 'source:orders after:0'))).toMatchObject({
      code: 'not_found',
    })
    expect(await problemOf(set('viewer', 'source:orders after:0'))).toMatchObject({
      code: 'forbidden',
    })
    expect(await statusesOf(ids)).toEqual(['not_returned'])
    const billing = await notReturned('billing', 1)
    expect(await set('partly', 'after:1h')).toMatchObject({ skipped: [] })
    expect(await statusesOf([...ids, ...billing.ids])).toEqual(['resolved', 'not_returned'])
  })

  test('are rejected for statuses with a known outcome, and for no filter at all', async () => {
    for (const filter of [
      'source:orders status:open after:0',
      'source:orders status:resolved after:0',
      '',
    ])
      expect(await problemOf(set('operator', filter))).toMatchObject({ code: 'invalid' })
    expect(await set('operator', 'source:orders status:unknown after:0')).toEqual({
      changed: 0,
      skipped: [],
    })
  })
})
