import type { ApiError } from '@redrive/api'
import { describe, expect, test } from 'vitest'
import type { Caller } from '../src/access/caller.ts'
import { database, fill, PEOPLE, SESSION, staged } from './http-stage.ts'

const pool = await database('redrive_server_changes')
const stage = await staged(pool)
const { as, audit, catalog } = stage

/** Returns the code of the error, or `done`. */
async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    return (error as ApiError).code
  }
  return 'done'
}

const outcomes = async (subject: string) =>
  (await stage.audit.read({ subject })).entries.map(
    ({ operation, outcome }) => `${operation} ${outcome}`,
  )

describe('changeGroup', () => {
  test('requires the current ETag', async () => {
    const { group: id } = await fill(catalog, 'orders')
    const path = `/api/v1/groups/${id}`
    const headers = { 'content-type': 'application/json', 'idempotency-key': 'k1' }
    const body = JSON.stringify({ state: 'muted' })
    expect((await stage.ask('operator', path, { method: 'PATCH', headers, body })).status).toBe(428)
    const operator = as('operator')
    const { etag = '' } = await operator.ask('getGroup', { params: { id } })
    const change = (ifMatch: string, state: 'muted' | 'resolved') =>
      operator.ask('changeGroup', { params: { id }, body: { state }, ifMatch })
    expect(await codeOf(change('"another"', 'muted'))).toBe('precondition_failed')
    expect(await codeOf(change('*', 'muted'))).toBe('precondition_failed')
    const muted = await change(etag, 'muted')
    expect(muted.output.state).toBe('muted')
    expect(await codeOf(change(etag, 'resolved'))).toBe('precondition_failed')
    expect((await change(muted.etag ?? '', 'resolved')).output.state).toBe('resolved')
  })

  test('is not prevented by new dead letters', async () => {
    const { group: id } = await fill(catalog, 'orders')
    const before = await as('viewer').ask('getGroup', { params: { id } })
    await pool.query(
      'update redrive_catalog.failure_group set count = count + 1, last_seen_at = now() where id = $1',
      [id],
    )
    const { etag } = await as('viewer').ask('getGroup', { params: { id } })
    expect(etag).toBe(before.etag)
  })

  test('succeeds for one of several concurrent requests', async () => {
    const { group: id } = await fill(catalog, 'orders')
    const { etag = '' } = await as('operator').ask('getGroup', { params: { id } })
    const all = await Promise.all(
      Array.from({ length: 10 }, (_, at) =>
        codeOf(
          as('operator').call('changeGroup', {
            params: { id },
            body: { owner: `owner ${at}`, state: 'resolved' },
            ifMatch: etag,
          }),
        ),
      ),
    )
    expect(all.filter((one) => one === 'done')).toHaveLength(1)
    expect(all.filter((one) => one === 'precondition_failed')).toHaveLength(9)
  })

  test('sets state, mute time and owner together', async () => {
    const { group: id } = await fill(catalog, 'orders')
    const operator = as('operator')
    const change = async (body: Parameters<typeof operator.call<'changeGroup'>>[1]['body']) => {
      const { etag = '' } = await operator.ask('getGroup', { params: { id } })
      return operator.call('changeGroup', { params: { id }, body, ifMatch: etag })
    }
    const mutedUntil = Date.now() + 3_600_000
    expect(await change({ state: 'muted', mutedUntil, owner: 'ada' })).toMatchObject({
      state: 'muted',
      mutedUntil,
      owner: 'ada',
    })
    expect(await change({ owner: null })).toMatchObject({ state: 'muted', mutedUntil })
    const resolved = await change({ state: 'resolved' })
    expect(resolved).toMatchObject({ state: 'resolved', regressed: false })
    expect(resolved.owner).toBeUndefined()
    expect(resolved.mutedUntil).toBeUndefined()
    expect(resolved.resolvedAt).toBeGreaterThan(0)
    expect((await change({ state: 'open' })).resolvedAt).toBeUndefined()
    expect(await codeOf(change({ mutedUntil }))).toBe('invalid')
    expect(await outcomes(id)).toEqual([
      'changeGroup refused',
      'changeGroup requested',
      ...Array.from({ length: 4 }, () => ['changeGroup done', 'changeGroup requested']).flat(),
    ])
  })

  test('treats a group with an expired mute as open', async () => {
    const { group: id } = await fill(catalog, 'orders')
    await catalog.muteGroup(id, { until: Date.now() - 1_000 })
    const { output, etag = '' } = await as('operator').ask('getGroup', { params: { id } })
    expect(output.state).toBe('open')
    const change = { params: { id }, body: { state: 'resolved' as const }, ifMatch: etag }
    expect((await as('operator').call('changeGroup', change)).state).toBe('resolved')
  })
})

