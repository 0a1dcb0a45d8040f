import { describe, expect, test } from 'vitest'
import { database, fill, setOneAside, staged } from './http-stage.ts'

const stage = await staged(await database('redrive_server_set_aside'))
const { catalog } = stage
await fill(catalog, 'billing')

describe('set-aside messages', () => {
  test('are listed and counted for callers of their source, with their body and headers', async () => {
    const id = await setOneAside(catalog, 'orders', { trace: 'abc' })
    const { messages } = await stage.as('viewer').call('listSetAside', {})
    expect(messages).toMatchObject([{ id, source: 'orders', reason: 'body_too_large' }])
    expect((await stage.as('elsewhere').call('listSetAside', {})).messages).toEqual([])
    const { setAside, alerts } = await stage.as('viewer').call('overview', {})
    expect(setAside).toBe(1)
    expect(alerts).toContainEqual({ kind: 'set_aside', source: 'orders', count: 1 })
    const { sources } = await stage.as('viewer').call('listSources', {})
    expect(sources).toMatchObject([{ source: 'orders', setAside: 1 }])
    const payload = await stage.as('admin').call('getSetAsidePayload', {
      params: { id },
      query: { reason: 'ticket 7' },
    })
    const { messageId } = messages[0] ?? {}
    expect(JSON.parse(Buffer.from(payload.bytes, 'base64').toString())).toEqual({
      order: messageId,
    })
    expect(payload.encodedHeaders?.split('\n').map((line) => JSON.parse(line) as unknown)).toEqual([
      ['table', 'trace', 1],
      'abc',
    ])
    const { entries } = await stage.audit.read({ operation: 'getSetAsidePayload', limit: 1 })
    expect(entries).toMatchObject([{ outcome: 'viewed', source: 'orders', subject: id }])
  })

  test('are replayed without some headers only if the approver names these headers', async () => {
    const id = await setOneAside(catalog, 'orders')
    const body = { ids: [id], withoutHeaders: ['stack'] }
    await stage.as('admin').call('replaySetAside', { body })
    const unseen = await stage.as('approver').call('approveSetAside', { body: { ids: [id] } })
    expect(unseen).toEqual({ changed: 0, skipped: [id] })
    const approved = await stage.as('approver').call('approveSetAside', { body })
    expect(approved).toEqual({ changed: 1, skipped: [] })
  })

  test('are replayed after a request and the approval of another person, with audit entries', async () => {
    const id = await setOneAside(catalog, 'orders')
    const body = { ids: [id] }
    const changed = { ids: [id], withoutHeaders: ['stack'] }
    await expect(
      stage.as('replayer').call('replaySetAside', { body: changed }),
    ).rejects.toMatchObject({ problem: { status: 403 } })
    const missing = '00000000-0000-0000-0000-000000000000'
    const requested = await stage
      .as('admin')
      .call('replaySetAside', { body: { ids: [id, missing] } })
    expect(requested).toEqual({ changed: 1, skipped: [missing] })
    await expect(stage.as('admin').call('approveSetAside', { body })).rejects.toMatchObject({
      problem: { needsAnotherPerson: true },
    })
    const approved = await stage.as('approver').call('approveSetAside', { body })
    expect(approved).toEqual({ changed: 1, skipped: [] })
    expect((await catalog.setAside.get(id))?.status).toBe('replaying')
    const { entries: approvals } = await stage.audit.read({
      operation: 'approveSetAside',
      limit: 1,
    })
    expect(approvals).toMatchObject([{ outcome: 'done', facts: { withoutHeaders: [] } }])
    const { entries } = await stage.audit.read({ subject: id })
    expect(entries.map(({ operation, outcome }) => `${operation} ${outcome}`)).toEqual([
      'approveSetAside done',
      'approveSetAside requested',
      'approveSetAside refused',
      'approveSetAside requested',
      'replaySetAside done',
      'replaySetAside requested',
    ])
  })
})
