import type { ApiError } from '@redrive/api'
import { describe, expect, test } from 'vitest'
import { database, fill, staged } from './http-stage.ts'

const pool = await database('redrive_server_selection')
const stage = await staged(pool)
const { as, catalog } = stage

/** Returns the code of the error, or `done`. */
async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    return (error as ApiError).code
  }
  return 'done'
}

describe('a frozen selection', () => {
  const select = (who: string, filter: string, action: 'discard' | 'restore' = 'discard') =>
    as(who).call('selectDeadLetters', { body: { action, filter } })

  test('discards exactly what it counted, and restores it', async () => {
    const { group, ids } = await fill(catalog, 'orders', 3)
    const filter = `group:${group} "card 1"`
    const { id, hash, ...frozen } = await select('operator', filter)
    expect(frozen).toMatchObject({ action: 'discard', count: 1, sources: ['orders'] })
    const body = { selection: id, hash }
    expect(await codeOf(as('admin').call('discard', { body }))).toBe('not_found')
    expect(await codeOf(as('operator').call('restore', { body }))).toBe('conflict')
    const wrong = { selection: id, hash: 'other' }
    expect(await codeOf(as('operator').call('discard', { body: wrong }))).toBe('conflict')
    const done = { changed: 1, skippedCount: 0, skipped: [] }
    expect(await as('operator').call('discard', { body })).toEqual(done)
    const { entries } = await stage.audit.read({ operation: 'discard', limit: 1 })
    expect(entries[0]).toMatchObject({
      outcome: 'done',
      subject: id,
      source: 'orders',
      facts: { count: 1, hash },
    })
    expect(await catalog.group(group)).toMatchObject({ openCount: ids.length - 1 })
    const again = await select('operator', filter, 'restore')
    const restore = { selection: again.id, hash: again.hash }
    expect(await as('operator').call('restore', { body: restore })).toEqual(done)
    expect(await catalog.group(group)).toMatchObject({ openCount: ids.length })
  })

  test('is limited to sources where the caller may discard', async () => {
    const orders = await fill(catalog, 'orders', 1)
    const billing = await fill(catalog, 'billing', 1)
    const filter = `group:${orders.group} group:${billing.group}`
    expect(await select('operator', filter)).toMatchObject({ count: 1, sources: ['orders'] })
    expect(await codeOf(select('operator', `${filter} source:billing`))).toBe('not_found')
    expect(await codeOf(select('viewer', filter))).toBe('forbidden')
    expect(await codeOf(select('operator', `${filter} status:open`))).toBe('invalid')
    expect(await codeOf(select('operator', 'source:orders'))).toBe('invalid')
  })
})
