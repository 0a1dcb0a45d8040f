import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { type Client, createClient } from '@redrive/api'
import { type Action, type Role, ROLES } from '@redrive/api/enums'
import { type Catalog, catalog, type DeadLetterSummary, migrate } from '@redrive/catalog'
import { encodeHeaders, FIRST_CYCLE } from '@redrive/core'
import { deadLetterQueue, MemoryBroker, memorySource, send } from '@redrive/memory'
import type { FastifyInstance } from 'fastify'
import type { Pool } from 'pg'
import { type DestinationStream, pino } from 'pino'
import { afterAll } from 'vitest'
import type { Caller } from '../src/access/caller.ts'
import { type Audit, createAudit } from '../src/audit/audit.ts'
import type { NewEntry } from '../src/audit/entry.ts'
import { createOperations, type Operations } from '../src/operations/operations.ts'
import { type AppOptions, createApp } from '../src/http/app.ts'
import type { Identity, Token, TokenRequest } from '../src/identity/port.ts'
import { createReading, type ReadingOptions } from '../src/reading/reading.ts'
import { omitUndefined } from '../src/omit-undefined.ts'
import { createRetryingWriter } from '../src/retry-write.ts'
import { serverDatabase } from './database-stage.ts'

/** The header that contains the caller, in all tests except those of identity. */
const WHO = 'x-test-caller'

function person(name: string, roles: readonly Role[], sources: readonly string[]): Caller {
  const actions: readonly Action[] = roles.flatMap((role) => ROLES[role])
  return {
    person: name,
    name: `${name} of Example`,
    via: 'token',
    grants: actions.length === 0 ? [] : [{ actions, sources }],
    isAgent: false,
    credential: undefined,
  }
}

export const PEOPLE: Readonly<Record<string, Caller>> = {
  viewer: person('viewer', ['viewer'], ['orders']),
  operator: person('operator', ['operator'], ['orders']),
  approver: person('approver', ['approver'], ['orders']),
  admin: person('admin', ['admin'], ['*']),
  second: person('second', ['admin'], ['*']),
  elsewhere: person('elsewhere', ['operator'], ['billing']),
  agent: { ...person('agent', ['operator', 'approver'], ['orders']), isAgent: true },
  noGrants: person('noGrants', [], []),
  // The owner of the agent's token: the same user.
  owner: {
    ...person('agent', ['operator', 'approver'], ['orders']),
    credential: 'session of owner',
  },
  // Viewer of billing and operator of orders.
  partly: {
    ...person('partly', ['operator'], ['orders']),
    grants: [
      { actions: ROLES.operator, sources: ['orders'] },
      { actions: ROLES.viewer, sources: ['billing'] },
    ],
  },
  mixed: {
    ...person('mixed', ['viewer'], ['orders']),
    grants: [
      { actions: ROLES.admin, sources: ['billing'] },
      { actions: ROLES.viewer, sources: ['orders'] },
    ],
  },
  replayer: {
    ...person('replayer', ['viewer'], ['orders']),
    grants: [{ actions: ['view', 'replay'], sources: ['orders'] }],
  },
  // Can edit replays without viewing payloads.
  blindEditor: {
    ...person('blindEditor', ['viewer'], ['orders']),
    grants: [{ actions: ['view', 'replay', 'edit'], sources: ['orders'] }],
  },
  // Can only view payloads.
  reader: {
    ...person('reader', ['viewer'], ['orders']),
    grants: [{ actions: ['view', 'view_payload'], sources: ['orders'] }],
  },
  configurer: {
    ...person('configurer', ['viewer'], ['orders']),
    grants: [{ actions: ['view', 'configure'], sources: ['orders'] }],
  },
  adminAgent: { ...person('adminAgent', ['admin'], ['*']), isAgent: true },
  configuringAgent: { ...person('robot', ['admin'], ['orders']), isAgent: true },
  session: { ...person('session', ['operator'], ['orders']), via: 'session' },
}

/** The id of the only session. */
export const SESSION = '5e551000-0000-4000-8000-000000000001'

export const PUBLIC_URL = 'https://redrive.test'

export const CSRF = 'the proof of a session'

