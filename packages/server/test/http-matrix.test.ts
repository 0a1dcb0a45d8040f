import { randomUUID } from 'node:crypto'
import { createClient, type Client, type Input, type Operation } from '@redrive/api'
import type { PlainOperation, StreamOperation } from '@redrive/api'
import type { Action, Role } from '@redrive/api/enums'
import { isMutation, ROUTES } from '@redrive/api/internal'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Caller } from '../src/access/caller.ts'
import { createIdentity } from '../src/identity/identity.ts'
import { personIdOf } from '../src/identity/provider.ts'
import { EXAMPLES, type ExampleData } from './http-examples.ts'
import { database, fillGroups, PUBLIC_URL, setOneAside, staged } from './http-stage.ts'
import { oidcOf } from './identity-stage.ts'

// ---- the expected access ---------------------------------------------------------------------

const OTHER: readonly Action[] = ['view_unmasked', 'export', 'configure']
const OPERATE: readonly Action[] = ['triage', 'replay', 'edit', 'discard']

/** The permissions of each role. */
const RIGHTS: Readonly<Record<Role, readonly Action[]>> = {
  viewer: ['view'],
  operator: ['view', 'view_payload', ...OPERATE],
  approver: ['view', 'view_payload', 'approve'],
  admin: ['view', 'view_payload', ...OPERATE, 'approve', ...OTHER],
}

type Roles = Readonly<Partial<Record<Role, readonly string[]>>>

/** The roles of each caller on sources. Every caller except `administrator` and `mixed` has access to one source. */
const CALLERS = {
  viewer: { viewer: ['orders'] },
  operator: { operator: ['orders'] },
  approver: { approver: ['orders'] },
  admin: { admin: ['orders'] },
  administrator: { admin: ['*'] },
  mixed: { viewer: ['orders'], admin: ['billing'] },
  noRole: {},
} as const satisfies Readonly<Record<string, Roles>>

const SOURCES = ['orders', 'billing'] as const
const CREDENTIALS = ['session', 'token', 'agent token'] as const

/** No agent has this permission, whatever the role of its owner. */
const NEVER_FOR_AGENTS: Action = 'approve'
/** No agent may use these routes. They give access to other credentials. */
const NO_AGENTS: readonly Operation[] = ['createToken', 'listSessions', 'revokeSession']
/** A token could otherwise renew itself. */
const NO_TOKENS: readonly Operation[] = ['createToken']

/**
 * What a route checks.
 * - `caller`: every authenticated caller may use it.
 * - `subset`: the caller needs the permission on the source that the request names, otherwise the request is invalid.
 * - `lists`: the caller needs the permission on some source, and sees only those with it.
 * - `source`: the caller needs the permissions on the source of the data.
 * - `all`: the caller needs the permission on all sources.
 */
type Scope = 'caller' | 'subset' | 'lists' | 'source' | 'all'
/** A list of permissions: one of them is enough. */
type Need = Action | readonly Action[]
type Row = readonly [Scope, ...Need[]]

// biome-ignore format: to be read as a table
const TABLE: Readonly<Record<Operation, Row>> = {
  me:                     ['caller'],
  overview:               ['lists', 'view'],
  listSources:            ['lists', 'view'],
  listExpired:            ['lists', 'view'],
  setSchema:              ['source', 'configure'],
  setAutoReplay:          ['source', 'configure', 'approve'],
  listGroups:             ['lists', 'view'],
  getGroup:               ['source', 'view'],
  explainGroup:           ['source', 'view'],
  changeGroup:            ['source', 'triage'],
  mergeGroups:            ['source', 'discard'],
  unmergeGroup:           ['source', 'discard'],
  splitGroup:             ['source', 'discard'],
  listMergedGroups:       ['source', 'view'],
  listFingerprints:       ['lists', 'view'],
  listMasks:              ['lists', 'view'],
  previewFingerprints:    ['lists', 'view'],
  applyFingerprints:      ['source', 'discard'],
  listGroupComments:      ['source', 'view'],
  commentGroup:           ['source', 'triage'],
  trend:                  ['lists', 'view'],
  listDeadLetters:        ['lists', 'view'],
  exportDeadLetters:      ['source', 'export'],
  getDeadLetter:          ['source', 'view'],
  getPayload:             ['source', 'view_unmasked'],
  listCycles:             ['source', 'view'],
  listDeadLetterReplays:  ['source', 'view'],
  listDeadLetterComments: ['source', 'view'],
  commentDeadLetter:      ['source', 'triage'],
  selectDeadLetters:      ['source', 'discard'],
  discard:                ['source', 'discard'],
  restore:                ['source', 'discard'],
  setOutcomes:            ['source', 'replay'],
  listSetAside:           ['lists', 'view'],
  getSetAside:            ['source', 'view'],
  getSetAsidePayload:     ['source', 'view_unmasked'],
  replaySetAside:         ['source', 'replay'],
  approveSetAside:        ['source', 'approve'],
  discardSetAside:        ['source', 'discard'],
  reopenSetAside:         ['source', 'discard'],
  planReplay:             ['source', 'replay'],
  listReplays:            ['lists', 'view'],
  getReplay:              ['source', 'view'],
  watchReplay:            ['source', 'view'],
  getReplayChange:        ['source', 'view_payload', ['edit', 'approve']],
  listReplayItems:        ['source', 'view'],
  approveReplay:          ['source', 'approve'],
  pauseReplay:            ['source', 'replay'],
  resumeReplay:           ['source', 'replay'],
  cancelReplay:           ['source', 'replay'],
  acknowledgeRestore:     ['all', 'configure'],
  listTokens:             ['caller'],
  createToken:            ['subset', 'view'],
  revokeToken:            ['caller'],
  listSessions:           ['all', 'configure'],
  revokeSession:          ['all', 'configure'],
  listAudit:              ['all', 'configure'],
}

