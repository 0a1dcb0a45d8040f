import { ApiError } from '@redrive/api'
import { describe, expect, test } from 'vitest'
import { database, fill, staged } from './http-stage.ts'

const stage = await staged(await database('redrive_server_merge'))
const { catalog } = stage

const groupOf = async (source: string, count = 1) => (await fill(catalog, source, count)).group

/** Returns the problem that a request is rejected with. */
async function problemOf(request: Promise<unknown>) {
  const error: unknown = await request.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof ApiError) return error.problem
  throw new Error('The request was not rejected with a problem.')
}

describe('a merge over HTTP', () => {
  test('moves counts to the target, is undone, and both are audited with user, reason and groups', async () => {
    const [target, other] = [await groupOf('orders', 2), await groupOf('orders', 3)]
    const operator = stage.as('operator')
    const body = { groups: [other], reason: 'one contract' }
    const merged = await operator.call('mergeGroups', { params: { id: target }, body })
    expect(merged).toMatchObject({ id: target, openCount: 5, mergedCount: 1 })
    const viewer = stage.as('viewer')
    const found = await viewer.call('getGroup', { params: { id: other } })
    expect(found.mergedInto).toMatchObject({
      group: target,
      by: 'operator',
      reason: 'one contract',
    })
    const { groups } = await viewer.call('listMergedGroups', { params: { id: target } })
    expect(groups.map(({ id }) => id)).toEqual([other])
    const list = await viewer.call('listDeadLetters', { query: { filter: `group:${target}` } })
    expect(list.deadLetters).toHaveLength(5)
    const undone = { params: { id: other }, body: { reason: 'two contracts' } }
    expect(await operator.call('unmergeGroup', undone)).toMatchObject({ openCount: 3 })
    const { entries } = await stage.audit.read({ person: 'operator', limit: 4 })
    expect(entries.map(({ operation, outcome, source }) => [operation, outcome, source])).toEqual([
      ['unmergeGroup', 'done', 'orders'],
      ['unmergeGroup', 'requested', 'orders'],
      ['mergeGroups', 'done', 'orders'],
      ['mergeGroups', 'requested', 'orders'],
    ])
    expect(entries[0]?.facts).toMatchObject({ reason: 'two contracts', from: target })
    expect(entries[3]).toMatchObject({ subject: target, facts: body })
  })

  test('rejects another source, a viewer and a group that the caller cannot see', async () => {
    const [target, other] = [await groupOf('orders'), await groupOf('billing')]
    const body = { groups: [other], reason: 'same text' }
    const input = { params: { id: target }, body }
    const foreign = await problemOf(stage.as('admin').call('mergeGroups', input))
    expect(foreign.status).toBe(409)
    expect(foreign.detail).toContain(
      'belongs to source "billing" and the target to source "orders"',
    )
    expect((await problemOf(stage.as('operator').call('mergeGroups', input))).status).toBe(404)
    const second = await groupOf('orders')
    const own = { params: { id: target }, body: { ...body, groups: [second] } }
    const denied = await problemOf(stage.as('viewer').call('mergeGroups', own))
    expect(denied.status).toBe(403)
    expect(denied.detail).toContain('"discard"')
    expect((await catalog.group(target))?.mergedCount).toBe(0)
  })

  test('rejects a change of a merged group and names the group to change', async () => {
    const [target, other] = [await groupOf('orders'), await groupOf('orders')]
    await catalog.regrouping.merge(target, { groups: [other], by: 'ada', reason: 'one cause' })
    const admin = stage.as('admin')
    const { etag = '' } = await admin.ask('getGroup', { params: { id: other } })
    const change = { params: { id: other }, body: { state: 'resolved' as const }, ifMatch: etag }
    const problem = await problemOf(admin.call('changeGroup', change))
    expect(problem.status).toBe(409)
    expect(problem.detail).toContain(target)
  })
})

describe('a split over HTTP', () => {
  test('moves matching dead letters to a named group and is audited', async () => {
    const id = await groupOf('orders', 3)
    const body = { filter: '"card 1"', name: 'card one', reason: 'other cause' }
    const done = await stage.as('operator').call('splitGroup', { params: { id }, body })
    expect(done).toMatchObject({
      moved: 1,
      examined: 3,
      group: { title: 'card one', openCount: 1 },
    })
    expect((await catalog.group(id))?.openCount).toBe(2)
    const { entries } = await stage.audit.read({ operation: 'splitGroup', limit: 1 })
    const filter = expect.stringMatching(/^text:hmac:[0-9a-f]{32}$/) as unknown
    const counts = { moved: 1, examined: 3, isComplete: true }
    const facts = { filter, newGroup: 'card one', reason: 'other cause', ...counts }
    expect(entries).toMatchObject([
      { person: 'operator', outcome: 'done', source: 'orders', subject: id, facts },
    ])
  })

  test('rejects fields that cannot apply to later dead letters, and a viewer', async () => {
    const id = await groupOf('orders')
    const body = { filter: 'after:2h declined', name: 'recent', reason: 'x' }
    const problem = await problemOf(stage.as('admin').call('splitGroup', { params: { id }, body }))
    expect(problem.status).toBe(400)
    expect(problem.detail).toContain('no other field. The filter also has after.')
    const valid = { ...body, filter: 'declined' }
    const denied = await problemOf(
      stage.as('viewer').call('splitGroup', { params: { id }, body: valid }),
    )
    expect(denied.status).toBe(403)
  })
})
