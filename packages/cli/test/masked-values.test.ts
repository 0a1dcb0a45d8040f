import { randomInt, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ACTIONS } from '@redrive/api/enums'
import { dropDatabase, emptyDatabase, freePort, poolOn } from '@redrive/dev-support'
import { createLog, loadConfig, migrateAll, type RunningServer, serve } from '@redrive/server'
import { issueTokenFor } from '@redrive/server/internal'
import { until } from '@redrive/testing'
import fc from 'fast-check'
import type { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bodies, marked, MARKERS, markersOf, masks, newMarker, patches } from './masked-bodies.ts'
import { run } from './world.ts'

/** Bodies in one message, if it is a list. */
const LIST = 83
/** Half of the messages are lists: 10,000 bodies. A longer run: `REDRIVE_MESSAGES=10000`. */
const MESSAGES = Number(process.env['REDRIVE_MESSAGES'] ?? 240)
const SOURCES = 8
/** Messages of one replay run. */
const PER_RUN = 3
/** Longer than a starved machine needs. */
const PATIENCE = { timeout: '3m' } as const
const SEED = Number(process.env['REDRIVE_SEED'] ?? randomInt(2 ** 31))

const sample = <T>(values: fc.Arbitrary<T>, count: number, of: number): readonly T[] =>
  fc.sample(values, { numRuns: count, seed: SEED + of })

// ---- the messages ----------------------------------------------------------------------------

const sources = sample(masks, SOURCES, 1).map((mask, at) => ({ name: `source-${at}`, mask }))
const messages = sample(bodies(LIST), MESSAGES, 2).map((body, at) => {
  const { name, mask } = sources[at % SOURCES] ?? { name: '', mask: [] }
  const [secret, cookie, plain] = [newMarker(), newMarker(), newMarker()].map(String)
  const content = marked(body)
  return {
    source: name,
    body: content,
    headers: { 'x-secret': secret, cookie, 'x-plain': plain },
    markers: markersOf(content, mask),
    hiddenHeaders: [secret, cookie],
  }
})
/** A message whose body is too large is set aside. */
const aside = {
  source: 'aside',
  body: marked({ card: 'text' }),
  headers: { 'x-secret': `${newMarker()}` },
}

const hidden = new Set([
  ...messages.flatMap(({ markers, hiddenHeaders }) => [...markers.hidden, ...hiddenHeaders]),
  ...markersOf(aside.body, [{ pointer: '/card', optional: false }]).hidden,
  aside.headers['x-secret'],
])
const shown = new Set(messages.flatMap(({ markers }) => markers.shown))

// ---- everything that the person gets -----------------------------------------------------------

/** Hidden values that were found, by the place. */
const leaks = new Map<string, string>()
const seen = new Set<string>()
/** The number of texts by place. */
const places = new Map<string, number>()

function take(place: string, text: string): string {
  places.set(place, (places.get(place) ?? 0) + 1)
  for (const { 1: marker = '', index } of text.matchAll(MARKERS)) {
    seen.add(marker)
    if (hidden.has(marker)) leaks.set(place, text.slice(Math.max(0, index - 200), index + 50))
  }
  return text
}

// ---- the server ------------------------------------------------------------------------------

const folder = mkdtempSync(join(tmpdir(), 'redrive-masked-'))
let pool: Pool
let databaseUrl: string
let server: RunningServer | undefined
let reader: string
let approver: string

/** The config. Without masks for some sources, their messages are stored as they are. */
async function configOf(hasMask: (at: number) => boolean) {
  const file = join(folder, `${randomUUID()}.json`)
  const withMasks = sources.map(({ name, mask }, at) => [
    name,
    {
      postgres: { queue: name },
      ...(hasMask(at) ? { mask, maskHeaders: ['x-secret'] } : {}),
    },
  ])
  const config = {
    database: { url: databaseUrl },
    listen: `127.0.0.1:${await freePort()}`,
    publicUrl: 'https://redrive.test',
    auth: { oidc: { issuer: 'https://issuer.test', clientId: 'redrive' } },
    access: [{ people: ['reader', 'approver'], roles: ['admin'], sources: ['*'] }],
    sources: {
      ...(Object.fromEntries(withMasks) as Record<string, object>),
      aside: { postgres: { queue: 'aside' }, maxPayloadBytes: 1, mask: ['/card'] },
    },
    alerts: { depth: 1 },
    metrics: { listen: `127.0.0.1:${await freePort()}` },
    limits: { requestsPerMinute: 1_000_000, searchTimeout: '1m' },
    shutdown: { readinessDelay: '0ms' },
  }
  writeFileSync(file, JSON.stringify(config))
  return (await loadConfig({ file })).config
}

