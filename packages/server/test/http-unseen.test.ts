import type { ApiError, Input } from '@redrive/api'
import { catalog } from '@redrive/catalog'
import { describe, expect, test } from 'vitest'
import { database, fill, staged } from './http-stage.ts'

const pool = await database('redrive_server_unseen')
const stage = await staged(pool)
const { as } = stage

async function problemOf(work: Promise<unknown>): Promise<ApiError['problem'] | undefined> {
  try {
    await work
    return undefined
  } catch (error) {
    return (error as ApiError).problem
  }
}

const codeOf = async (work: Promise<unknown>) => (await problemOf(work))?.code ?? 'done'
const filled = async () => [...(await fill(stage.catalog, 'orders')).ids]
const testing = { op: 'test' as const, path: '/card', value: '4111' }
const writing = { op: 'replace' as const, path: '/order', value: 7 }

type Change = NonNullable<Input<'planReplay'>['body']['change']>

/** Planned by who may do everything; an edit as it was looked at. */
async function planned(change?: Change, who = 'admin') {
  const ids = await filled()
  const { etag = '' } = await as('admin').ask('getDeadLetter', { params: { id: ids[0] ?? '' } })
  const body = { selection: { ids }, ...(change === undefined ? {} : { change }) }
  return as(who).call('planReplay', { body, ifMatch: etag })
}

describe('a masked value', () => {
  test('is not found out by a patch that tests it', async () => {
    const wrong = { patch: [{ ...testing, value: '1' }] }
    expect(await problemOf(planned(wrong, 'operator'))).toMatchObject({
      code: 'forbidden',
      detail: expect.stringContaining('may not unmask') as unknown,
    })
    expect(await codeOf(planned({ patch: [writing] }, 'operator'))).toBe('done')
    const run = await planned(wrong)
    expect(run.skipped).toEqual({ not_changeable: 1 })
    const { items } = await as('viewer').call('listReplayItems', { params: { id: run.id } })
    expect(items[0]?.reason).toContain('operation 1 (test /card): the body has another value there')
    expect(JSON.stringify(items)).not.toContain('4111')
  })

  test('and what a body has at all is not found out by a patch of who sees no bodies', async () => {
    expect(await codeOf(planned({ patch: [writing] }, 'blindEditor'))).toBe('forbidden')
    expect(await codeOf(planned({ force: true }, 'blindEditor'))).toBe('done')
  })
})

describe('what a run changes', () => {
  const changeOf = (who: string, id: string) => as(who).call('getReplayChange', { params: { id } })

  test('is shown to who approves it and to who edits, and that is written down', async () => {
    const { id } = await planned({ patch: [testing, writing] })
    const masked = [{ op: 'test', path: '/card' }, writing]
    for (const who of ['approver', 'operator']) {
      expect(await changeOf(who, id)).toEqual({ kind: 'patch', isHidden: true, patch: masked })
    }
    const all = { kind: 'patch', isHidden: false, patch: [testing, writing] }
    expect(await changeOf('admin', id)).toEqual(all)
    for (const who of ['viewer', 'reader', 'blindEditor']) {
      expect(await codeOf(changeOf(who, id))).toBe('forbidden')
    }
    const { entries } = await stage.audit.read({ subject: id, what: 'getReplayChange' })
    expect(entries.map(({ person, outcome }) => `${person} ${outcome}`)).toEqual([
      'reader denied',
      'admin seen',
      'operator seen',
      'approver seen',
    ])
    expect(JSON.stringify(entries)).not.toContain('4111')
  })

  test('is a whole body when it is edited, and only for who may unmask', async () => {
    const text = '{"order":1,"card":"4222"}'
    const edit = Buffer.from(text).toString('base64')
    const { id } = await planned({ edit })
    expect(await changeOf('approver', id)).toEqual({ kind: 'edit', isHidden: true })
    expect(await changeOf('admin', id)).toEqual({
      kind: 'edit',
      isHidden: false,
      bytes: edit,
      text,
    })
  })

  test('may be its key alone, or nothing', async () => {
    const [forced, plain] = [await planned({ force: true }), await planned()]
    expect(await changeOf('approver', forced.id)).toEqual({ kind: 'force', isHidden: false })
    expect(await changeOf('approver', plain.id)).toEqual({ kind: 'none', isHidden: false })
  })
})

test('the selection of a run has no values of bodies and no sources that who looks may not see', async () => {
  await fill(stage.catalog, 'secret project')
  const { group } = await fill(stage.catalog, 'orders', 1, () => ({ salary: 5_000 }))
  const query = { groups: [group], json: { '/salary': 5_000 } }
  const sources = ['orders', 'secret project']
  const body = { selection: { query: { ...query, sources } } }
  const { id, selection } = await as('admin').call('planReplay', { body })
  expect(selection).toEqual(body.selection)
  const seen = async (who: string) =>
    (await as(who).call('getReplay', { params: { id } })).selection
  expect(await seen('approver')).toEqual({ query: { ...query, sources: ['orders'] } })
  const hidden = { query: { groups: [group], json: { '/salary': '***' }, sources: ['orders'] } }
  expect(await seen('viewer')).toEqual(hidden)
  const { runs } = await as('viewer').call('listReplays', { query: { most: 1 } })
  expect(runs).toMatchObject([{ id, selection: hidden }])
})

test('a dead letter whose key is gone is shown without its body, which says which key and where', async () => {
  const keys = { current: 'k1', get: () => Buffer.alloc(32, 7) }
  const { ids } = await fill(catalog({ pool, keys }), 'orders')
  const later = { current: 'k2', get: () => undefined }
  const other = await staged(pool, { catalog: () => catalog({ pool, keys: later }) })
  const params = { id: ids[0] ?? '' }
  for (const who of ['viewer', 'admin']) {
    const { id } = await other.as(who).call('getDeadLetter', { params })
    expect(id).toBe(params.id)
  }
  const problem = await problemOf(other.as('admin').call('getPayload', { params }))
  expect(problem).toMatchObject({ code: 'conflict', status: 409 })
  expect(problem?.detail).toContain("key 'k1'")
  expect(problem?.detail).toContain("'keys.all' in the config")
})
