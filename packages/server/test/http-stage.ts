import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { type Action, type Client, createClient, type Role, ROLES } from '@redrive/api'
import { type Catalog, catalog, migrate } from '@redrive/catalog'
import { encodeHeaders, FIRST_CYCLE } from '@redrive/core'
import { deadLetterQueue, MemoryBroker, memorySource, send } from '@redrive/memory'
import type { FastifyInstance } from 'fastify'
import type { Pool } from 'pg'
import { type DestinationStream, pino } from 'pino'
import { afterAll } from 'vitest'
import type { Caller } from '../src/access/caller.ts'
import { type Audit, createAudit } from '../src/audit/audit.ts'
import type { NewEntry } from '../src/audit/entry.ts'
import { createDesk, type Desk } from '../src/desk/desk.ts'
import { type AppOptions, createApp } from '../src/http/app.ts'
import type { Identity, Token, TokenRequest } from '../src/identity/port.ts'
import { insisting } from '../src/insist.ts'
import { serverDatabase } from './database-stage.ts'

/** The header that says who asks, in tests of everything but identity. */
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
  elsewhere: person('elsewhere', ['operator'], ['billing']),
  agent: { ...person('agent', ['operator', 'approver'], ['orders']), isAgent: true },
  nobody: person('nobody', [], []),
  // The owner of the agent's token: the same human being.
  owner: {
    ...person('agent', ['operator', 'approver'], ['orders']),
    credential: 'session of owner',
  },
  // May look at billing, and do things in orders.
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
  // Changes what goes out, and sees no bodies.
  blindEditor: {
    ...person('blindEditor', ['viewer'], ['orders']),
    grants: [{ actions: ['view', 'replay', 'edit'], sources: ['orders'] }],
  },
  // Sees bodies, and that is all.
  reader: {
    ...person('reader', ['viewer'], ['orders']),
    grants: [{ actions: ['view', 'payload'], sources: ['orders'] }],
  },
  configurer: {
    ...person('configurer', ['viewer'], ['orders']),
    grants: [{ actions: ['view', 'configure'], sources: ['orders'] }],
  },
  configuringAgent: { ...person('robot', ['admin'], ['orders']), isAgent: true },
  session: { ...person('session', ['operator'], ['orders']), via: 'session' },
}

export const CSRF = 'the proof of a session'

/** Whoever the header names, and tokens that are only remembered. */
function stubIdentity(people: Readonly<Record<string, Caller>>): Identity {
  const tokens = new Map<string, Token>()
  return {
    async identify({ headers }) {
      return people[String(headers[WHO])]
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
    },
  }
}

export interface Stage {
  readonly pool: Pool
  readonly catalog: Catalog
  readonly audit: Audit
  readonly desk: Desk
  readonly app: FastifyInstance
  readonly url: string
  /** Every route there is. */
  readonly routes: readonly string[]
  tokens(who: string): { create(request: TokenRequest): Promise<Token> }
  /** Everything that was logged. */
  readonly logged: string[]
  /** A client of one of the people; undefined: of nobody. */
  readonly as: (who: string | undefined) => Client
  /** The same without the client: to send what it would not. */
  ask(who: string | undefined, path: string, init?: RequestInit): Promise<Response>
}

export interface StageOptions {
  readonly limits?: AppOptions['limits']
  /** Stands in for the audit's own write. */
  readonly write?: (entry: NewEntry, write: Audit['write']) => Promise<void>
  readonly catalog?: (made: Catalog) => Catalog
  readonly desk?: (made: Desk) => Desk
  readonly approval?: 'another_person' | 'anyone'
}

/** A limit that no test meets by chance. */
const MANY = { requestsPerMinute: 1_000_000 }

export async function database(name: string): Promise<Pool> {
  const pool = await serverDatabase(name)
  await migrate(pool)
  return pool
}

/** A server on real PostgreSQL, on a port of its own. */
export async function staged(pool: Pool, options: StageOptions = {}): Promise<Stage> {
  const { approval = 'another_person', limits = MANY } = options
  const plain = catalog({ pool, approval })
  const made = options.catalog?.(plain) ?? plain
  const real = createAudit({ pool })
  const write = options.write
  const audit =
    write === undefined ? real : { ...real, write: (one: NewEntry) => write(one, real.write) }
  const identity = stubIdentity(PEOPLE)
  const logged: string[] = []
  const to: DestinationStream = { write: (line) => void logged.push(line) }
  const logger = pino({}, to)
  const plainDesk = createDesk({ catalog: made, audit, identity, insist: insisting(logger) })
  const desk = options.desk?.(plainDesk) ?? plainDesk
  const app = await createApp({
    desk,
    identity,
    pool,
    logger,
    publicUrl: 'https://redrive.test',
    limits,
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

/** As Fastify itself lists them, a tree with four characters for each level: `GET /api/v1/me`. */
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

/** Dead letters through the memory transport; each call makes a failure group of its own. */
export async function fill(
  made: Catalog,
  queue: string,
  count = 1,
  body: (at: number) => unknown = (at) => ({ order: at, card: '4111' }),
): Promise<Filled> {
  const broker = new MemoryBroker()
  const now = Date.now() - 60_000
  const signature = `1-${randomUUID().replaceAll('-', '').slice(0, 16)}`
  for (let at = 0; at < count; at += 1) {
    const id = randomUUID()
    const record = { number: 1, at: now, class: 'business', signature, code: 'E1' } as const
    const history = [{ ...record, message: `card ${at} declined <script>` }]
    const cycle = { ...FIRST_CYCLE, attempts: 1, firstFailedAt: now + at, history }
    const said = { id, key: `key ${id}`, source: queue, replayId: undefined, cycle }
    const { headers } = encodeHeaders({ ...said, reason: 'not_retryable' })
    const mine = { ...headers, authorization: 'Basic secret' }
    send(broker, deadLetterQueue(queue), body(at), { id, headers: mine })
  }
  const source = memorySource({ broker, queue })
  const extract = { salary: '/salary' }
  await made.ingest(source, { mask: ['/card'], maskHeaders: ['authorization'], extract })
  await source.close()
  const { groups } = await made.groups({ sources: [queue], most: 200 })
  const group = groups.find((one) => one.signature === signature)?.id ?? ''
  const { deadLetters } = await made.deadLetters({ groups: [group], most: 200 })
  return { group, ids: deadLetters.map(({ id }) => id) }
}