async function startServer(hasMask: (at: number) => boolean): Promise<void> {
  const to = { write: (line: string) => void take('log', line) }
  server = await serve(await configOf(hasMask), { log: createLog({ level: 'trace', to }) })
}

/** A token of an administrator without permission to unmask. */
async function tokenOf(subject: string): Promise<string> {
  const actions = ACTIONS.filter((one) => one !== 'view_unmasked')
  const request = { subject, name: 'masked', actions, sources: ['*'], days: 1 }
  return (await issueTokenFor(await configOf(() => true), pool, request)).secret
}

const FAILED = `status = 'failed', due_at = null, failed_at = now(), attempts = 1, reason = 'not_retryable',
  cycle = jsonb_build_object('lastDelayMs', 0, 'history', jsonb_build_array(jsonb_build_object('number', 1,
    'at', (extract(epoch from now()) * 1000)::bigint, 'class', 'business', 'signature', '1-00000000000000aa',
    'code', 'E1', 'type', 'Declined', 'message', 'the order was declined')))`

/** Adds the messages to the outbox as dead letters, like a consumer that fails. */
async function addDeadLetters(): Promise<void> {
  const rows = [...messages, aside].map(({ source, body, headers }) => ({
    queue: source,
    headers,
    payload: Buffer.from(JSON.stringify(body)).toString('base64'),
  }))
  await pool.query(
    `insert into redrive.outbox (queue, content_type, headers, payload)
    select queue, 'application/json', headers, decode(payload, 'base64')
    from jsonb_to_recordset($1::text::jsonb) as e (queue text, headers jsonb, payload text)`,
    [JSON.stringify(rows)],
  )
  await failAll()
}

/** Ends all waiting messages as dead letters, like a consumer that fails. */
async function failAll(): Promise<void> {
  await pool.query(
    `update redrive.outbox set ${FAILED} where status = 'pending' and queue = any($1)`,
    [[...sources.map(({ name }) => name), 'aside']],
  )
}

const countOf = async (query: string): Promise<number> => {
  const { rows } = await pool.query<{ count: string }>(`select count(*) from ${query}`)
  return Number(rows[0]?.count)
}

beforeAll(async () => {
  databaseUrl = await emptyDatabase(`redrive_cli_masked_${randomUUID().slice(0, 8)}`)
  pool = poolOn(databaseUrl)
  await migrateAll(pool)
  await addDeadLetters()
  // A mask also applies to messages that were stored without it.
  await startServer((at) => at % 2 === 0)
  await until(
    'all messages are stored',
    async () => {
      const stored = await countOf('redrive_catalog.dead_letter')
      return stored + (await countOf('redrive_catalog.set_aside')) === MESSAGES + 1
    },
    PATIENCE,
  )
  await server?.stop()
  reader = await tokenOf('reader')
  approver = await tokenOf('approver')
  await startServer(() => true)
}, 300_000)
afterAll(async () => {
  await server?.stop()
  await pool.end()
  await dropDatabase(databaseUrl)
  rmSync(folder, { recursive: true, force: true })
})

// ---- requests --------------------------------------------------------------------------------

