import type { Role } from '@redrive/api/enums'
import type { Pool } from 'pg'
import type { Caller } from '../access/caller.ts'
import type { WriteAudit } from '../audit/entry.ts'
import { runOn } from '../database.ts'
import { actionsOf, type Binding, grantsOf } from './grants.ts'
import { type Logins, loginsIn } from './logins.ts'
import type { Credentials, Identity } from './port.ts'
import { createProvider, type Provider, type ProviderOptions, subjectOf } from './provider.ts'
import { isLoopbackHost, type PublicUrl, publicUrlOf } from './public-url.ts'
import { csrfOfSecret } from './secrets.ts'
import { PERSON, type PersonRow } from './statements.ts'
import { type Person, type Session, type Sessions, sessionsIn } from './sessions.ts'
import { callerOfToken, type GrantsNow, tokensIn } from './tokens.ts'

export interface OidcOptions extends ProviderOptions {
  /** A session ends after this time without a request. */
  readonly sessionIdleMs: number
  /** Maximum duration of a session. */
  readonly sessionMaxAgeMs: number
  /** Maximum time since the last login during which the groups of a user are used. */
  readonly groupsMaxAgeMs: number
}

/** Options of development mode, in which every caller is the same user. Only for loopback addresses. */
export interface DevelopmentOptions {
  readonly name: string
  readonly roles: readonly Role[]
}

export interface IdentityOptions {
  readonly pool: Pool
  readonly audit: WriteAudit
  /** URL at which browsers reach the server. */
  readonly publicUrl: string
  readonly auth:
    | { readonly oidc: OidcOptions; readonly development?: undefined }
    | { readonly development: DevelopmentOptions; readonly oidc?: undefined }
  /** Returns the bindings. Called for every request. */
  readonly access: () => readonly Binding[]
}

/** Dependencies of the login routes. */
export interface LoginDeps {
  readonly audit: WriteAudit
  readonly publicUrl: PublicUrl
  /** Undefined in development mode, which has no login. */
  readonly oidc:
    | { readonly provider: Provider; readonly logins: Logins; readonly sessions: Sessions }
    | undefined
  callerOf(session: Session): Caller
}

export interface ServerIdentity extends Identity {
  readonly login: LoginDeps
}

const DEVELOPMENT = 'development'

/** Sent by programs that act for a model, whatever token they use. */
const AGENT_HEADER = 'x-redrive-agent'

/** Development mode has no sessions. */
const NO_SESSIONS: ServerIdentity['sessions'] = {
  list: async () => [],
  revoke: async () => false,
}

export function createIdentity(options: IdentityOptions): ServerIdentity {
  const { pool, audit, auth } = options
  const publicUrl = publicUrlOf(options.publicUrl)
  const grantsNow = grantsIn(options)
  const oidc = auth.oidc === undefined ? undefined : oidcParts(pool, auth.oidc)
  // Stored outside of the caller, so that the CSRF token is not logged.
  const csrfTokens = new WeakMap<Caller, string>()
  const callerOf = (session: Session) => callerOfSession(session, grantsNow)

  async function callerOfCookie(
    secret: string | undefined,
    isPassive: boolean,
  ): Promise<FoundCaller | undefined> {
    if (secret === undefined || oidc === undefined) return undefined
    const session = await oidc.sessions.find(secret, isPassive)
    // With groups that are too old, the user must sign in again.
    if (session === undefined || !areCurrent(options, session.person)) return undefined
    return { caller: callerOf(session), csrf: csrfOfSecret(secret) }
  }

  async function callerOfCredentials({
    headers,
    cookies,
    isPassive = false,
  }: Credentials): Promise<FoundCaller | undefined> {
    const token = bearerOf(headers)
    // An invalid token is rejected even if the request also has a valid session.
    if (token !== undefined) return found(await callerOfToken(pool, token, grantsNow, isPassive))
    if (auth.development !== undefined) return found(developerOf(auth.development, headers))
    return callerOfCookie(cookies[publicUrl.cookies.session], isPassive)
  }

  return {
    async identify(credentials) {
      const { headers, origin } = credentials
      const known = await callerOfCredentials(credentials)
      if (known === undefined) return undefined
      // A program can declare that it is an agent, which only removes permissions.
      const isAgent = known.caller.isAgent || headers[AGENT_HEADER] !== undefined
      const caller = { ...known.caller, isAgent, ...(origin === undefined ? {} : { origin }) }
      if (known.csrf !== undefined) csrfTokens.set(caller, known.csrf)
      return caller
    },
    async grantsOf(id, { anyAge = false } = {}) {
      const [row] = await runOn(pool)<PersonRow>(PERSON, [id])
      const { groups = [], groups_age_ms: ageMs = 0 } = row ?? {}
      return grantsNow({ id, name: id, groups, groupsAgeMs: anyAge ? 0 : ageMs })
    },
    csrfOf: async (caller) => csrfTokens.get(caller),
    tokens: tokensIn(pool),
    sessions: oidc?.sessions ?? NO_SESSIONS,
    login: { audit, publicUrl, oidc, callerOf },
  }
}