describe('an edit', () => {
  const edit = Buffer.from('{"order":2}').toString('base64')

  test('requires the ETag of the current version', async () => {
    const { ids } = await fill(catalog, 'orders')
    const [id = ''] = ids
    const operator = as('operator')
    const body = { selection: { ids: [id] }, change: { edit } }
    expect(await codeOf(operator.call('planReplay', { body }))).toBe('if_match_missing')
    const { etag = '' } = await operator.ask('getDeadLetter', { params: { id } })
    await operator.call('discard', { body: { ids: [id] } })
    await operator.call('restore', { body: { ids: [id] } })
    expect(await codeOf(operator.call('planReplay', { body, ifMatch: etag }))).toBe(
      'precondition_failed',
    )
    const now = await operator.ask('getDeadLetter', { params: { id } })
    const run = await operator.call('planReplay', { body, ifMatch: now.etag ?? '' })
    expect(run).toMatchObject({ isChanged: true, state: 'planned' })
    const { entries } = await stage.audit.read({ operation: 'planReplay', limit: 1 })
    expect(JSON.stringify(entries)).not.toContain(edit)
  })

  test('is bound to that version in the plan', async () => {
    const { ids } = await fill(catalog, 'orders')
    const plan = (seenVersion: number) =>
      catalog.replays.plan({ selection: { ids }, by: 'ada', seenVersion })
    await expect(plan(7)).rejects.toMatchObject({ code: 'CONFLICT' })
    expect(await plan(0)).toMatchObject({ state: 'planned' })
  })
})

describe('a selection', () => {
  test('of several sources requires the permission on each of them', async () => {
    const orders = await fill(catalog, 'orders')
    const billing = await fill(catalog, 'billing')
    const both = { ids: [...orders.ids, ...billing.ids] }
    const operator = as('operator')
    expect(await operator.call('discard', { body: both })).toEqual({
      changed: 1,
      skippedCount: billing.ids.length,
      skipped: [...billing.ids],
    })
    expect((await catalog.deadLetter(billing.ids[0] ?? ''))?.status).toBe('open')
    expect(await codeOf(operator.call('planReplay', { body: { selection: both } }))).toBe(
      'not_found',
    )
    expect(await codeOf(operator.call('discard', { body: { ids: [...billing.ids] } }))).toBe(
      'not_found',
    )
    const asBoth = as('partly')
    expect(await codeOf(asBoth.call('discard', { body: both }))).toBe('forbidden')
    expect(await codeOf(asBoth.call('setOutcomes', { body: { ...both, as: 'open' } }))).toBe(
      'forbidden',
    )
    expect(await codeOf(asBoth.call('planReplay', { body: { selection: both } }))).toBe('forbidden')
  })

  test('by a query is limited to allowed sources and rejects other listed sources', async () => {
    const { ids } = await fill(catalog, 'billing', 2)
    const plan = (who: string, sources: string[] = []) => {
      const filter = ['after:24h', ...sources.map((source) => `source:${source}`)].join(' ')
      return as(who).call('planReplay', { body: { selection: { filter } } })
    }
    const run = await plan('elsewhere')
    expect(run.source).toBe('billing')
    const { items } = await as('elsewhere').call('listReplayItems', {
      params: { id: run.id },
      query: { limit: 200 },
    })
    expect(items.map(({ deadLetter }) => deadLetter)).toEqual(expect.arrayContaining([...ids]))
    expect(await codeOf(plan('elsewhere', ['orders', 'billing']))).toBe('not_found')
    expect(await codeOf(plan('partly', ['billing']))).toBe('forbidden')
    expect((await plan('partly')).source).toBe('orders')
    expect(await codeOf(plan('admin'))).toBe('invalid')
  })

  test('with a change requires permission "edit"', async () => {
    const { ids } = await fill(catalog, 'orders')
    const body = { selection: { ids: [...ids] }, change: { force: true as const } }
    expect(await codeOf(as('replayer').call('planReplay', { body }))).toBe('forbidden')
    expect(
      await codeOf(as('replayer').call('planReplay', { body: { selection: body.selection } })),
    ).toBe('done')
  })
})