type Who = keyof typeof CALLERS
type Source = (typeof SOURCES)[number]
type Credential = (typeof CREDENTIALS)[number]

interface Cell {
  readonly operation: Operation
  /** Undefined: a request without credentials. */
  readonly who: Who | undefined
  readonly credential: Credential
  readonly source: Source
}

function has({ who, credential }: Cell, action: Action, source: string): boolean {
  if (who === undefined || (credential === 'agent token' && action === NEVER_FOR_AGENTS))
    return false
  const roles = Object.entries(CALLERS[who]) as [Role, readonly string[]][]
  const covers = (sources: readonly string[]) => sources.includes(source) || sources.includes('*')
  return roles.some(([role, sources]) => RIGHTS[role].includes(action) && covers(sources))
}

function expected(cell: Cell): number {
  const { operation, who, credential, source } = cell
  const [scope, ...needs] = TABLE[operation]
  if (who === undefined) return 401
  // A token without permissions is invalid.
  if (credential !== 'session' && Object.keys(CALLERS[who]).length === 0) return 401
  if (credential !== 'session' && NO_TOKENS.includes(operation)) return 403
  if (credential === 'agent token' && NO_AGENTS.includes(operation)) return 403
  if (scope === 'caller') return 200
  const hasOn = (need: Need, on: string) => [need].flat().some((action) => has(cell, action, on))
  const hasAll = (on: string) => needs.every((need) => hasOn(need, on))
  if (scope === 'subset') return hasAll(source) ? 200 : 400
  if (scope === 'all') return hasAll('*') ? 200 : 403
  // A caller without the first permission anywhere is denied before the server looks for the data.
  if (!SOURCES.some((on) => hasOn(needs[0] ?? 'view', on))) return 403
  if (scope === 'lists') return 200
  if (!has(cell, 'view', source)) return 404
  return hasAll(source) ? 200 : 403
}

/** Whether another source makes another request. */
const hasSource = (operation: Operation) => !['caller', 'all'].includes(TABLE[operation][0])

const CELLS: readonly Cell[] = (Object.keys(TABLE) as Operation[]).flatMap((operation) =>
  (hasSource(operation) ? SOURCES : SOURCES.slice(0, 1)).flatMap((source) => [
    { operation, who: undefined, credential: 'session' as const, source },
    ...(Object.keys(CALLERS) as Who[]).flatMap((who) =>
      CREDENTIALS.map((credential) => ({ operation, who, credential, source })),
    ),
  ]),
)

// ---- the server ------------------------------------------------------------------------------

const ISSUER = 'https://issuer.test'
const PLANNER = personIdOf(ISSUER, 'planner')
const APPROVER = personIdOf(ISSUER, 'second')

const access = [
  ...Object.entries<Roles>(CALLERS).flatMap(([who, roles]) =>
    Object.entries(roles).map(([role, sources]) => ({
      people: [who],
      roles: [role as Role],
      sources,
    })),
  ),
  { people: ['planner', 'second'], roles: ['admin' as const], sources: ['*'] },
]

const pool = await database('redrive_server_matrix')
const identity = createIdentity({
  pool,
  audit: async () => 1,
  publicUrl: PUBLIC_URL,
  auth: { oidc: oidcOf(ISSUER) },
  access: () => access,
})
const stage = await staged(pool, { identity })
const sessions = identity.login.oidc?.sessions
if (sessions === undefined) throw new Error('The identity has no sessions.')