/** A caller, and the CSRF token of its session. */
interface FoundCaller {
  readonly caller: Caller
  readonly csrf?: string
}

const found = (caller: Caller | undefined): FoundCaller | undefined =>
  caller === undefined ? undefined : { caller }

const oidcParts = (pool: Pool, oidc: OidcOptions) => ({
  provider: createProvider(oidc),
  logins: loginsIn(pool),
  sessions: sessionsIn(pool, { idleMs: oidc.sessionIdleMs, mostMs: oidc.sessionMaxAgeMs }),
})

/** Returns the function that computes grants. Users of another provider or login method have no grants. */
function grantsIn(options: IdentityOptions): GrantsNow {
  const { auth, access } = options
  return (person) => {
    const { id, groups } = person
    if (auth.oidc === undefined) return id === DEVELOPMENT ? developerGrants(auth.development) : []
    const subject = subjectOf(auth.oidc.issuer, id)
    if (subject === undefined) return []
    // A user who left keeps the groups of the last login. They count only for some time.
    return grantsOf(access(), subject, areCurrent(options, person) ? groups : [])
  }
}

const areCurrent = ({ auth }: IdentityOptions, { groupsAgeMs }: Person) =>
  auth.oidc === undefined || groupsAgeMs <= auth.oidc.groupsMaxAgeMs

const developerGrants = ({ roles }: DevelopmentOptions) => [
  { actions: actionsOf(roles), sources: ['*'] },
]

function callerOfSession({ id, person }: Session, grantsNow: GrantsNow): Caller {
  return {
    person: person.id,
    name: person.name,
    via: 'session',
    grants: grantsNow(person),
    isAgent: false,
    credential: id,
  }
}

/** Matches a host name or address, with an optional port. */
const HOST = /^(\[[\da-f:]+\]|[\w.-]+)(?::\d+)?$/i

/**
 * Returns the developer, or undefined when the header Host is not a loopback name. Another site could point its
 * host name to this machine (DNS rebinding); the header Host then contains that name.
 */
function developerOf(
  development: DevelopmentOptions,
  headers: Credentials['headers'],
): Caller | undefined {
  const name = HOST.exec(String(headers['host']))?.[1]
  if (name === undefined || !isLoopbackHost(name)) return undefined
  return {
    person: DEVELOPMENT,
    name: development.name,
    via: 'development',
    grants: developerGrants(development),
    isAgent: false,
    credential: undefined,
  }
}

function bearerOf({ authorization }: Credentials['headers']): string | undefined {
  if (typeof authorization !== 'string') return undefined
  return /^bearer +(.*)$/i.exec(authorization)?.[1]
}
