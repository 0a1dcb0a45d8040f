import type { ApiError, Input } from '@redrive/api'
import { catalog } from '@redrive/catalog'
import { describe, expect, test } from 'vitest'
import { database, fill, staged } from './http-stage.ts'

const pool = await database('redrive_server_unseen')
const mask = ['/card/number', '/items/0/price'].map((pointer) => ({ pointer, optional: true }))
const stage = await staged(pool, { reading: { sources: { orders: { mask } } } })
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
const testing = { op: 'test' as const, path: '/card', value: 'nr 4111' }
const writing = { op: 'replace' as const, path: '/order', value: 7 }

type Change = NonNullable<Input<'planReplay'>['body']['change']>

/** Plans a replay of a new dead letter, by default as the administrator, with its current ETag. */
async function planned(change?: Change, who = 'admin') {
  const ids = await filled()
  const { etag = '' } = await as('admin').ask('getDeadLetter', { params: { id: ids[0] ?? '' } })
  const body = { selection: { ids }, ...(change === undefined ? {} : { change }) }
  return as(who).call('planReplay', { body, ifMatch: etag })
}

describe('a masked value', () => {
  test('is not revealed by a patch with a test operation', async () => {
    const wrong = { patch: [{ ...testing, value: '1' }] }
    expect(await problemOf(planned(wrong, 'operator'))).toMatchObject({
      code: 'forbidden',
      detail: expect.stringContaining('Permission "view_unmasked" is required') as unknown,
    })
    expect(await codeOf(planned({ patch: [writing] }, 'operator'))).toBe('done')
    const run = await planned(wrong)
    expect(run.skipped).toEqual({ patch_failed: 1 })
    const { items } = await as('viewer').call('listReplayItems', { params: { id: run.id } })
    expect(items[0]?.reason).toContain(
      'operation 1 (test /card): the body has a different value there',
    )
    expect(JSON.stringify(items)).not.toContain('nr 4111')
  })

  test.each([
    ['copied', [{ op: 'copy', from: '/card/number', path: '/trace' }], 'forbidden'],
    ['copied with its object', [{ op: 'copy', from: '/card', path: '/trace' }], 'forbidden'],
    ['copied with the whole body', [{ op: 'copy', from: '', path: '/trace' }], 'forbidden'],
    ['moved', [writing, { op: 'move', from: '/card/number', path: '/order' }], 'forbidden'],
    ['moved by a new first item', [{ op: 'add', path: '/items/0', value: 1 }], 'forbidden'],
    ['moved by the end of an item', [{ op: 'remove', path: '/items/1' }], 'forbidden'],
    ['moved by a copy into its list', [{ op: 'copy', from: '/a', path: '/items/0' }], 'forbidden'],
    ['not copied', [{ op: 'copy', from: '/order', path: '/trace' }], 'done'],
    ['replaced', [{ op: 'replace', path: '/card/number', value: 'x' }], 'done'],
    ['removed', [{ op: 'remove', path: '/card/number' }], 'done'],
    ['kept at its position', [{ op: 'add', path: '/items/-', value: 1 }], 'done'],
  ] as const)('is protected from a patch by which it is %s: %j is %s', async (_, patch, code) => {
    expect(await codeOf(planned({ patch: [...patch] }, 'operator'))).toBe(code)
    expect(await codeOf(planned({ patch: [...patch] }, 'admin'))).toBe('done')
  })

  test('is protected for every kind of selection', async () => {
    const patch = [{ op: 'copy' as const, from: '/card/number', path: '/trace' }]
    const { group } = await fill(stage.catalog, 'orders')
    const other = await fill(stage.catalog, 'billing')
    const plan = (selection: object, who = 'operator') =>
      codeOf(as(who).call('planReplay', { body: { selection, change: { patch } } as never }))
    expect(await plan({ group })).toBe('forbidden')
    expect(await plan({ filter: `group:${group}` })).toBe('forbidden')
    expect(await plan({ filter: 'source:orders after:1h' })).toBe('forbidden')
    // No value of this source is masked.
    expect(await plan({ ids: [...other.ids] }, 'elsewhere')).toBe('done')
  })

  test('is not revealed by a patch of a caller without permission "view_payload"', async () => {
    expect(await codeOf(planned({ patch: [writing] }, 'blindEditor'))).toBe('forbidden')
    expect(await codeOf(planned({ force: true }, 'blindEditor'))).toBe('done')
  })
})

