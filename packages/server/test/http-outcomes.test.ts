import type { ApiError } from '@redrive/api'
import type { Catalog } from '@redrive/catalog'
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
    expect(await set('operator', `group:${group}`)).toEqual({
      ...{ changed: 3, skipped: [], skippedCount: 0 },
    })
    expect(await statusesOf([...ids, ...other.ids, ...open.ids])).toEqual([
      ...['resolved', 'resolved', 'resolved'],
      ...['not_returned', 'open'],
    ])
    expect(await set('operator', `group:${group}`)).toMatchObject({ changed: 0, skipped: [] })
    const { entries } = await audit.read({ operation: 'setOutcomes', limit: 2 })
    const facts = {
      ...{ as: 'resolved', sources: ['orders'], count: 3, filter: `group:${group}` },
      ids: expect.arrayContaining([...ids]) as string[],
    }
    expect(entries).toMatchObject([
      {
        ...{ outcome: 'done', person: 'operator', source: 'orders' },
        facts: { ...facts, changed: 3, skipped: 0 },
      },
      { outcome: 'requested', facts },
    ])
  })

  test('are limited to the sources where the caller may replay', async () => {
    const { ids } = await notReturned('orders', 1)
    expect(await set('elsewhere', 'after:1h')).toMatchObject({ changed: 0, skipped: [] })
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
    expect(await set('operator', 'source:orders status:unknown after:0')).toMatchObject({
      changed: 0,
      skipped: [],
    })
  })

  test('are audited for each batch, also for those before a batch that fails', async () => {
    let calls = 0
    const failing = await staged(pool, {
      catalog(made) {
        const { replays } = made
        const real = replays.setOutcome.bind(replays)
        replays.setOutcome = async (...all) => {
          calls += 1
          if (calls === 2) throw new Error('the database is gone')
          return real(...all)
        }
        return new Proxy(made, {
          get(target, name: keyof Catalog) {
            const value: unknown = name === 'replays' ? replays : target[name]
            return typeof value === 'function' ? (value.bind(target) as unknown) : value
          },
        })
      },
    })
    const added: string[] = []
    for (let each = 0; each < 6; each++) added.push(...(await notReturned('billing', 200)).ids)
    const body = { filter: 'source:billing after:0', as: 'open' } as const
    expect(await problemOf(failing.as('admin').call('setOutcomes', { body }))).toMatchObject({
      code: 'internal',
    })
    const { entries } = await audit.read({ operation: 'setOutcomes', limit: 4 })
    expect(entries.map(({ outcome, facts }) => [outcome, facts['changed']])).toEqual([
      ['failed', undefined],
      ['requested', undefined],
      ['done', 1_000],
      ['requested', undefined],
    ])
    const audited = entries.map((entry) => entry.facts['ids'] as readonly string[])
    expect(audited.map(({ length }) => length).slice(2)).toEqual([1_000, 1_000])
    const all = new Set(audited.flat())
    expect(added.filter((id) => !all.has(id))).toEqual([])
  })
})