describe('the audit log', () => {
  const last = async (what: string) =>
    (await stage.audit.read({ operation: what, limit: 1 })).entries[0]

  test('contains the planned run and its source for every kind of selection', async () => {
    const { ids, group } = await fill(catalog, 'orders')
    const selections = [{ ids: [...ids] }, { group }, { filter: `group:${group} after:24h` }]
    for (const selection of selections) {
      const run = await as('operator').call('planReplay', { body: { selection } })
      expect(await last('planReplay')).toMatchObject({
        outcome: 'done',
        subject: run.id,
        source: 'orders',
        facts: { selection },
      })
      await catalog.replays.cancel(run.id, { by: 'planner' })
    }
  })

  test('contains the id of a created token', async () => {
    const body = { name: 't', actions: ['view' as const], sources: ['orders'], days: 1 }
    const { id } = await as('operator').call('createToken', { body })
    expect(await last('createToken')).toMatchObject({ outcome: 'done', subject: id })
  })

  test('contains the source of an export with one source', async () => {
    const { group } = await fill(catalog, 'orders')
    const path = `/api/v1/dead-letters/export?filter=group:${group}`
    await (await stage.ask('admin', `${path}%20source:orders`)).text()
    expect(await last('exportDeadLetters')).toMatchObject({ outcome: 'viewed', source: 'orders' })
    await (await stage.ask('admin', `${path}%20source:orders%20source:billing`)).text()
    const both = await last('exportDeadLetters')
    expect(both).toMatchObject({ facts: { sources: ['orders', 'billing'] } })
    expect(both?.source).toBeUndefined()
  })
})

