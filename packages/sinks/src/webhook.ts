import { createHmac } from 'node:crypto'
import type { LookupFunction } from 'node:net'
import { headerText } from '@redrive/core'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import { AddressGuard, allowProblem, notAllowed } from './addresses.ts'
import { applicationHeaders, bufferOf } from './events.ts'
import type { WebhookHeaderTable } from './header-tables.ts'
import { HttpClient } from './http.ts'
import {
  credentialsOf,
  type HttpAuth,
  type HttpOptions,
  Problems,
  type WallClock,
  wallClock,
} from './options.ts'

export interface WebhookOptions extends HttpOptions {
  /** The URL to post each event to. Must be https, unless `allowHttp`. */
  readonly url: string
  /**
   * The secret of the signatures: `whsec_` and 24 to 64 bytes in base64. Pass several during a rotation:
   * the receiver accepts any of them.
   */
  readonly secret: string | readonly string[]
  /** Allows http. Default `false`: events and signatures would be readable in transit. */
  readonly allowHttp?: boolean
  /**
   * Allowed targets that are not public: addresses, ranges such as '10.0.0.0/8', or names, which may then
   * resolve to any address. Default: none.
   */
  readonly allow?: readonly string[]
  /** Credentials for receivers that require them in addition to the signature. Default: those in the URL, if any. */
  readonly auth?: HttpAuth
  /** Resolves names to addresses. Its results are checked. Default: the system's resolver. */
  readonly lookup?: LookupFunction
  /** Wall time, in epoch milliseconds. Default: the system's. */
  readonly clock?: WallClock
}

const PREFIX = 'whsec_'
/** From the specification: shorter secrets can be guessed, longer ones gain nothing. */
const SECRET_MIN = 24
const SECRET_MAX = 64

/** Names that HTTP or the sink itself uses, or that begin the names of such headers. */
const RESERVED =
  /^(content-|webhook-|proxy-|sec-|accept|connection$|expect$|host$|keep-alive$|te$|trailer$|transfer-encoding$|upgrade$|user-agent$|via$)/
/** A name that HTTP allows. */
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/

/**
 * Posts each event, signed as in Standard Webhooks, to an address that is checked on connect. It has no health
 * check: HEAD may succeed while every POST fails, and a POST without an event has effects.
 */
export class WebhookSink implements Sink {
  readonly name: string
  readonly batch: number = 1
  readonly #url: URL
  readonly #keys: readonly Buffer[]
  readonly #client: HttpClient
  /** Names of the configured headers, in lower case. An event cannot replace them. */
  readonly #configured: ReadonlySet<string>
  readonly #clock: WallClock

  constructor(options: WebhookOptions) {
    const { url, secret, allow = [], headers = {}, tls, auth } = options
    const { allowHttp = false, lookup, clock = wallClock } = options
    const problems = new Problems()
    const secrets = Array.isArray(secret) ? (secret as readonly string[]) : [secret as string]
    this.#url = problems.url(
      'url',
      url,
      ['WEBHOOK_URL'],
      allowHttp ? ['https:', 'http:'] : ['https:'],
    )
    this.#keys = secrets.map((one) => keyOf(one, problems))
    if (secrets.length === 0)
      problems.add('secret: expected one secret, or several during a rotation')
    for (const entry of allow) {
      const problem = allowProblem(entry)
      if (problem !== undefined) problems.add(problem)
    }
    problems.headers('headers', headers)
    problems.refuse('webhook()')
    const guard = new AddressGuard(allow, lookup)
    const host = this.#url.hostname.replace(/^\[(.*)\]$/, '$1')
    // An address needs no lookup, so it must be checked here.
    if (!guard.allowsHost(host)) throw notAllowed(this.#url.hostname)
    this.name = options.name ?? `webhook ${this.#url.host}`
    this.#clock = clock
    const credentials = credentialsOf(this.#url, auth)
    const configured = Object.keys({ ...headers, ...credentials.headers })
    this.#configured = new Set(configured.map((name) => name.toLowerCase()))
    this.#client = new HttpClient({
      name: this.name,
      headers: { ...headers, ...credentials.headers },
      tls,
      secrets: [...secrets, ...credentials.secrets],
      lookup: guard.lookup,
    })
  }

  async send(
    events: readonly OutboundEvent[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    for (const event of events) await this.#post(event, signal)
  }

  async #post(event: OutboundEvent, signal: AbortSignal): Promise<void> {
    const body = bufferOf(event.bytes)
    const headers = {
      ...this.#forwarded(event),
      ...describe(event),
      ...this.#sign(event, body),
    }
    await this.#client.expectSuccess({ method: 'POST', url: this.#url, headers, body, signal })
  }

  /** Returns the headers of the application that may be headers of this request. */
  #forwarded(event: OutboundEvent): Readonly<Record<string, string>> {
    const isAllowed = (name: string) =>
      TOKEN.test(name) && !RESERVED.test(name) && !this.#configured.has(name)
    return Object.fromEntries(
      applicationHeaders(event)
        .filter(([name]) => isAllowed(name))
        .map(([name, value]) => [name, headerText(value)]),
    )
  }

  /** Signs a body. The id is the same on every attempt; the time is that of this attempt, because receivers reject old ones. */
  #sign(event: OutboundEvent, body: Buffer): Partial<WebhookHeaderTable> {
    const id = webhookId(event.id)
    const timestamp = String(Math.floor(this.#clock.now() / 1_000))
    const signed = (prefix: string) =>
      this.#keys
        .map(
          (key) => `v1,${createHmac('sha256', key).update(prefix).update(body).digest('base64')}`,
        )
        .join(' ')
    const [type, key] = [webhookId(event.type), webhookId(event.key)]
    return {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signed(`${id}.${timestamp}.`),
      'redrive-signature': signed(`${id}.${timestamp}.${type}.${key}.`),
    }
  }

  async close(): Promise<void> {
    this.#client.close()
  }
}

const describe = ({ id, key, type, contentType }: OutboundEvent): Partial<WebhookHeaderTable> => ({
  'content-type': contentType,
  'redrive-type': headerText(type),
  ...(key !== id && { 'redrive-key': headerText(key) }),
})

/** Encodes an id, a type or a key. The signed parts are joined by dots, so a dot in one of them would be ambiguous. */
function webhookId(id: string): string {
  return /^[\w-]+$/.test(id) ? id : headerText(id).replaceAll(/[^\w%-]/g, (char) => `%${hex(char)}`)
}

const hex = (char: string) => char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')

function keyOf(secret: string, problems: Problems): Buffer {
  const text =
    typeof secret === 'string' && secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : ''
  const key = Buffer.from(text, 'base64')
  // Node skips characters that are not base64, and would sign with another key than the receiver's.
  const isExact = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
  if (!isExact || key.length < SECRET_MIN || key.length > SECRET_MAX) {
    problems.expected(
      'secret',
      secret,
      `'${PREFIX}' and ${SECRET_MIN} to ${SECRET_MAX} bytes in base64, such as the output of: echo ${PREFIX}$(openssl rand -base64 32)`,
      ['WEBHOOK_SECRET'],
    )
  }
  return key
}