describe('the change of a run', () => {
  const changeOf = (who: string, id: string) => as(who).call('getReplayChange', { params: { id } })

  test('is visible to approvers and editors, and every view is audited', async () => {
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
    const { entries } = await stage.audit.read({ subject: id, operation: 'getReplayChange' })
    expect(entries.map(({ person, outcome }) => `${person} ${outcome}`)).toEqual([
      'reader denied',
      'admin viewed',
      'operator viewed',
      'approver viewed',
    ])
    expect(JSON.stringify(entries)).not.toContain('nr 4111')
  })

  test('is a complete body after an edit and requires permission "view_unmasked"', async () => {
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

  test('is approved only by a person who can see all of it', async () => {
    const approve = async (
      who: string,
      { id, hash }: { readonly id: string; readonly hash: string },
    ) => codeOf(as(who).call('approveReplay', { params: { id }, body: { hash } }))
    const edit = Buffer.from('{"order":2}').toString('base64')
    for (const hidden of [{ edit }, { patch: [testing, writing] }]) {
      const run = await planned(hidden, 'admin')
      expect(await approve('approver', run)).toBe('forbidden')
      expect((await as('admin').call('getReplay', { params: { id: run.id } })).state).toBe(
        'planned',
      )
      expect(await approve('second', run)).toBe('done')
    }
    expect(await approve('approver', await planned({ patch: [writing] }))).toBe('done')
    expect(await approve('approver', await planned({ force: true }))).toBe('done')
  })

  test('is part of the permissions that the run lists for an approver', async () => {
    const edit = Buffer.from('{"order":2}').toString('base64')
    const neededOf = async (change?: Change) => {
      const run = await planned(change)
      const read = await as('approver').call('getReplay', { params: { id: run.id } })
      expect(read.approval).toEqual(run.approval)
      return read.approval?.actions
    }
    expect(await neededOf()).toEqual(['approve'])
    expect(await neededOf({ force: true })).toEqual(['approve'])
    expect(await neededOf({ patch: [writing] })).toEqual(['approve', 'view_payload'])
    const all = ['approve', 'view_payload', 'view_unmasked']
    expect(await neededOf({ patch: [testing, writing] })).toEqual(all)
    expect(await neededOf({ edit })).toEqual(all)
  })

  test('can be a new key only, or nothing', async () => {
    const [forced, plain] = [await planned({ force: true }), await planned()]
    expect(await changeOf('approver', forced.id)).toEqual({ kind: 'force', isHidden: false })
    expect(await changeOf('approver', plain.id)).toEqual({ kind: 'none', isHidden: false })
  })
})

test('a paused run lists why its approval has ended, and can be approved again', async () => {
  const { group } = await fill(stage.catalog, 'orders')
  const { replays } = stage.catalog
  const { id, hash } = await replays.plan({ selection: { group }, by: 'leaver' })
  const read = () => as('approver').call('getReplay', { params: { id } })
  expect((await read()).approval).toEqual({ actions: ['approve'] })
  await replays.approve(id, { by: 'second', hash })
  expect((await read()).approval).toBeUndefined()
  await replays.pause(id, { by: 'operator' })
  expect((await read()).approval).toEqual({
    actions: ['approve'],
    endedBecause: expect.stringContaining('no longer has permission "replay"') as unknown,
  })
  expect(await codeOf(as('operator').call('resumeReplay', { params: { id } }))).toBe('conflict')
  await as('approver').call('approveReplay', { params: { id }, body: { hash } })
  const again = await read()
  expect({ state: again.state, approval: again.approval }).toEqual({ state: 'running' })
  // A pause of a run with a valid approval needs no new one.
  const valid = await planned(undefined, 'operator')
  await as('approver').call('approveReplay', {
    params: { id: valid.id },
    body: { hash: valid.hash },
  })
  await replays.pause(valid.id, { by: 'operator' })
  const paused = await as('approver').call('getReplay', { params: { id: valid.id } })
  expect({ state: paused.state, approval: paused.approval }).toEqual({ state: 'paused' })
})

test('the selection of a run hides payload values and sources that the caller cannot view', async () => {
  await fill(stage.catalog, 'secret project')
  const { group } = await fill(stage.catalog, 'orders', 1, () => ({ salary: 5_000, card: 1 }))
  const query = { groups: [group], json: { '/salary': 5_000 } }
  const sources = ['orders', 'secret project']
  const filter = `group:${group} json:/salary=5000 source:orders source:"secret project"`
  const body = { selection: { filter } }
  const { id, selection } = await as('admin').call('planReplay', { body })
  expect(selection).toEqual({ query: { ...query, sources } })
  const seen = async (who: string) =>
    (await as(who).call('getReplay', { params: { id } })).selection
  expect(await seen('approver')).toEqual({ query: { ...query, sources: ['orders'] } })
  const hidden = { query: { groups: [group], json: { '/salary': '***' }, sources: ['orders'] } }
  expect(await seen('viewer')).toEqual(hidden)
  const { runs } = await as('viewer').call('listReplays', { query: { limit: 1 } })
  expect(runs).toMatchObject([{ id, selection: hidden }])
})

test('a dead letter with a missing key is shown without its body, and the error contains the key', async () => {
  const keys = { current: 'k1', get: () => Buffer.alloc(32, 7) }
  const { ids } = await fill(catalog({ pool, keys }), 'orders')
  const later = { current: 'k2', get: () => undefined }
  const other = await staged(pool, { catalog: () => catalog({ pool, keys: later }) })
  const params = { id: ids[0] ?? '' }
  for (const who of ['viewer', 'admin']) {
    const { id } = await other.as(who).call('getDeadLetter', { params })
    expect(id).toBe(params.id)
  }
  const problem = await problemOf(
    other.as('admin').call('getPayload', { params, query: { reason: 'ticket 7' } }),
  )
  expect(problem).toMatchObject({ code: 'conflict', status: 409 })
  expect(problem?.detail).toContain('key "k1"')
  expect(problem?.detail).toContain('"encryptionKeys.all" of the server config')
})

test('a plan whose change has a missing key is readable and can be cancelled', async () => {
  const keys = { current: 'k1', get: () => Buffer.alloc(32, 7) }
  const encrypting = catalog({ pool, keys })
  const { ids } = await fill(encrypting, 'orders', 1)
  const { id } = await encrypting.replays.plan({
    selection: { ids },
    by: 'ada',
    change: { edit: Buffer.from('{}') },
  })
  const later = { current: 'k2', get: () => undefined }
  const other = await staged(pool, { catalog: () => catalog({ pool, keys: later }) })
  const params = { id }
  const { approval } = await other.as('admin').call('getReplay', { params })
  expect(approval?.actions).toEqual(['approve', 'view_payload', 'view_unmasked'])
  expect((await other.as('admin').call('cancelReplay', { params })).state).toBe('cancelled')
})
