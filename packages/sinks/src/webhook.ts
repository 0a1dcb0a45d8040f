import { createHmac } from 'node:crypto'
import type { LookupFunction } from 'node:net'
import { headerText } from '@redrive/core'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import { AddressGuard, allowProblem, notAllowed } from './addresses.ts'
import { bufferOf } from './events.ts'
import type { EventHeaderTable, WebhookHeaderTable } from './header-tables.ts'
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

/** Posts each event, signed as in Standard Webhooks, to an address that is checked on connect. */
export class WebhookSink implements Sink {
  readonly name: string
  readonly batch: number = 1
  readonly #url: URL
  readonly #keys: readonly Buffer[]
  readonly #client: HttpClient
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
    const headers = { ...this.#describe(event), ...this.#sign(event.id, body) }
    await this.#client.expectSuccess({ method: 'POST', url: this.#url, headers, body, signal })
  }

  #describe({ id, key, type, contentType, headers }: OutboundEvent): Partial<WebhookHeaderTable> {
    const { traceparent, tracestate }: Partial<EventHeaderTable> = headers
    return {
      'content-type': contentType,
      'redrive-type': headerText(type),
      ...(key !== id && { 'redrive-key': headerText(key) }),
      ...(traceparent !== undefined && { traceparent }),
      ...(tracestate !== undefined && { tracestate }),
    }
  }

  /** Signs a body. The id is the same on every attempt; the time is that of this attempt, because receivers reject old ones. */
  #sign(eventId: string, body: Buffer): Partial<WebhookHeaderTable> {
    const id = webhookId(eventId)
    const timestamp = String(Math.floor(this.#clock.now() / 1_000))
    const signatures = this.#keys.map((key) => {
      const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body)
      return `v1,${mac.digest('base64')}`
    })
    return {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signatures.join(' '),
    }
  }

  /** Sends HEAD, which has no effect by definition. Any response except a gateway error is healthy. */
  async healthCheck({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const response = await this.#client.request({ method: 'HEAD', url: this.#url, signal })
    const isUp = response.status < 500 || response.status === 501
    if (!isUp) throw this.#client.failure(this.#url, response)
  }

  async close(): Promise<void> {
    this.#client.close()
  }
}

/** Encodes an id. The signed parts are joined by dots, so an id with a dot would be ambiguous. */
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
