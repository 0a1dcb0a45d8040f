import { RedriveError } from '@redrive/core'
import * as client from 'openid-client'
import { ProblemError } from '../access/problem-error.ts'
import { isLoopbackHost } from './public-url.ts'
import type { SignedIn } from './sessions.ts'

export interface ProviderOptions {
  /** Issuer URL, exactly as in the discovery document. https, or http on this machine. */
  readonly issuer: string
  /** Client id of this server at the provider. */
  readonly clientId: string
  /** Client secret. Default: none; the server is a public client that uses PKCE. */
  readonly clientSecret?: string | undefined
  /** How the client secret is sent. Default 'basic', as in the standard. */
  readonly clientAuthentication?: 'basic' | 'post' | undefined
  /** Scopes to request. Must contain `openid`. */
  readonly scopes: readonly string[]
  /** Claim that contains the groups: a list of texts, or one text. */
  readonly groupsClaim: string
  /** Claim that contains the display name. */
  readonly nameClaim: string
}

/** Values of a login that the callback needs. */
export interface Pending {
  readonly state: string
  readonly nonce: string
  /** Code verifier of PKCE. */
  readonly verifier: string
}

/** The OpenID provider. */
export interface Provider {
  begin(redirectUri: string): Promise<{ readonly url: string; readonly pending: Pending }>
  /** Checks the callback and returns the user. Rejects with a `ProblemError` when the check fails. */
  finish(answer: URL, pending: Pending): Promise<SignedIn>
}

/** 10 s, because a user is waiting. */
const TIMEOUT_S = 10
/** 1 h: the endpoints of a provider rarely change. */
const CACHE_MS = 3_600_000
/** More than directories return. Groups are stored with the user and read at every request. */
const GROUPS_MAX = 5_000
const GROUP_LENGTH_MAX = 500
const SUBJECT_LENGTH_MAX = 255
const NAME_LENGTH_MAX = 200

export function createProvider(options: ProviderOptions): Provider {
  const configuration = cachedConfiguration(() => discover(options))
  return {
    async begin(redirectUri) {
      const config = await configuration()
      const verifier = client.randomPKCECodeVerifier()
      const pending = { state: client.randomState(), nonce: client.randomNonce(), verifier }
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: options.scopes.join(' '),
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state: pending.state,
        nonce: pending.nonce,
      })
      return { url: url.href, pending }
    },
    async finish(answer, pending) {
      const config = await configuration()
      try {
        return personOf(options, await claimsOf(config, answer, pending, options.groupsClaim))
      } catch (error) {
        throw loginErrorOf(error)
      }
    },
  }
}

function discover(options: ProviderOptions): Promise<client.Configuration> {
  const { issuer, clientId, clientSecret, clientAuthentication } = options
  const server = new URL(issuer)
  const send = clientAuthentication === 'post' ? client.ClientSecretPost : client.ClientSecretBasic
  return client.discovery(
    server,
    clientId,
    undefined,
    clientSecret === undefined ? client.None() : send(clientSecret),
    {
      timeout: TIMEOUT_S,
      // Checks the signature of the ID token, although it comes directly from the provider.
      execute: [client.enableNonRepudiationChecks, ...(isPlainLoopback(server) ? [plainHttp] : [])],
    },
  )
}

/** Allows http for a provider on this machine, for development. The library marks it as deprecated as a warning. */
// oxlint-disable-next-line typescript/no-deprecated
const plainHttp = client.allowInsecureRequests
const isPlainLoopback = ({ protocol, hostname }: URL) =>
  protocol === 'http:' && isLoopbackHost(hostname)

