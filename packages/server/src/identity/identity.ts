import type { Role } from '@redrive/api'
import type { Pool } from 'pg'
import type { Caller } from '../access/caller.ts'
import type { WriteAudit } from '../audit/entry.ts'
import { actionsOf, type Binding, grantsOf } from './grants.ts'
import { type Logins, loginsIn } from './logins.ts'
import type { Credentials, Identity } from './port.ts'
import { createProvider, type Provider, type ProviderOptions, subjectOf } from './provider.ts'
import { isLoopbackHost, type PublicUrl, publicUrlOf } from './public-url.ts'
import { csrfOfSecret } from './secrets.ts'
import { type Session, type Sessions, sessionsIn } from './sessions.ts'
import { callerOfToken, type GrantsNow, tokensIn } from './tokens.ts'

export interface OidcOptions extends ProviderOptions {
  /** A session ends when it is not used for so long. */
  readonly sessionIdleMs: number
  /** A session ends after so long, used or not. */
  readonly sessionMostMs: number
}

/** Everybody is the same person. Only for a server that listens on a loopback address. */
export interface DevelopmentOptions {
  readonly name: string
  readonly roles: readonly Role[]
}

export interface IdentityOptions {
  readonly pool: Pool
  readonly audit: WriteAudit
  /** As people and browsers see the server. */
  readonly publicUrl: string
  readonly auth:
    | { readonly oidc: OidcOptions; readonly development?: undefined }
    | { readonly development: DevelopmentOptions; readonly oidc?: undefined }
  /** Who may do what. Asked at every request. */
  readonly access: () => readonly Binding[]
}

/** What the routes of the login need beside. */
export interface LoginParts {
  readonly audit: WriteAudit
  readonly publicUrl: PublicUrl
  /** Undefined in development: there is nothing to log in to. */
  readonly oidc:
    | { readonly provider: Provider; readonly logins: Logins; readonly sessions: Sessions }
    | undefined
  callerOf(session: Session): Caller
}

export interface ServerIdentity extends Identity {
  readonly login: LoginParts
}

const DEVELOPMENT = 'development'

export function createIdentity(options: IdentityOptions): ServerIdentity {
  const { pool, audit, auth } = options
  const publicUrl = publicUrlOf(options.publicUrl)
  const grantsNow = grantsIn(options)
  const oidc = auth.oidc === undefined ? undefined : oidcParts(pool, auth.oidc)
  // Beside the caller and not in it: it goes to whoever has the session, and to no log.
  const proofs = new WeakMap<Caller, string>()
  const callerOf = (session: Session) => callerOfSession(session, grantsNow)

  async function bySession(secret: string | undefined): Promise<Caller | undefined> {
    if (secret === undefined || oidc === undefined) return undefined
    const session = await oidc.sessions.find(secret)
    if (session === undefined) return undefined
    const caller = callerOf(session)
    proofs.set(caller, csrfOfSecret(secret))
    return caller
  }

  return {
    async identify({ headers, cookies }) {
      const token = bearerOf(headers)
      // A token that is not right is not made good by a session.
      if (token !== undefined) return callerOfToken(pool, token, grantsNow)
      if (auth.development !== undefined) return developerOf(auth.development, headers)
      return bySession(cookies[publicUrl.cookies.session])
    },
    csrfOf: async (caller) => proofs.get(caller),
    tokens: tokensIn(pool),
    login: { audit, publicUrl, oidc, callerOf },
  }
}

const oidcParts = (pool: Pool, oidc: OidcOptions) => ({
  provider: createProvider(oidc),
  logins: loginsIn(pool),
  sessions: sessionsIn(pool, { idleMs: oidc.sessionIdleMs, mostMs: oidc.sessionMostMs }),
})

/** Someone of another provider, or of another way to sign in, may nothing. */
function grantsIn({ auth, access }: IdentityOptions): GrantsNow {
  return ({ id, groups }) => {
    if (auth.oidc === undefined) return id === DEVELOPMENT ? developerGrants(auth.development) : []
    const subject = subjectOf(auth.oidc.issuer, id)
    return subject === undefined ? [] : grantsOf(access(), subject, groups)
  }
}

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

/** A name or an address, and perhaps a port. */
const HOST = /^(\[[\da-f:]+\]|[\w.-]+)(?::\d+)?$/i

/**
 * A page of another site may have its name point to this machine and ask from a browser here; then the name
 * of that site is what it asks for.
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
