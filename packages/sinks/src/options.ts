import { RedriveError } from '@redrive/core'
import type { Clock } from '@redrive/runtime'

/** What every sink can be told. */
export interface SinkOptions {
  /** How people know this sink, in results, metrics and stores. Two of a kind need two names. */
  readonly name?: string
}

/** What every sink that speaks HTTP can be told. */
export interface HttpOptions extends SinkOptions {
  /** More headers for every request. Those the protocol needs cannot be replaced. */
  readonly headers?: Readonly<Record<string, string>>
  /** Certificates in PEM: of a private authority, and our own for mutual TLS. */
  readonly tls?: TlsOptions
}

export interface TlsOptions {
  readonly ca?: string | Uint8Array
  readonly cert?: string | Uint8Array
  readonly key?: string | Uint8Array
}

/** A user with a password, or a token. */
export type HttpAuth =
  | { readonly user: string; readonly password: string }
  | { readonly token: string }

/** Time as others see it. */
export type WallClock = Pick<Clock, 'now'>

/**
 * Not the runtime's clock, which never steps: a machine that slept would sign with a time that every
 * receiver refuses.
 */
export const wallClock: WallClock = { now: () => Date.now() }

/** 10,000: more in one request is a request that fails as a whole too often. */
const BATCH_MAX = 10_000

/** Collects what is wrong with options, so that all of it is told at once. */
export class Problems {
  readonly #found: string[] = []

  add(problem: string): void {
    this.#found.push(problem)
  }

  /** The address, or a placeholder that is never used because the problem is told first. */
  url(field: string, value: string, protocols: readonly string[] = ['http:', 'https:']): URL {
    const url = URL.parse(value)
    // The value itself is not repeated: it may carry a password.
    if (url === null) this.add(`${field}: expected an address such as 'https://example.com'`)
    else if (!protocols.includes(url.protocol)) {
      this.add(`${field}: expected ${protocols.join(' or ')}//, got ${url.protocol}//`)
    }
    return url ?? new URL('http://invalid')
  }

  batch(value: number): number {
    if (!Number.isInteger(value) || value < 1 || value > BATCH_MAX) {
      this.add(`batch: expected a whole number from 1 to ${BATCH_MAX}, got ${value}`)
    }
    return value
  }

  headers(field: string, values: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(values)) {
      if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) this.add(`${field}: '${name}' cannot be a header`)
      // The value may be a secret.
      else if (!/^[\t\x20-\x7e]*$/.test(value)) {
        this.add(`${field}: ${name} has a character that a header cannot carry`)
      }
    }
  }

  /** Throws when there are any. */
  refuse(what: string): void {
    if (this.#found.length === 0) return
    const message = `${what} cannot be set up:\n- ${this.#found.join('\n- ')}`
    throw new RedriveError('POLICY_INVALID', message, { problems: this.#found })
  }
}

/** Who we are, from the option or from the address: the header, and what of it must not be told. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>
  readonly secrets: readonly string[]
}

export function credentialsOf(url: URL, auth?: HttpAuth): Credentials {
  if (auth !== undefined && 'token' in auth) {
    return { headers: { authorization: `Bearer ${auth.token}` }, secrets: [auth.token] }
  }
  const user = auth?.user ?? decoded(url.username)
  const password = auth?.password ?? decoded(url.password)
  if (user === '' && password === '') return { headers: {}, secrets: [] }
  const pair = Buffer.from(`${user}:${password}`).toString('base64')
  return { headers: { authorization: `Basic ${pair}` }, secrets: [pair, password] }
}

/** What is not encoded is meant as it is. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The address of a path below the one that was given, which may have a prefix of its own. */
export function below(url: URL, path: string): URL {
  const whole = new URL(url)
  whole.pathname = `${url.pathname.replace(/\/+$/, '')}${path}`
  return whole
}
