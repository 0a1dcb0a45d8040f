import { RedriveError } from '@redrive/core'
import * as client from 'openid-client'
import { Refusal } from '../access/refusal.ts'
import { isLoopbackHost } from './public-url.ts'
import type { Person } from './sessions.ts'

export interface ProviderOptions {
  /** Of the provider, exactly as its discovery document names it. https, or http on this machine. */
  readonly issuer: string
  /** Of this server, at the provider. */
  readonly clientId: string
  /** Default: a public client, with PKCE alone. */
  readonly clientSecret?: string | undefined
  /** How the secret is sent. Default 'basic', which is the default of the standard. */
  readonly clientAuthentication?: 'basic' | 'post' | undefined
  /** What is asked for. Must have `openid`. */
  readonly scopes: readonly string[]
  /** The claim with the groups: a list of texts, or one text. */
  readonly groupsClaim: string
  /** The claim that people read. */
  readonly nameClaim: string
}

/** What has to be known when the browser is back. */
export interface Pending {
  readonly state: string
  readonly nonce: string
  /** Of PKCE. */
  readonly verifier: string
}

/** The OpenID provider. */
export interface Provider {
  begin(redirectUri: string): Promise<{ readonly url: string; readonly pending: Pending }>
  /** Rejects with a `Refusal` whatever does not fit. */
  finish(answer: URL, pending: Pending): Promise<Person>
}

/** 10 s: a person is waiting. */
const TIMEOUT_S = 10
/** 1 h: where the provider's endpoints are changes rarely, and never within a login. */
const KEEP_MS = 3_600_000
/** More than any directory gives; they are kept with the person and read with every request. */
const GROUPS_MAX = 5_000
const GROUP_LENGTH_MAX = 500
const SUBJECT_LENGTH_MAX = 255
const NAME_LENGTH_MAX = 200

export function createProvider(options: ProviderOptions): Provider {
  const configuration = kept(() => discover(options))
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
        throw refusalOf(error)
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
      // The signature of the ID token is checked although it comes straight from the provider.
      execute: [client.enableNonRepudiationChecks, ...(isPlainLoopback(server) ? [plainHttp] : [])],
    },
  )
}

/** A provider on this machine, for development; the library marks it as deprecated to be noticed. */
// oxlint-disable-next-line typescript/no-deprecated
const plainHttp = client.allowInsecureRequests
const isPlainLoopback = ({ protocol, hostname }: URL) =>
  protocol === 'http:' && isLoopbackHost(hostname)

/** Asked for when it is needed, kept for a while; what went wrong is not kept. */
function kept(ask: () => Promise<client.Configuration>): () => Promise<client.Configuration> {
  let answer: Promise<client.Configuration> | undefined
  let until = 0
  return async () => {
    if (answer === undefined || performance.now() > until) {
      answer = ask()
      until = performance.now() + KEEP_MS
    }
    try {
      return await answer
    } catch (cause) {
      answer = undefined
      throw new Refusal(
        'unavailable',
        'The OpenID provider does not answer, or is not the one that auth.oidc.issuer names. Try again in a moment; the log of the server says more.',
        { cause },
      )
    }
  }
}

type Claims = Readonly<Record<string, unknown>>

/** State, issuer, audience, times, nonce, PKCE and the signature are checked by the library. */
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
  if (claims === undefined) throw new RedriveError('REFUSED', 'There is no ID token.')
  const hasMore = config.serverMetadata().userinfo_endpoint !== undefined
  if (claims[groupsClaim] !== undefined || !hasMore) return claims
  // Many providers keep the ID token small. What it says itself is never replaced.
  const more = await client.fetchUserInfo(config, tokens.access_token, String(claims['sub']))
  return { ...more, ...claims }
}

function personOf({ issuer, groupsClaim, nameClaim }: ProviderOptions, claims: Claims): Person {
  const subject = claims['sub']
  if (typeof subject !== 'string' || subject === '' || subject.length > SUBJECT_LENGTH_MAX) {
    throw new RedriveError(
      'REFUSED',
      'The subject of the ID token is no text of 1 to 255 characters.',
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

/** An issuer has no `#`, so it is clear where it ends. */
export const personIdOf = (issuer: string, subject: string): string => `${issuer}#${subject}`

/** Undefined: somebody of another provider. */
export const subjectOf = (issuer: string, person: string): string | undefined =>
  person.startsWith(`${issuer}#`) ? person.slice(issuer.length + 1) : undefined

/** A list that is too long is refused and not cut: what is missing could be the group that counts. */
function groupsOf(claim: unknown): readonly string[] {
  const groups = (Array.isArray(claim) ? claim : [claim]).filter((one) => typeof one === 'string')
  if (groups.length > GROUPS_MAX || groups.some(({ length }) => length > GROUP_LENGTH_MAX)) {
    throw new Refusal(
      'forbidden',
      `The provider names more than ${GROUPS_MAX} groups, or one with more than ${GROUP_LENGTH_MAX} characters. Let it send only the groups that access names.`,
    )
  }
  return groups.map(storable)
}

/** PostgreSQL keeps neither NUL nor half a surrogate pair. */
const storable = (text: string) => text.toWellFormed().replaceAll('\0', '\uFFFD')

/** What the library found wrong is for the log; the person hears what to do. */
function refusalOf(error: unknown): unknown {
  if (error instanceof Refusal) return error
  if (error instanceof client.AuthorizationResponseError) {
    const detail =
      'The provider did not let you in. Try again, or ask whoever runs it whether you may use Redrive.'
    return new Refusal('forbidden', detail, { cause: error })
  }
  const detail =
    'The answer of the provider does not fit the login that was begun here, so nobody was let in. Start again from the beginning.'
  return new Refusal('forbidden', detail, { cause: error })
}