/** Creates an identity that trusts the header and keeps tokens in memory. */
function stubIdentity(people: Readonly<Record<string, Caller>>): Identity {
  const tokens = new Map<string, Token>()
  return {
    async identify({ headers, origin }) {
      const found = people[String(headers[WHO])]
      return found === undefined ? undefined : { ...found, origin }
    },
    async csrfOf({ via }) {
      return via === 'session' ? CSRF : undefined
    },
    tokens: {
      async create(caller, { name, actions, sources, isAgent = false }) {
        const grants = [{ actions: [...actions], sources: [...sources] }]
        const id = randomUUID()
        const times = { createdAt: Date.now(), expiresAt: Date.now() + 1_000 }
        const token = { id, name, person: caller.person, isAgent, grants, ...times }
        tokens.set(id, token)
        return { ...token, secret: `rdv_${id}` }
      },
      async list({ person: owner }) {
        return [...tokens.values()].filter((token) => token.person === owner)
      },
      async revoke({ person: owner }, id) {
        return tokens.get(id)?.person === owner && tokens.delete(id)
      },
      listAll: async () => [...tokens.values()],
      revokeAny: async (id) => tokens.delete(id),
    },
    sessions: { list: async () => [], revoke: async (id) => id === SESSION },
    grantsOf: async (person) =>
      Object.values(people).find((one) => one.person === person)?.grants ?? [],
  }
}

export interface Stage {
  readonly pool: Pool
  readonly catalog: Catalog
  readonly audit: Audit
  readonly desk: Operations
  readonly app: FastifyInstance
  readonly url: string
  /** All routes of the app. */
  readonly routes: readonly string[]
  tokens(who: string): { create(request: TokenRequest): Promise<Token> }
  /** All log lines. */
  readonly logged: string[]
  /** Returns a client of one of the `PEOPLE`; undefined: without a caller. */
  readonly as: (who: string | undefined) => Client
  /** Sends a raw request, for requests that the client cannot send. */
  ask(who: string | undefined, path: string, init?: RequestInit): Promise<Response>
}

export interface StageOptions {
  readonly stallMs?: number
  readonly limits?: AppOptions['limits']
  /** Replaces the write function of the audit log. */
  readonly write?: (entry: NewEntry, write: Audit['write']) => Promise<number>
  readonly catalog?: (made: Catalog) => Catalog
  readonly desk?: (made: Operations) => Operations
  readonly approval?: 'another_person' | 'anyone'
  readonly reading?: ReadingOptions
  readonly unmaskedPerHour?: number
  /** Identifies the callers. Default: trusts the header with the name of one of `people`. */
  readonly identity?: Identity
  /** The callers by name. A test can change them while the server runs. Default: `PEOPLE`. */
  readonly people?: Readonly<Record<string, Caller>>
}

/** A limit that tests do not reach by accident. */
const MANY = { requestsPerMinute: 1_000_000 }

export async function database(name: string): Promise<Pool> {
  const pool = await serverDatabase(name)
  await migrate(pool)
  return pool
}

/** Starts a server with a real PostgreSQL database on a free port. */
export async function staged(pool: Pool, options: StageOptions = {}): Promise<Stage> {
  const { approval = 'another_person', limits = MANY } = options
  const plain = catalog({ pool, approval })
  const made = options.catalog?.(plain) ?? plain
  const real = createAudit({ pool })
  const write = options.write
  const audit =
    write === undefined ? real : { ...real, write: (one: NewEntry) => write(one, real.write) }
  const identity = options.identity ?? stubIdentity(options.people ?? PEOPLE)
  const logged: string[] = []
  const to: DestinationStream = { write: (line) => void logged.push(line) }
  const logger = pino({}, to)
  const plainDesk = createOperations({
    catalog: made,
    audit,
    identity,
    insist: createRetryingWriter(logger),
    reading: createReading(options.reading),
    approval,
    ...omitUndefined({ unmaskedPerHour: options.unmaskedPerHour }),
  })
  const desk = options.desk?.(plainDesk) ?? plainDesk
  const app = await createApp({
    desk,
    identity,
    pool,
    logger,
    publicUrl: PUBLIC_URL,
    limits,
    ...omitUndefined({ stallMs: options.stallMs }),
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  afterAll(() => app.close())
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  const ask = (who: string | undefined, path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    if (who !== undefined) headers.set(WHO, who)
    return fetch(url + path, { ...init, headers })
  }
  const as = (who: string | undefined) =>
    createClient({
      url,
      fetch: (input, init) => ask(who, (input as string).slice(url.length), init),
    })
  const tokens = (who: string) => ({
    create: (request: TokenRequest) => identity.tokens.create(PEOPLE[who] as Caller, request),
  })
  return {
    pool,
    catalog: plain,
    audit,
    desk,
    app,
    url,
    logged,
    as,
    ask,
    tokens,
    routes: routesOf(app),
  }
}

/** Parses the route tree that Fastify prints, with four characters per level. Returns texts like `GET /api/v1/me`. */
function routesOf(app: FastifyInstance): readonly string[] {
  const above: string[] = []
  return app
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const [, indent = '', part = '', methods = ''] =
        /^(.*── )(\S+)(?: \((.*)\))?/.exec(line) ?? []
      const depth = indent.length / 4
      above.splice(depth - 1, Infinity, part)
      const path = above.join('')
      return methods === '' ? [] : methods.split(', ').map((method) => `${method} ${path}`)
    })
}