const openSession = (who: string) =>
  sessions.open({ id: personIdOf(ISSUER, who), name: who, groups: [] })

/** Creates a token with all permissions. The server limits it to those of its owner. */
async function createToken(caller: Caller, isAgent: boolean) {
  const grants = [{ actions: RIGHTS.admin, sources: ['*'] }]
  const request = {
    name: randomUUID(),
    actions: [...RIGHTS.admin],
    sources: ['*'],
    days: 1,
    isAgent,
  }
  return identity.tokens.create({ ...caller, grants }, request)
}

interface Access {
  /** The id of the token; undefined for a session. */
  readonly token: string | undefined
  readonly headers: Readonly<Record<string, string>>
}

async function newAccess(who: Who, credential: Credential): Promise<Access> {
  const { secret, session } = await openSession(who)
  const caller = identity.login.callerOf(session)
  if (credential === 'session') {
    const cookie = `__Host-redrive=${secret}`
    const answer = await stage.ask(undefined, '/api/v1/me', { headers: { cookie } })
    const { csrf } = (await answer.json()) as { csrf: string }
    return { token: undefined, headers: { cookie, origin: PUBLIC_URL, 'x-redrive-csrf': csrf } }
  }
  const { id, secret: bearer } = await createToken(caller, credential === 'agent token')
  return { token: id, headers: { authorization: `Bearer ${bearer}` } }
}

const known = new Map<string, Promise<Access>>()

/** Returns the credential of a caller, which most requests share. */
function accessOf({ who, credential }: Cell): Promise<Access> {
  if (who === undefined) return Promise.resolve({ token: undefined, headers: {} })
  const name = `${who} ${credential}`
  const found = known.get(name) ?? newAccess(who, credential)
  known.set(name, found)
  return found
}

// ---- requests --------------------------------------------------------------------------------

/** More than the examples of a source use. */
const STOCK = 400
const stock = new Map(
  await Promise.all(
    SOURCES.map(
      async (source) => [source, await fillGroups(stage.catalog, source, STOCK)] as const,
    ),
  ),
)
const administrator = clientOf(await newAccess('administrator', 'token'))

const dataOf = (source: Source, own?: Access, who?: Who): ExampleData => ({
  catalog: stage.catalog,
  source,
  planner: PLANNER,
  approver: APPROVER,
  async deadLetter() {
    const { ids: [id] = [], group } = stock.get(source)?.pop() ?? { group: '' }
    if (id === undefined) throw new Error('The examples need more dead letters: increase STOCK.')
    return { id, group }
  },
  setAside: () => setOneAside(stage.catalog, source),
  etagOf: async (group) =>
    (await administrator.client.ask('getGroup', { params: { id: group } })).etag ?? '',
  // A token may revoke only itself.
  async token() {
    if (own?.token !== undefined) return own.token
    const { session } = await openSession(who ?? 'planner')
    return (await createToken(identity.login.callerOf(session), false)).id
  },
  session: async () => (await openSession('planner')).session.id,
})

/** Returns a client, and the text of its last response. */
function clientOf({ headers }: Access): { readonly client: Client; text: () => string } {
  let text = ''
  const client = createClient({
    url: stage.url,
    async fetch(input, init) {
      const all = new Headers(init?.headers)
      for (const [name, value] of Object.entries(headers)) all.set(name, value)
      const answer = await fetch(input, { ...init, headers: all })
      text = await answer.clone().text()
      return answer
    },
  })
  return { client, text: () => text }
}

interface Answer {
  readonly status: number
  readonly text: string
}

async function send(operation: Operation, input: unknown, own: Access): Promise<Answer> {
  const { client, text } = clientOf(own)
  try {
    if ('stream' in ROUTES[operation]) {
      const all = client.stream(operation as StreamOperation, input as Input<StreamOperation>)
      for await (const _ of all) continue
    } else await client.call(operation as PlainOperation, input as Input<PlainOperation>)
    return { status: 200, text: text() }
  } catch (error) {
    const { problem } = error as { problem?: { status: number } }
    if (problem === undefined) throw error
    return { status: problem.status, text: text() }
  }
}

/** Runs work on all items, some of them concurrently. */
async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values()
  const worker = async () => {
    for (const item of left) await work(item)
  }
  await Promise.all(Array.from({ length: 12 }, worker))
}

