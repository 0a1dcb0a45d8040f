import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Action, ROLES } from '@redrive/api/enums'
import type { Pool } from 'pg'
import { type Browser, chromium } from 'playwright-core'
import { openDatabase } from '../../harness/effects.ts'
import { createDatabase, dropDatabase } from '../../postgres/database.ts'
import { ROOT, services, urlsOf } from '../../harness/services.ts'
import { type Replica, startReplica } from '../replica.ts'
import { type Person, asking, type HttpResponse } from './ask.ts'
import { Canary } from './canary.ts'
import { CLIENT, OpenId } from './provider.ts'
import { Queues } from './queues.ts'
import { hostileName } from './strings.ts'
import { Visitor } from './visitor.ts'

/** Users of the scenarios. A token counts as its owner. */
export const PEOPLE = ['alice', 'bob', 'carol', 'dave', 'root'] as const
export type Who = (typeof PEOPLE)[number]

const OPERATOR_AND_APPROVER = ['operator', 'approver'] as const

/** A source with masks. */
export const MASKED_SOURCE = 'payments'
const MASKS = { mask: ['/card/number'], maskHeaders: ['x-customer'] }

/** Permissions: `dave` has none in orders, and the others have none in billing. */
const ACCESS = [
  { people: ['alice'], roles: ['operator'], sources: ['orders', MASKED_SOURCE] },
  { people: ['bob'], roles: ['approver'], sources: ['orders'] },
  { people: ['carol'], roles: OPERATOR_AND_APPROVER, sources: ['orders'] },
  { people: ['dave'], roles: OPERATOR_AND_APPROVER, sources: ['billing'] },
  { people: ['root'], roles: ['admin'], sources: ['*'] },
  { groups: ['crew'], roles: ['operator'], sources: ['orders'] },
] as const

/** A server with users, dead letters and a broker, and everything that an attacker has. */
export interface Target {
  readonly server: Replica
  readonly openId: OpenId
  readonly pool: Pool
  readonly queues: Queues
  /** Receives every request that an attack made a browser send. */
  readonly canary: Canary
  /** The source whose name is itself an attack. */
  readonly hostileSource: string
  /** The config of database and sources, for another process of the same server. */
  readonly config: Readonly<Record<string, unknown>>
  readonly folder: string
  /** Sends requests with the token of this user. */
  readonly as: Readonly<Record<Who, Person>>
  /** Signs in a user with a browser. */
  visitor(who: string): Promise<{ readonly visitor: Visitor; readonly asking: Person }>
  browser(): Promise<Browser>
}

let made: Promise<Started> | undefined

/** Returns the server that all scenarios share. It starts when it is first needed. */
export async function target(): Promise<Target> {
  made ??= start()
  return (await made).target
}

/** Ends what was started. */
export async function endTarget(): Promise<void> {
  const started = await made
  made = undefined
  await started?.end()
}

interface Started {
  readonly target: Target
  end(): Promise<void>
}

const FOLDER = join(ROOT, '.reports/faults/server-attacks')
/** The limit of requests must not stop an attack, because that would hide a weakness behind it. */
const LIMITS = { requestsPerMinute: 1_000_000 }

async function start(): Promise<Started> {
  await rm(FOLDER, { recursive: true, force: true })
  await mkdir(FOLDER, { recursive: true })
  const [postgresUrl = ''] = await urlsOf('postgres')
  const [amqpUrl = ''] = await urlsOf('rabbitmq')
  const databaseUrl = await createDatabase(postgresUrl, 'server-attacks')
  const pool = openDatabase(databaseUrl)
  // Opens a connection now. Another run may drop a database without connections.
  await pool.query('select 1')
  const canary = await Canary.start()
  const hostileSource = hostileName(canary.url)
  const sources = ['orders', 'billing', MASKED_SOURCE, hostileSource]
  const queues = await Queues.declare(amqpUrl, sources, { [MASKED_SOURCE]: MASKS })
  const openId = await OpenId.start()
  const config = {
    database: { url: databaseUrl },
    auth: { oidc: oidcOf(openId) },
    access: ACCESS,
    limits: LIMITS,
    migrate: true,
    sources: queues.config(),
  }
  const server = await startReplica({
    name: 'server',
    // The scenario that needs the role `watch` starts it.
    roles: 'api,ingest,replay',
    folder: FOLDER,
    config,
  })
  openId.serve(server.url)
  let browser: Promise<Browser> | undefined
  const found: Target = {
    ...{ server, openId, pool, queues, canary, hostileSource, config, folder: FOLDER },
    as: await tokensOf(server.url),
    visitor: (who) => visitorOf(server.url, who),
    browser: () => (browser ??= openBrowser()),
  }
  return {
    target: found,
    async end() {
      await (await browser)?.close()
      await server.kill()
      await Promise.all([openId.end(), canary.end(), queues.end(), pool.end()])
      await dropDatabase(databaseUrl)
    },
  }
}

const oidcOf = ({ issuer }: OpenId) => ({
  issuer,
  clientId: CLIENT.id,
  clientSecret: CLIENT.secret,
  scopes: ['openid', 'profile'],
})

async function openBrowser(): Promise<Browser> {
  await services('up', 'chromium')
  const executablePath = await services('do', 'chromium', 'path')
  // Chromium has no sandbox for root, and scenarios run as root in a container.
  return chromium.launch({ executablePath, args: ['--no-sandbox'] })
}

async function visitorOf(serverUrl: string, who: string) {
  const visitor = new Visitor(serverUrl)
  const answer = await visitor.login(who)
  if (answer.status !== 302) throw new Error(`${who} is not signed in: ${await answer.text()}`)
  const headers = { cookie: visitor.cookie, origin: serverUrl }
  const { csrf = '' } = (await asking(serverUrl, headers)('GET', '/api/v1/me')).json<{
    csrf?: string
  }>()
  return { visitor, asking: asking(serverUrl, { ...headers, 'x-redrive-csrf': csrf }) }
}

async function tokensOf(serverUrl: string): Promise<Record<Who, Person>> {
  const pairs = await Promise.all(
    PEOPLE.map(async (who) => {
      const { asking: session } = await visitorOf(serverUrl, who)
      const { sources = [], roles = [] } = ACCESS.find(isFor(who)) ?? {}
      const actions = [...new Set(roles.flatMap((role): readonly Action[] => ROLES[role]))]
      const response = await newToken(session, { actions, sources })
      return [who, asking(serverUrl, bearer(response.json<{ secret: string }>().secret))] as const
    }),
  )
  return Object.fromEntries(pairs) as Record<Who, Person>
}

const isFor = (who: Who) => (binding: (typeof ACCESS)[number]) =>
  'people' in binding && (binding.people as readonly string[]).includes(who)

export interface WantedToken {
  readonly actions: readonly Action[]
  readonly sources: readonly string[]
  readonly name?: string
  readonly isAgent?: boolean
}

export const newToken = (session: Person, wanted: WantedToken): Promise<HttpResponse> =>
  session('POST', '/api/v1/tokens', { body: { name: 'drill', days: 1, ...wanted } })

export const bearer = (secret: string): { readonly authorization: string } => ({
  authorization: `Bearer ${secret}`,
})