async function ask(path: string, body?: object, token = reader): Promise<Response> {
  return fetch(`${server?.url}/api/v1${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'idempotency-key': randomUUID(),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

/** Sends a request and keeps its response. Ids in the path are left out of the place. */
async function api(path: string, body?: object, token?: string): Promise<Response> {
  const answer = await ask(path, body, token)
  const [route = ''] = path.replaceAll(/[0-9a-f-]{36}/g, '{id}').split('?')
  take(`${body === undefined ? 'GET' : 'POST'} ${route}`, await answer.clone().text())
  return answer
}

const FORMATS = [[], ['--json'], ['--jsonl']] as const

/** Runs a command of the CLI and keeps its output. */
async function cli(format: readonly string[], ...args: readonly string[]): Promise<void> {
  const env = { REDRIVE_URL: server?.url, REDRIVE_TOKEN: reader }
  const { stdout, stderr } = await run([...args, ...format], { env, isRealTime: true })
  const [place = ''] = args.join(' ').split(/ (?:-|source:|[0-9a-f-]{36})/)
  take(`redrive ${place}${format.join('')}`, stdout + stderr)
}

interface Listed {
  readonly id: string
  readonly source: string
  readonly group: string
}

async function listed(source: string): Promise<readonly Listed[]> {
  const all: Listed[] = []
  const filter = encodeURIComponent(`source:${source} after:0`)
  for (let cursor: string | undefined; ; ) {
    const more = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const answer = await api(`/dead-letters?limit=200&filter=${filter}${more}`)
    const page = (await answer.json()) as { deadLetters: Listed[]; nextCursor?: string }
    all.push(...page.deadLetters)
    cursor = page.nextCursor
    if (cursor === undefined) return all
  }
}

/** Runs work on all items, some of them concurrently. */
async function eachOf<T>(
  items: readonly T[],
  work: (item: T, at: number) => Promise<void>,
): Promise<void> {
  const left = items.entries()
  const worker = async () => {
    for (const [at, item] of left) await work(item, at)
  }
  await Promise.all(Array.from({ length: 8 }, worker))
}

/** Looks at everything that belongs to single messages. */
async function lookAt(all: readonly Listed[], isReplayed: boolean): Promise<void> {
  await eachOf(all, async ({ id }, at) => {
    await api(`/dead-letters/${id}`)
    if (isReplayed) {
      await api(`/dead-letters/${id}/cycles`)
      await api(`/dead-letters/${id}/replays`)
    }
    await cli(FORMATS[at % FORMATS.length] ?? [], 'messages', 'show', id)
  })
  await api(`/dead-letters/${all[0]?.id}/payload?reason=curious`)
}

/** Looks at everything that belongs to a source. */
async function lookAround({ name }: { readonly name: string }): Promise<void> {
  const filter = `source:${name} after:0`
  await api(`/dead-letters/export?filter=${encodeURIComponent(filter)}`)
  const { groups } = (await (await api(`/groups?sources=${name}`)).json()) as { groups: Listed[] }
  for (const { id } of groups) {
    await api(`/groups/${id}`)
    await api(`/groups/${id}/explanation`)
    for (const format of FORMATS) await cli(format, 'groups', 'show', id)
  }
  for (const format of FORMATS) {
    await cli(format, 'messages', 'list', `source:${name}`, 'after:0')
    await cli(format, 'messages', 'export', `source:${name}`, 'after:0')
  }
}

async function lookAtAll(): Promise<void> {
  for (const path of ['/overview', '/sources', '/set-aside', '/replays', '/audit?limit=200'])
    await api(path)
  const rules = [{ name: 'all', match: { text: 'declined' }, group: 'declined' }]
  await api('/fingerprints/preview', { rules })
  for (const format of FORMATS) {
    for (const command of ['sources', 'groups list', 'replay list', 'set-aside list', 'audit list'])
      await cli(format, ...command.split(' '))
  }
  const { messages: set } = (await (await ask('/set-aside')).json()) as { messages: Listed[] }
  for (const { id } of set) {
    await api(`/set-aside/${id}`)
    await api(`/set-aside/${id}/payload?reason=curious`)
    for (const format of FORMATS) await cli(format, 'set-aside', 'show', id)
  }
  take('metrics', await (await fetch(`${server?.metricsUrl}/metrics`)).text())
  for (const table of ['alert', 'audit', 'idempotency']) {
    const { rows } = await pool.query(`select t::text from redrive_server.${table} t`)
    take(`table ${table}`, JSON.stringify(rows))
  }
}

/** A schema that no body matches, so that the plan explains what it found. */
const SCHEMA = {
  properties: Object.fromEntries(['card', 'items', 'x'].map((name) => [name, { const: 'other' }])),
}

interface Run {
  readonly id: string
  readonly hash: string
  readonly counts: { readonly planned: number }
}

/** Plans and starts a replay with a patch. Returns how far it came. */
async function replay(
  ids: readonly string[],
  patch: readonly object[],
): Promise<'refused' | 'skipped' | 'published'> {
  const options = { ratePerSecond: 10_000, canary: [], maxFailureRatio: 1 }
  const answer = await api('/replays', { selection: { ids }, change: { patch }, ...options })
  if (!answer.ok) return 'refused'
  const { id, hash, counts } = (await answer.json()) as Run
  await api(`/replays/${id}`)
  await api(`/replays/${id}/items`)
  await api(`/replays/${id}/change`)
  await api(`/replays/${id}/change`, undefined, approver)
  for (const format of FORMATS) await cli(format, 'replay', 'show', id, '--items', 'skipped')
  // The patch fits none of the bodies.
  if (counts.planned === 0) return 'skipped'
  expect((await api(`/replays/${id}/approve`, { hash }, approver)).status).toBe(202)
  await until(
    'the run publishes',
    async () => {
      await failAll()
      const open = `run_id = '${id}' and state in ('queued', 'claimed', 'publishing', 'published')`
      return (await countOf(`redrive_catalog.replay_item where ${open}`)) === 0
    },
    PATIENCE,
  )
  await api(`/replays/${id}/events`)
  await api(`/replays/${id}/items`)
  return 'published'
}

const PLACES: readonly string[] = [
  'log',
  'metrics',
  'table audit',
  'table idempotency',
  'GET /audit',
  'GET /dead-letters',
  'GET /dead-letters/export',
  'GET /dead-letters/{id}',
  'GET /dead-letters/{id}/cycles',
  'GET /groups/{id}',
  'GET /replays/{id}/change',
  'GET /replays/{id}/events',
  'GET /replays/{id}/items',
  'GET /set-aside/{id}',
  'POST /replays',
  ...FORMATS.flatMap((format) =>
    [
      'messages list',
      'messages show',
      'messages export',
      'groups show',
      'replay show',
      'audit list',
      'set-aside show',
    ].map((command) => `redrive ${command}${format.join('')}`),
  ),
]

test('no masked value of 10,000 bodies reaches a person who may not unmask', async () => {
  const all = (await Promise.all(sources.map(({ name }) => listed(name)))).flat()
  expect(all).toHaveLength(MESSAGES)
  await lookAt(all, false)
  for (const { name } of sources.slice(0, SOURCES / 4)) {
    const url = `${server?.url}/api/v1/sources/${name}/schema`
    const headers = { authorization: `Bearer ${reader}`, 'idempotency-key': randomUUID() }
    const body = JSON.stringify({ schema: SCHEMA })
    const type = { 'content-type': 'application/json' }
    const answer = await fetch(url, { method: 'PUT', headers: { ...headers, ...type }, body })
    expect(answer.status).toBe(204)
  }
  const chunks = sources.flatMap(({ name }) => {
    const ids = all.filter(({ source }) => source === name).map(({ id }) => id)
    return Array.from({ length: Math.ceil(ids.length / PER_RUN) }, (_, at) =>
      ids.slice(at * PER_RUN, (at + 1) * PER_RUN),
    )
  })
  const given = sample(patches, chunks.length, 3)
  const ends = { refused: 0, skipped: 0, published: 0 }
  await eachOf(chunks, async (ids, at) => {
    ends[await replay(ids, given[at] ?? [])] += 1
  })
  // Every published message comes back in its second cycle.
  await until(
    'all messages are back',
    async () => (await countOf(`redrive_catalog.dead_letter where status = 'replaying'`)) === 0,
    PATIENCE,
  )
  await lookAt(all, true)
  await eachOf(sources, lookAround)
  await lookAtAll()

  expect(Object.fromEntries(leaks), `seed ${SEED}`).toEqual({})
  expect(PLACES.filter((place) => !places.has(place))).toEqual([])
  // Otherwise the test would not see what it looks for.
  expect(hidden.size).toBeGreaterThan(MESSAGES)
  expect([...shown].filter((one) => seen.has(one)).length).toBeGreaterThan(shown.size / 2)
  expect(await countOf('redrive_catalog.dead_letter where cycle > 1')).toBeGreaterThan(0)
  expect(ends).toEqual({
    refused: expect.toSatisfy((count: number) => count > 0) as number,
    skipped: expect.toSatisfy((count: number) => count > 0) as number,
    published: expect.toSatisfy((count: number) => count > 0) as number,
  })
}, 600_000)