/** The columns that a mutation can change. The last use of a credential is not one. */
const CHANGEABLE = {
  'redrive_catalog.comment': 't',
  'redrive_catalog.dead_letter': 't',
  'redrive_catalog.failure_group': 't',
  'redrive_catalog.group_part': 't',
  'redrive_catalog.group_split': 't',
  'redrive_catalog.replay_item': 't',
  'redrive_catalog.replay_run': 't',
  'redrive_catalog.set_aside': 't',
  'redrive_catalog.source': 't',
  'redrive_catalog.source_schema': 't',
  'redrive_server.session': 't.id',
  'redrive_server.token': 't.id',
}

/** Returns a hash of each table that a mutation can change. */
async function fingerprint(): Promise<Readonly<Record<string, string>>> {
  const parts = Object.entries(CHANGEABLE).map(
    ([table, value]) =>
      `select '${table}' as name, md5(string_agg((${value})::text, '' order by (${value})::text)) as hash from ${table} t`,
  )
  const { rows } = await pool.query<{ name: string; hash: string }>(parts.join(' union all '))
  return Object.fromEntries(rows.map(({ name, hash }) => [name, hash]))
}

// ---- the tests -------------------------------------------------------------------------------

const answers = new Map<Cell, Answer>()
let before: unknown
let after: unknown

beforeAll(async () => {
  const inputs = new Map<string, unknown>()
  const nameOf = ({ operation, source }: Cell) => `${operation} ${source}`
  const first = [...new Map(CELLS.map((cell) => [nameOf(cell), cell])).values()]
  await eachOf(first, async (cell) => {
    inputs.set(nameOf(cell), await EXAMPLES[cell.operation](dataOf(cell.source)))
  })
  for (const cell of CELLS) await accessOf(cell)
  const isDenied = (cell: Cell) => expected(cell) !== 200
  before = await fingerprint()
  await eachOf(CELLS.filter(isDenied), async (cell) => {
    const input = inputs.get(nameOf(cell))
    answers.set(cell, await send(cell.operation, input, await accessOf(cell)))
  })
  after = await fingerprint()
  await eachOf(
    CELLS.filter((cell) => !isDenied(cell)),
    async (cell) => {
      const { operation, who, credential, source } = cell
      // A request that ends its own credential needs a new one.
      const own =
        operation === 'revokeToken' && who !== undefined
          ? await newAccess(who, credential)
          : await accessOf(cell)
      const input = isMutation(ROUTES[operation])
        ? await EXAMPLES[operation](dataOf(source, own, who))
        : inputs.get(nameOf(cell))
      answers.set(cell, await send(operation, input, own))
    },
  )
  // Thousands of requests: more than the usual limit of a hook on a busy machine.
}, 300_000)

const named = ({ who, credential, source }: Cell) =>
  `${who ?? 'anonymous'}, ${credential}, ${source}`
const cellsOf = (operation: Operation) => CELLS.filter((cell) => cell.operation === operation)

describe('every route, for every role, source and credential', () => {
  test('has a row and an example', () => {
    const names = Object.keys(ROUTES).toSorted()
    expect(Object.keys(TABLE).toSorted()).toEqual(names)
    expect(Object.keys(EXAMPLES).toSorted()).toEqual(names)
  })

  test.each(Object.keys(TABLE) as Operation[])('%s has the status of the table', (operation) => {
    const cells = cellsOf(operation)
    const received = cells.map((cell) => [named(cell), answers.get(cell)?.status])
    expect(received).toEqual(cells.map((cell) => [named(cell), expected(cell)]))
  })

  test('a denied request changes nothing', () => {
    expect(after).toEqual(before)
  })

  test('no response names a source that the caller cannot view', () => {
    const leaks = CELLS.filter((cell) => {
      // An invalid request for a token gets its own words back.
      if (cell.who === undefined || TABLE[cell.operation][0] === 'subset') return false
      const hidden = SOURCES.filter((source) => !has(cell, 'view', source))
      return hidden.some((source) => answers.get(cell)?.text.includes(source))
    })
    expect(leaks.map((cell) => `${cell.operation}: ${named(cell)}`)).toEqual([])
  })

  test('the table denies and allows every caller something', () => {
    const byCaller = Object.groupBy(CELLS, ({ who }) => who ?? 'anonymous')
    const statuses = Object.entries(byCaller).map(([who, cells]) => [
      who,
      [...new Set(cells.map(expected))].toSorted((a, b) => a - b),
    ])
    expect(Object.fromEntries(statuses)).toEqual({
      anonymous: [401],
      viewer: [200, 400, 403, 404],
      operator: [200, 400, 403, 404],
      approver: [200, 400, 403, 404],
      admin: [200, 400, 403, 404],
      administrator: [200, 403],
      mixed: [200, 403],
      noRole: [200, 400, 401, 403],
    })
  })
})