export interface Filled {
  readonly group: string
  readonly ids: readonly string[]
}

/** Parts of a dead letter that most tests do not set. */
interface FillOptions {
  readonly message?: string
  readonly key?: string
  readonly headers?: Readonly<Record<string, unknown>>
  /** The mask at the time of the ingest. */
  readonly mask?: readonly string[]
}

/** Ingests dead letters through the memory transport. Each call creates a new failure group. */
export async function fill(
  made: Catalog,
  queue: string,
  count = 1,
  body?: (at: number) => unknown,
  options: FillOptions = {},
): Promise<Filled> {
  const signature = newSignature()
  await ingestAll(made, queue, count, {
    ...options,
    ...(body === undefined ? {} : { body }),
    signature: () => signature,
  })
  const { groups } = await made.groups({ sources: [queue], limit: 200 })
  const group = groups.find((one) => one.signature === signature)?.id ?? ''
  const { deadLetters } = await made.deadLetters({ groups: [group], limit: 200 })
  return { group, ids: deadLetters.map(({ id }) => id) }
}

/** Ingests dead letters, each in a new failure group. */
export async function fillGroups(made: Catalog, queue: string, count: number): Promise<Filled[]> {
  const before = new Set((await allIn(made, queue)).map(({ id }) => id))
  await ingestAll(made, queue, count, { signature: newSignature })
  const added = (await allIn(made, queue)).filter(({ id }) => !before.has(id))
  return added.map(({ id, group }) => ({ group, ids: [id] }))
}

async function allIn(made: Catalog, queue: string): Promise<readonly DeadLetterSummary[]> {
  const all: DeadLetterSummary[] = []
  for (let cursor: string | undefined; ; ) {
    const page = {
      sources: [queue],
      after: 0,
      limit: 200,
      ...(cursor === undefined ? {} : { cursor }),
    }
    const { deadLetters, nextCursor } = await made.deadLetters(page)
    all.push(...deadLetters)
    if (nextCursor === undefined) return all
    cursor = nextCursor
  }
}

const newSignature = () => `1-${randomUUID().replaceAll('-', '').slice(0, 16)}`

interface IngestOptions extends FillOptions {
  readonly body?: (at: number) => unknown
  readonly signature: () => string
}

/** Ingests dead letters through the memory transport. */
async function ingestAll(
  made: Catalog,
  queue: string,
  count: number,
  options: IngestOptions,
): Promise<void> {
  const { body = (at) => ({ order: at, card: 'nr 4111' }), mask = ['/card'] } = options
  const broker = new MemoryBroker()
  const now = Date.now() - 60_000
  for (let at = 0; at < count; at += 1) {
    const id = randomUUID()
    const { message = `card ${at} declined <script>`, key = `key ${id}` } = options
    const named = { signature: options.signature(), code: 'E1', type: 'Declined', message }
    const failure = { class: 'business', ...named } as const
    const history = [{ number: 1, at: now, waitedMs: 0, ...failure, counted: true }]
    const cycle = { ...FIRST_CYCLE, attempts: 1, firstFailedAt: now + at, history }
    const fields = { id, key, source: queue, replayId: undefined, cycle }
    const { headers } = encodeHeaders({ ...fields, reason: 'not_retryable' })
    const allHeaders = { ...headers, authorization: 'Basic secret', ...options.headers }
    send(broker, deadLetterQueue(queue), body(at), { id, headers: allHeaders })
  }
  const source = memorySource({ broker, queue })
  const extract = { salary: '/salary' }
  await made.ingest(source, { mask, maskHeaders: ['authorization'], extract })
  await source.close()
}

/** Sets one message aside, because its body is too large, and returns its id. */
export async function setOneAside(
  made: Catalog,
  queue: string,
  headers: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const broker = new MemoryBroker()
  const id = randomUUID()
  send(broker, deadLetterQueue(queue), { order: id }, { id, headers: { ...headers } })
  const source = memorySource({ broker, queue })
  await made.ingest(source, { maxPayloadBytes: 1 })
  await source.close()
  const { messages } = await made.setAside.list({ sources: [queue], limit: 200 })
  return messages.find(({ messageId }) => messageId === id)?.id ?? ''
}