describe('an approval', () => {
  const plan = async (who: string) => {
    const { ids } = await fill(catalog, 'orders')
    return as(who).call('planReplay', { body: { selection: { ids: [...ids] } } })
  }

  test('requires another person and the current hash of the plan', async () => {
    const run = await plan('admin')
    const approve = (who: string, hash: string) =>
      codeOf(as(who).call('approveReplay', { params: { id: run.id }, body: { hash } }))
    expect(await approve('admin', run.hash)).toBe('conflict')
    expect(await approve('approver', 'another')).toBe('conflict')
    expect(await approve('approver', run.hash)).toBe('done')
    expect(await approve('approver', run.hash)).toBe('conflict')
    expect((await outcomes(run.id)).filter((one) => one === 'approveReplay refused')).toHaveLength(
      3,
    )
  })

  test('reports whether another person could approve', async () => {
    const run = await plan('admin')
    const approve = async (hash: string) =>
      as('admin')
        .call('approveReplay', { params: { id: run.id }, body: { hash } })
        .catch((error: unknown) => (error as ApiError).problem)
    expect(await approve(run.hash)).toMatchObject({ code: 'conflict', needsAnotherPerson: true })
    expect(await approve('another')).not.toHaveProperty('needsAnotherPerson')
  })

  test('of an agent’s plan is rejected for the owner of the agent', async () => {
    const run = await plan('agent')
    const approval = { params: { id: run.id }, body: { hash: run.hash } }
    expect(await codeOf(as('agent').call('approveReplay', approval))).toBe('forbidden')
    expect(await codeOf(as('owner').call('approveReplay', approval))).toBe('conflict')
    expect(await as('approver').call('approveReplay', approval)).toMatchObject({
      plannedBy: 'agent',
      approvedBy: 'approver',
    })
  })

  test('ends when the planner or the approver loses the permission, and can be renewed', async () => {
    const people: Record<string, Caller> = { ...PEOPLE }
    const other = await staged(pool, { people })
    const { ids } = await fill(catalog, 'orders')
    const body = { selection: { ids: [...ids] } }
    const run = await other.as('operator').call('planReplay', { body })
    const params = { id: run.id }
    const approval = { params, body: { hash: run.hash } }
    await other.as('approver').call('approveReplay', approval)
    const pause = () => other.as('operator').call('pauseReplay', { params })
    const resume = () => other.as('admin').call('resumeReplay', { params })
    for (const name of ['operator', 'approver']) {
      await pause()
      const before = people[name] as Caller
      people[name] = { ...before, grants: [] }
      await expect(resume()).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining('no longer has permission') as unknown,
      })
      expect((await as('admin').call('getReplay', { params })).state).toBe('paused')
      people[name] = before
      expect((await resume()).state).toBe('running')
    }
    await pause()
    // The approval has not ended, so it cannot be renewed, and a repeated approval does not resume the run.
    expect(await codeOf(other.as('second').call('approveReplay', approval))).toBe('conflict')
    people['approver'] = { ...(people['approver'] as Caller), grants: [] }
    expect(await other.as('second').call('approveReplay', approval)).toMatchObject({
      state: 'running',
      approvedBy: 'second',
    })
  })

  test('in advance requires more than permission "configure"', async () => {
    const body = { allowed: true }
    const params = { source: 'orders' }
    expect(await codeOf(as('configurer').call('setAutoReplay', { params, body }))).toBe('forbidden')
    expect(await codeOf(as('configuringAgent').call('setAutoReplay', { params, body }))).toBe(
      'forbidden',
    )
  })
})

describe('tokens of other users', () => {
  const body = { name: 'laptop', actions: ['view' as const], sources: ['orders'], days: 1 }

  test('are listed and revoked by administrators only', async () => {
    const { id } = await as('operator').call('createToken', { body })
    const query = { everyone: true }
    for (const who of ['operator', 'configurer', 'agent', 'adminAgent']) {
      expect(await codeOf(as(who).call('listTokens', { query }))).toBe('forbidden')
      expect(await codeOf(as(who).call('listSessions', {}))).toBe('forbidden')
      const session = { params: { id: SESSION } }
      expect(await codeOf(as(who).call('revokeSession', session))).toBe('forbidden')
    }
    const { tokens } = await as('admin').call('listTokens', { query })
    expect(tokens.find((token) => token.id === id)).toMatchObject({ person: 'operator' })
    expect((await as('admin').call('listTokens', {})).tokens).toEqual([])
    const revoke = (who: string) => codeOf(as(who).call('revokeToken', { params: { id } }))
    for (const who of ['viewer', 'configurer', 'agent']) expect(await revoke(who)).toBe('not_found')
    expect(await revoke('admin')).toBe('done')
    const { entries } = await audit.read({ operation: 'revokeToken', limit: 1 })
    expect(entries).toMatchObject([{ outcome: 'done', person: 'admin', subject: id }])
  })
})

