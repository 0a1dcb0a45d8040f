import { catalog } from '@redrive/catalog'
import { describe, expect, test } from 'vitest'
import { database, fill, staged } from './http-stage.ts'

const rule = { name: 'cards', source: 'orders', match: { text: 'card * declined' }, group: 'Cards' }
const elsewhere = { name: 'bills', source: 'billing', match: { code: 'E9' }, group: 'Bills' }
const pool = await database('redrive_server_fingerprints')
const stage = await staged(pool, {
  catalog: () => catalog({ pool, fingerprints: [rule, elsewhere] }),
})
// The catalog of the stage has no rules, as a server before its config was changed.
await fill(stage.catalog, 'orders', 3)
await fill(stage.catalog, 'orders', 2)
await fill(stage.catalog, 'billing', 1)

describe('fingerprint rules over HTTP', () => {
  test('are listed, without those of sources that the caller cannot view', async () => {
    expect(await stage.as('viewer').call('listFingerprints', {})).toEqual({ rules: [rule] })
    expect((await stage.as('admin').call('listFingerprints', {})).rules).toHaveLength(2)
  })

  test('show what they would move, only in sources that the caller can view', async () => {
    const found = await stage.as('viewer').call('previewFingerprints', { body: {} })
    expect(found).toMatchObject({ examined: 5, isComplete: true })
    expect(found.rules[0]).toMatchObject({ rule: 'cards', group: 'Cards', count: 5 })
    expect(found.rules[0]?.from.map(({ count }) => count)).toEqual([3, 2])
    const other = { name: 'try', match: { code: 'E1' }, group: 'Codes' }
    const body = { rules: [other], sources: ['billing'] }
    const tried = await stage.as('admin').call('previewFingerprints', { body })
    expect(tried.rules).toMatchObject([{ rule: 'try', count: 1, group: 'Codes' }])
    expect(await stage.as('viewer').call('previewFingerprints', { body })).toMatchObject({
      examined: 0,
    })
  })

  test('move existing dead letters after an explicit request, which is audited', async () => {
    const body = { sources: ['orders'], reason: 'one runbook' }
    const applied = await stage.as('operator').call('applyFingerprints', { body })
    expect(applied).toEqual({ moved: 5, examined: 5 })
    const query = { sources: ['orders'], hasOpen: true }
    const { groups } = await stage.as('viewer').call('listGroups', { query })
    expect(groups).toMatchObject([{ title: 'Cards', name: 'Cards', openCount: 5 }])
    const { entries } = await stage.audit.read({ operation: 'applyFingerprints', limit: 2 })
    expect(entries.map(({ outcome }) => outcome)).toEqual(['done', 'requested'])
    expect(entries[0]).toMatchObject({
      person: 'operator',
      source: 'orders',
      facts: {
        ...{ reason: 'one runbook', rules: ['cards', 'bills'] },
        ...{ moved: 5, examined: 5, isComplete: true },
      },
    })
  })

  test('reject an invalid rule with its problem', async () => {
    const body = { rules: [{ name: 'none', match: {}, group: 'x' }] }
    await expect(stage.as('viewer').call('previewFingerprints', { body })).rejects.toMatchObject({
      problem: {
        status: 400,
        problems: [
          'fingerprints[0]: match: expected at least one of class, code, type, errorType, handler, text',
        ],
      },
    })
  })
})