/** Caches the configuration for an hour. A failure is not cached. */
function cachedConfiguration(
  load: () => Promise<client.Configuration>,
): () => Promise<client.Configuration> {
  let result: Promise<client.Configuration> | undefined
  let until = 0
  return async () => {
    if (result === undefined || performance.now() > until) {
      result = load()
      until = performance.now() + CACHE_MS
    }
    try {
      return await result
    } catch (cause) {
      result = undefined
      throw new ProblemError(
        'unavailable',
        'The OpenID provider is unreachable or does not match auth.oidc.issuer. Try again later, or see the server log.',
        { cause },
      )
    }
  }
}

type Claims = Readonly<Record<string, unknown>>

/** Returns the claims. The library checks state, issuer, audience, times, nonce, PKCE and the signature. */
async function claimsOf(
  config: client.Configuration,
  answer: URL,
  { state, nonce, verifier }: Pending,
  groupsClaim: string,
): Promise<Claims> {
  const tokens = await client.authorizationCodeGrant(config, answer, {
    expectedState: state,
    expectedNonce: nonce,
    pkceCodeVerifier: verifier,
    idTokenExpected: true,
  })
  const claims: Claims | undefined = tokens.claims()
  if (claims === undefined) throw new RedriveError('REFUSED', 'The provider sent no ID token.')
  const hasMore = config.serverMetadata().userinfo_endpoint !== undefined
  if (claims[groupsClaim] !== undefined || !hasMore) return claims
  // Many providers omit groups from the ID token. Claims of the ID token take precedence.
  const more = await client.fetchUserInfo(config, tokens.access_token, String(claims['sub']))
  return { ...more, ...claims }
}

function personOf({ issuer, groupsClaim, nameClaim }: ProviderOptions, claims: Claims): SignedIn {
  const subject = claims['sub']
  if (typeof subject !== 'string' || subject === '' || subject.length > SUBJECT_LENGTH_MAX) {
    throw new RedriveError(
      'REFUSED',
      'The subject ("sub") of the ID token is not a text of 1 to 255 characters.',
    )
  }
  const names = [claims[nameClaim], claims['preferred_username'], claims['email'], subject]
  const name = names.find((one) => typeof one === 'string' && one !== '') as string
  return {
    id: personIdOf(issuer, subject),
    name: storable(name).slice(0, NAME_LENGTH_MAX),
    groups: groupsOf(claims[groupsClaim]),
  }
}

/** Returns the id of a user. An issuer cannot contain `#`, so the parts can be separated again. */
export const personIdOf = (issuer: string, subject: string): string => `${issuer}#${subject}`

/** Returns the subject of a user id, or undefined for a user of another provider. */
export const subjectOf = (issuer: string, person: string): string | undefined =>
  person.startsWith(`${issuer}#`) ? person.slice(issuer.length + 1) : undefined

/** Returns the groups. Rejects a list that is too long instead of cutting it, because the cut could drop access. */
function groupsOf(claim: unknown): readonly string[] {
  const groups = (Array.isArray(claim) ? claim : [claim]).filter((one) => typeof one === 'string')
  if (groups.length > GROUPS_MAX || groups.some(({ length }) => length > GROUP_LENGTH_MAX)) {
    throw new ProblemError(
      'forbidden',
      `The provider sent more than ${GROUPS_MAX} groups, or a group with more than ${GROUP_LENGTH_MAX} characters. Configure it to send only the groups in "access".`,
    )
  }
  return groups.map(storable)
}

/** Replaces NUL and lone surrogates, which PostgreSQL cannot store. */
const storable = (text: string) => text.toWellFormed().replaceAll('\0', '\uFFFD')

/** Returns an error for the user. The details of the library are only in its cause, for the log. */
function loginErrorOf(error: unknown): unknown {
  if (error instanceof ProblemError) return error
  if (error instanceof client.AuthorizationResponseError) {
    const detail =
      'The OpenID provider rejected the login. Try again, or ask its administrator for access to Redrive.'
    return new ProblemError('forbidden', detail, { cause: error })
  }
  const detail =
    'The response of the OpenID provider does not match this login. Start the login again.'
  return new ProblemError('forbidden', detail, { cause: error })
}
