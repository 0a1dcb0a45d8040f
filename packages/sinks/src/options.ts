import { RedriveError } from '@redrive/core'
import { type Check, readSection } from '@redrive/core/internal'
import type { Clock } from '@redrive/runtime'

/** Options of every sink. */
export interface SinkOptions {
  /** Name of this sink in results, metrics and stores. Default: its kind, and its host or path. */
  readonly name?: string
}

/** Options of every sink that uses HTTP. */
export interface HttpOptions extends SinkOptions {
  /** Additional headers for every request. Headers of the protocol cannot be replaced. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
  /** Certificates in PEM: of a private authority, and a client certificate for mutual TLS. Default: none. */
  readonly tls?: TlsOptions
}

export interface TlsOptions {
  /** Certificate of the authority. Default: the authorities of Node.js. */
  readonly ca?: string | Uint8Array
  /** Client certificate. Default: none. */
  readonly cert?: string | Uint8Array
  /** Private key of the client certificate. Default: none. */
  readonly key?: string | Uint8Array
}

/** A user with a password, or a token. */
export type HttpAuth =
  | { readonly user: string; readonly password: string }
  | { readonly token: string }

/** The wall clock. */
export type WallClock = Pick<Clock, 'now'>

/**
 * The system's wall clock. The runtime's clock never jumps, so after a sleep of the machine it would sign
 * with a time that every receiver rejects.
 */
export const wallClock: WallClock = { now: () => Date.now() }

/** 10,000: larger requests fail as a whole too often. */
const BATCH_MAX = 10_000

/** Collects the problems of options, so that they are reported together. */
export class Problems {
  readonly #found: string[] = []

  add(problem: string): void {
    this.#found.push(problem)
  }

  /** Returns the URL, or a placeholder that is never used because the problem is reported first. */
  url(
    field: string,
    value: string,
    variables: readonly string[],
    protocols: readonly string[] = ['http:', 'https:'],
  ): URL {
    const url = URL.parse(value)
    if (url === null) this.expected(field, value, "a URL such as 'https://example.com'", variables)
    else if (!protocols.includes(url.protocol)) {
      this.add(`${field}: expected ${protocols.join(' or ')}//, got ${url.protocol}//`)
    }
    return url ?? new URL('http://invalid')
  }

  /** Adds a value that may contain a password. `variables`: the environment variables that usually contain it. */
  expected(
    field: string,
    value: unknown,
    expected: string,
    variables: readonly string[] = [],
  ): void {
    const check: Check = { isValid: () => false, expected, isSecret: true, variables }
    readSection('', { [field]: value }, this.#found).required(field, check)
  }

  batch(value: number): number {
    if (!Number.isInteger(value) || value < 1 || value > BATCH_MAX) {
      this.add(`batch: expected a whole number from 1 to ${BATCH_MAX}, got ${value}`)
    }
    return value
  }

  headers(field: string, values: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(values)) {
      if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name))
        this.add(`${field}: "${name}" is not a valid header name`)
      // The value may be a secret.
      else if (!/^[\t\x20-\x7e]*$/.test(value)) {
        this.add(`${field}: the value of "${name}" has a character that is not allowed in a header`)
      }
    }
  }

  /** Throws when there are problems. */
  refuse(what: string): void {
    if (this.#found.length === 0) return
    const message = `The options of ${what} are invalid:\n- ${this.#found.join('\n- ')}`
    throw new RedriveError('POLICY_INVALID', message, { problems: this.#found })
  }
}

/** Credentials from the option or from the URL: the header, and its secret parts. */
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

/** Decodes percent-encoding; text that is not encoded stays unchanged. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Returns the URL of a path below the given URL, which may have its own prefix. */
export function below(url: URL, path: string): URL {
  const whole = new URL(url)
  whole.pathname = `${url.pathname.replace(/\/+$/, '')}${path}`
  return whole
}