describe('a body', () => {
  test('is masked for callers with permission "view_payload", and every view is audited', async () => {
    const { ids } = await fill(catalog, 'orders')
    const params = { id: ids[0] ?? '' }
    const hidden = await as('viewer').call('getDeadLetter', { params })
    expect(hidden.body).toEqual({ isHidden: true })
    expect(await outcomes(params.id)).toEqual([])
    const shown = await as('operator').call('getDeadLetter', { params })
    expect(shown.body).toEqual({ isHidden: false, preview: { order: 0, card: '***' } })
    expect(shown.headers['authorization']).not.toBe('Basic secret')
    expect(await outcomes(params.id)).toEqual(['getDeadLetter viewed'])
    const query = { reason: 'ticket 7' }
    const payload = await as('admin').call('getPayload', { params, query })
    expect(JSON.parse(payload.text ?? '')).toEqual({ order: 0, card: 'nr 4111' })
    expect(payload.headers['authorization']).toBe('Basic secret')
    expect((await outcomes(params.id))[0]).toBe('getPayload viewed')
  })

  test('without valid UTF-8 has no text', async () => {
    const bytes = Uint8Array.from([0xff, 0x00, 0x80])
    const { ids } = await fill(catalog, 'orders', 1, () => bytes)
    const payload = await as('admin').call('getPayload', {
      params: { id: ids[0] ?? '' },
      query: { reason: 'ticket 7' },
    })
    expect(payload.text).toBeUndefined()
    expect(Buffer.from(payload.bytes, 'base64')).toEqual(Buffer.from(bytes))
  })

  test('is not revealed by filters on its values', async () => {
    const { group } = await fill(catalog, 'orders', 1, () => ({ salary: 5_000, card: 1 }))
    const missing = {
      code: 'forbidden',
      message: expect.stringContaining('view_payload') as unknown,
    }
    for (const source of ['', 'source:orders']) {
      for (const value of ['json:/salary=5000', 'extracted:salary=5000']) {
        const filter = `group:${group} ${source} ${value}`
        const query = { filter }
        await expect(as('viewer').call('listDeadLetters', { query })).rejects.toMatchObject(missing)
        const found = await as('operator').call('listDeadLetters', { query })
        expect(found.deadLetters).toHaveLength(1)
        const body = { selection: { filter } }
        await expect(as('replayer').call('planReplay', { body })).rejects.toMatchObject(missing)
        expect((await as('operator').call('planReplay', { body })).counts.planned).toBe(1)
      }
    }
    // Without permission "view" the result is empty, as without the filter.
    const elsewhere = { filter: 'source:billing extracted:salary=5000 after:0' }
    expect(await as('viewer').call('listDeadLetters', { query: elsewhere })).toEqual({
      deadLetters: [],
    })
    const { entries } = await audit.read({
      person: 'viewer',
      operation: 'listDeadLetters',
      limit: 1,
    })
    expect(entries).toMatchObject([{ outcome: 'denied', facts: { action: 'view_payload' } }])
  })
})

describe('pages', () => {
  test('continue after the previous page, with any filter', async () => {
    const { group, ids } = await fill(catalog, 'orders', 5)
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const filter = `group:${group} after:0 card`
      const query = { filter, limit: 2, ...(cursor === undefined ? {} : { cursor }) }
      const page = await as('viewer').call('listDeadLetters', { query })
      seen.push(...page.deadLetters.map(({ id }) => id))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(seen).toEqual(ids)
    const odd = await as('viewer').call('listGroups', { query: { text: `%_'"\\&=ü` } })
    expect(odd.groups).toEqual([])
  })

  test('of the audit log require permission "configure" on the source or on all', async () => {
    const auditor = as('configurer')
    expect(await codeOf(auditor.call('listAudit', {}))).toBe('forbidden')
    expect(await codeOf(auditor.call('listAudit', { query: { source: 'billing' } }))).toBe(
      'not_found',
    )
    const { entries } = await auditor.call('listAudit', { query: { source: 'orders', limit: 5 } })
    expect(entries.every(({ source }) => source === 'orders')).toBe(true)
    expect(entries.length).toBe(5)
  })
})
