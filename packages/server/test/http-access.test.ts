import { randomUUID } from 'node:crypto'
import type { Input, Operation, PlainOperation } from '@redrive/api'
import { ROUTES } from '@redrive/api/internal'
import { describe, expect, test } from 'vitest'
import { openApi } from '../src/http/openapi.ts'
import { database, fill, setOneAside, type Stage, staged, SESSION } from './http-stage.ts'

const stage = await staged(await database('redrive_server_access'))
await fill(stage.catalog, 'billing', 3)
await fill(stage.catalog, 'orders')

const CALLERS = [
  'viewer',
  'operator',
  'approver',
  'admin',
  'elsewhere',
  'agent',
  'noGrants',
  'mixed',
] as const

type Cell = 'ok' | 403 | 404
type Row = readonly [Cell, Cell, Cell, Cell, Cell, Cell, Cell, Cell]

/**
 * The expected status of each operation on the source `orders`, by caller. `elsewhere` is an operator of another
 * source. `agent` has the roles operator and approver. `admin` has all permissions on all sources. `mixed` is an admin
 * of another source and a viewer of this one. The test fails for a route without a row.
 */
// biome-ignore format: to be read as a table
const RULES: Readonly<Record<Operation, Row>> = {
  //                       viewer operator approver admin elsewhere agent noGrants mixed
  me:                     ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'],
  overview:               ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 403, 'ok'],
  listSources:            ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 403, 'ok'],
  setSchema:             [403, 403, 403, 'ok', 403, 403, 403, 403],
  setAutoReplay:        [403, 403, 403, 'ok', 403, 403, 403, 403],
  listGroups:             ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 403, 'ok'],
  getGroup:               ['ok', 'ok', 'ok', 'ok', 404, 'ok', 403, 'ok'],
  explainGroup:           ['ok', 'ok', 'ok', 'ok', 404, 'ok', 403, 'ok'],
  changeGroup:            [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  mergeGroups:            [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  unmergeGroup:           [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  splitGroup:             [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  listMergedGroups:       ['ok', 'ok', 'ok', 'ok', 404, 'ok', 403, 'ok'],
  listFingerprints:       ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 403, 'ok'],
  previewFingerprints:    ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 403, 'ok'],
  applyFingerprints:      [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  listGroupComments:      ['ok', 'ok', 'ok', 'ok', 404, 'ok', 403, 'ok'],
  commentGroup:           [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  listExpired:            ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 403, 'ok'],
  trend:                  ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 403, 'ok'],
  listDeadLetters:        ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 403, 'ok'],
  exportDeadLetters:      [403, 403, 403, 'ok', 403, 403, 403, 403],
  getDeadLetter:          ['ok', 'ok', 'ok', 'ok', 404, 'ok', 403, 'ok'],
  getPayload:             [403, 403, 403, 'ok', 403, 403, 403, 403],
  listCycles:             ['ok', 'ok', 'ok', 'ok', 404, 'ok', 403, 'ok'],
  listDeadLetterReplays:  ['ok', 'ok', 'ok', 'ok', 404, 'ok', 403, 'ok'],
  listDeadLetterComments: ['ok', 'ok', 'ok', 'ok', 404, 'ok', 403, 'ok'],
  commentDeadLetter:      [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  selectDeadLetters:      [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  discard:                [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  restore:                [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  setOutcomes:                 [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  listSetAside:           ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 403, 'ok'],
  getSetAside:            ['ok', 'ok', 'ok', 'ok', 404, 'ok', 403, 'ok'],
  getSetAsidePayload:     [403, 403, 403, 'ok', 403, 403, 403, 403],
  replaySetAside:         [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  approveSetAside:        [403, 403, 'ok', 'ok', 403, 403, 403, 403],
  discardSetAside:        [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  reopenSetAside:         [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  planReplay:             [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  listReplays:            ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 403, 'ok'],
  getReplay:              ['ok', 'ok', 'ok', 'ok', 404, 'ok', 403, 'ok'],
  watchReplay:            ['ok', 'ok', 'ok', 'ok', 404, 'ok', 403, 'ok'],
  listReplayItems:        ['ok', 'ok', 'ok', 'ok', 404, 'ok', 403, 'ok'],
  getReplayChange:        [403, 'ok', 'ok', 'ok', 404, 'ok', 403, 403],
  approveReplay:          [403, 403, 'ok', 'ok', 403, 403, 403, 403],
  pauseReplay:            [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  resumeReplay:           [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  cancelReplay:           [403, 'ok', 403, 'ok', 404, 'ok', 403, 403],
  acknowledgeRestore:     [403, 403, 403, 'ok', 403, 403, 403, 403],
  listTokens:             ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'],
  createToken:            ['ok', 'ok', 'ok', 'ok', 'ok', 403, 'ok', 'ok'],
  revokeToken:            ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'ok'],
  listSessions:           [403, 403, 403, 'ok', 403, 403, 403, 403],
  revokeSession:          [403, 403, 403, 'ok', 403, 403, 403, 403],
  listAudit:              [403, 403, 403, 'ok', 403, 403, 403, 403],
}

type Examples = { readonly [K in Operation]: (stage: Stage, who: string) => Promise<Input<K>> }

const DAY = 86_400_000
const ids = async ({ catalog }: Stage) => (await fill(catalog, 'orders')).ids
const byDeadLetter = async (on: Stage) => ({ params: { id: (await ids(on))[0] ?? '' } })
const twoGroups = async (catalog: Stage['catalog']) => [
  (await fill(catalog, 'orders')).group,
  (await fill(catalog, 'orders')).group,
]
const byGroup = async ({ catalog }: Stage) => ({
  params: { id: (await fill(catalog, 'orders')).group },
})
const planned = async (on: Stage) => {
  const selection = { ids: await ids(on) }
  return on.catalog.replays.plan({ selection, by: 'operator' })
}
const running = async (on: Stage) => {
  const { id, hash } = await planned(on)
  await on.catalog.replays.approve(id, { hash, by: 'approver' })
  return { params: { id } }
}
const byRun = async (on: Stage) => ({ params: { id: (await planned(on)).id } })
const bySetAside = async ({ catalog }: Stage) => ({
  body: { ids: [await setOneAside(catalog, 'orders')] },
})
const orders = { params: { source: 'orders' } }
const recent = { query: { filter: 'source:orders after:24h' } }
const token = { name: 't', actions: ['view'], sources: ['orders'], days: 1 } as const

/** Valid requests by operation, each on new data. They succeed for a caller with the permission. */
const EXAMPLES: Examples = {
  me: async () => ({}),
  overview: async () => ({}),
  listSources: async () => ({}),
  setSchema: async () => ({ ...orders, body: { type: 'none', schema: {} } }),
  setAutoReplay: async () => ({ ...orders, body: { allowed: false } }),
  listGroups: async () => ({}),
  getGroup: byGroup,
  explainGroup: byGroup,
  async changeGroup(on) {
    const { params } = await byGroup(on)
    const { etag = '' } = await on.as('admin').ask('getGroup', { params })
    return { params, body: { state: 'resolved' }, ifMatch: etag }
  },
  async mergeGroups({ catalog }) {
    const [target = '', other = ''] = await twoGroups(catalog)
    return { params: { id: target }, body: { groups: [other], reason: 'same cause' } }
  },
  async unmergeGroup({ catalog }) {
    const [target = '', other = ''] = await twoGroups(catalog)
    await catalog.regrouping.merge(target, { groups: [other], by: 'planner', reason: 'same cause' })
    return { params: { id: other }, body: { reason: 'two causes' } }
  },
  splitGroup: async (on, who) => ({
    ...(await byGroup(on)),
    body: { filter: 'declined', name: `declined ${who} ${randomUUID()}`, reason: 'two causes' },
  }),
  listMergedGroups: byGroup,
  listFingerprints: async () => ({}),
  previewFingerprints: async () => ({
    body: { rules: [{ name: 'all', match: { text: 'declined' }, group: 'declined' }] },
  }),
  applyFingerprints: async () => ({ body: { sources: ['orders'], reason: 'new rules' } }),
  listGroupComments: byGroup,
  commentGroup: async (on) => ({ ...(await byGroup(on)), body: { text: 'hello' } }),
  listExpired: async () => ({}),
  trend: async () => ({ query: { per: 'hour', after: Date.now() - DAY, before: Date.now() } }),
  listDeadLetters: async () => recent,
  exportDeadLetters: async () => recent,
  getDeadLetter: byDeadLetter,
  getPayload: async (on) => ({ ...(await byDeadLetter(on)), query: { reason: 'ticket 7' } }),
  listCycles: byDeadLetter,
  listDeadLetterReplays: byDeadLetter,
  listDeadLetterComments: byDeadLetter,
  commentDeadLetter: async (on) => ({ ...(await byDeadLetter(on)), body: { text: 'hello' } }),
  async selectDeadLetters(on) {
    const { group } = await fill(on.catalog, 'orders')
    return { body: { action: 'discard', filter: `source:orders group:${group}` } }
  },
  discard: async (on) => ({ body: { ids: [...(await ids(on))] } }),
  restore: async (on) => ({ body: { ids: [...(await ids(on))] } }),
  setOutcomes: async (on) => ({ body: { ids: [...(await ids(on))], as: 'open' } }),
  listSetAside: async () => ({ query: { sources: ['orders'] } }),
  getSetAside: async ({ catalog }) => ({ params: { id: await setOneAside(catalog, 'orders') } }),
  getSetAsidePayload: async ({ catalog }) => ({
    params: { id: await setOneAside(catalog, 'orders') },
    query: { reason: 'ticket 7' },
  }),
  replaySetAside: bySetAside,
  async approveSetAside(on) {
    const { body } = await bySetAside(on)
    await on.catalog.setAside.requestReplay(body.ids, { by: 'planner' })
    return { body }
  },
  discardSetAside: bySetAside,
  async reopenSetAside(on) {
    const { body } = await bySetAside(on)
    await on.catalog.setAside.discard(body.ids, { by: 'planner' })
    return { body }
  },
  planReplay: async (on) => ({ body: { selection: { ids: [...(await ids(on))] } } }),
  listReplays: async () => ({}),
  getReplay: byRun,
  async watchReplay(on) {
    const { params } = await byRun(on)
    await on.catalog.replays.cancel(params.id, { by: 'planner' })
    return { params }
  },
  listReplayItems: byRun,
  getReplayChange: byRun,
  async approveReplay(on) {
    const { id, hash } = await planned(on)
    return { params: { id }, body: { hash } }
  },
  pauseReplay: running,
  async resumeReplay(on) {
    const { params } = await running(on)
    await on.catalog.replays.pause(params.id, { by: 'planner' })
    return { params }
  },
  cancelReplay: byRun,
  acknowledgeRestore: async () => ({}),
  listTokens: async () => ({}),
  createToken: async () => ({ body: { ...token, actions: ['view'], sources: ['orders'] } }),
  async revokeToken(on, who) {
    // Created without the API, because an agent cannot create tokens with it.
    const body = { ...token, actions: ['view' as const], sources: ['orders'] }
    const { id } = await on.tokens(who).create(body)
    return { params: { id } }
  },
  listSessions: async () => ({}),
  revokeSession: async () => ({ params: { id: SESSION } }),
  listAudit: async () => ({}),
}

/** Returns the operations in the OpenAPI document. */
function documented(): readonly string[] {
  const paths = openApi()['paths'] as Record<string, Record<string, { operationId: string }>>
  return Object.values(paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  )
}

/** Returns a hash of all data that a mutation can change. */
async function fingerprint(): Promise<string> {
  const tables = [
    'dead_letter',
    'failure_group',
    'group_part',
    'group_split',
    'replay_run',
    'replay_item',
    'comment',
    'source_schema',
    'set_aside',
  ]
  const parts = tables.map(
    (name) => `(select md5(coalesce(string_agg(t::text, '' order by t::text), ''))
    from redrive_catalog.${name} t)`,
  )
  const { rows } = await stage.pool.query<{ all: string }>(
    `select concat(${parts.join(', ')}, (select string_agg(auto_replay::text, '') from redrive_catalog.source)) as all`,
  )
  return rows[0]?.all ?? ''
}

async function statusOf(
  operation: Operation,
  who: string | undefined,
  input: unknown,
): Promise<Cell | 401> {
  const client = stage.as(who)
  try {
    if ('stream' in ROUTES[operation]) {
      const all = client.stream(operation as 'watchReplay', input as Input<'watchReplay'>)
      for await (const _ of all) continue
    } else await client.call(operation as PlainOperation, input as Input<PlainOperation>)
    return 'ok'
  } catch (error) {
    const { problem } = error as { problem?: { status: number } }
    if (problem === undefined) throw error
    return problem.status as Cell
  }
}

describe('every route of the document, for every caller', () => {
  test('has a rule and an example', () => {
    const names = documented().toSorted()
    expect(Object.keys(RULES).toSorted()).toEqual(names)
    expect(Object.keys(EXAMPLES).toSorted()).toEqual(names)
  })

  for (const operation of documented() as Operation[]) {
    test(`${operation} succeeds only for callers with the permission`, async () => {
      const statuses = []
      for (const who of CALLERS) {
        const input = await EXAMPLES[operation](stage, who)
        const before = await fingerprint()
        const status = await statusOf(operation, who, input)
        statuses.push(status)
        const isUnchanged = (await fingerprint()) === before
        expect(status === 'ok' || isUnchanged).toBe(true)
      }
      expect(statuses).toEqual(RULES[operation])
      const input = await EXAMPLES[operation](stage, 'admin')
      const before = await fingerprint()
      expect(await statusOf(operation, undefined, input)).toBe(401)
      expect(await fingerprint()).toBe(before)
    })
  }

  test('there are no other routes except the OpenAPI document and the reference', () => {
    const paths = Object.values(ROUTES).map(
      ({ method, path }) => `${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`,
    )
    const others = [
      'GET /api/reference',
      'GET /api/reference/',
      'GET /api/reference/js/scalar.js',
      'GET /api/v1/openapi.json',
    ]
    expect(stage.routes.toSorted()).toEqual([...paths, ...others].toSorted())
  })
})

describe('a denied request', () => {
  test('is audited with caller, operation and source', async () => {
    const { params } = await byDeadLetter(stage)
    await statusOf('getPayload', 'operator', { params })
    const { entries } = await stage.audit.read({
      person: 'operator',
      operation: 'getPayload',
      limit: 1,
    })
    expect(entries).toMatchObject([{ outcome: 'denied', facts: { action: 'view_unmasked' } }])
    await statusOf('getDeadLetter', 'elsewhere', { params })
    const { entries: hidden } = await stage.audit.read({ person: 'elsewhere', limit: 1 })
    expect(hidden).toMatchObject([{ outcome: 'denied', source: 'orders', subject: params.id }])
  })

  test('does not reveal whether the resource exists', async () => {
    const { params } = await byDeadLetter(stage)
    const missing = { params: { id: '00000000-0000-0000-0000-000000000000' } }
    const [one, other] = await Promise.all(
      [params, missing.params].map(async ({ id }) => {
        const answer = await stage.ask('elsewhere', `/api/v1/dead-letters/${id}`)
        const { requestId: _, ...rest } = (await answer.json()) as Record<string, unknown>
        return rest
      }),
    )
    expect(one).toEqual(other)
  })
})

describe('lists', () => {
  test('contain only what the caller can view', async () => {
    const client = stage.as('elsewhere')
    const { sources } = await client.call('listSources', {})
    expect(sources.map(({ source }) => source)).toEqual(['billing'])
    const { groups } = await client.call('listGroups', {})
    expect(new Set(groups.map(({ source }) => source))).toEqual(new Set(['billing']))
    const all = await client.call('listDeadLetters', { query: { filter: 'after:0' } })
    expect(new Set(all.deadLetters.map(({ source }) => source))).toEqual(new Set(['billing']))
    expect((await client.call('listDeadLetters', recent)).deadLetters).toEqual([])
    expect((await client.call('listReplays', {})).runs).toEqual([])
    const { depthBySource, alerts } = await client.call('overview', {})
    expect(Object.keys(depthBySource)).toEqual(['billing'])
    expect(alerts.every(({ source }) => source === 'billing')).toBe(true)
    const span = { per: 'hour', after: Date.now() - DAY, before: Date.now() } as const
    const { points } = await client.call('trend', { query: span })
    expect(points.reduce((total, { count }) => total + count, 0)).toBe(3)
  })
})
