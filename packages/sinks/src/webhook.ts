import { createHmac } from 'node:crypto'
import type { LookupFunction } from 'node:net'
import { headerText } from '@redrive/core'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import { AddressGuard, allowProblem, notAllowed } from './addresses.ts'
import { bufferOf } from './events.ts'
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
  /** Where each event is posted. https, unless `allowHttp`. */
  readonly url: string
  /**
   * What the receiver checks signatures with: `whsec_` and 24 to 64 bytes in base64. Several while one
   * replaces another: the receiver accepts any.
   */
  readonly secret: string | readonly string[]
  /** Also http. Default `false`: events and signatures would be readable on the way. */
  readonly allowHttp?: boolean
  /**
   * What may be reached although it is not public: addresses, ranges such as '10.0.0.0/8', or names,
   * which may then lead anywhere. Default: none.
   */
  readonly allow?: readonly string[]
  /** For receivers that want to know who we are, beside the signature. */
  readonly auth?: HttpAuth
  /** How names become addresses. What it answers is checked. Default: the system's way. */
  readonly lookup?: LookupFunction
  /** Wall time, in epoch milliseconds. Default: the system's. */
  readonly clock?: WallClock
}

const PREFIX = 'whsec_'
/** Of the specification: shorter can be guessed, longer gains nothing. */
const SECRET_MIN = 24
const SECRET_MAX = 64

/** Posts each event, signed as Standard Webhooks say, to an address that is checked when it is connected to. */
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
    const secrets = typeof secret === 'string' ? [secret] : secret
    this.#url = problems.url('url', url, allowHttp ? ['https:', 'http:'] : ['https:'])
    this.#keys = secrets.map((one) => keyOf(one, problems))
    if (secrets.length === 0)
      problems.add('secret: expected one, or several while one replaces another')
    for (const entry of allow) {
      const problem = allowProblem(entry)
      if (problem !== undefined) problems.add(problem)
    }
    problems.headers('headers', headers)
    problems.refuse('webhook()')
    const guard = new AddressGuard(allow, lookup)
    const host = this.#url.hostname.replace(/^\[(.*)\]$/, '$1')
    // An address needs no lookup, so nothing would check it later.
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
    await this.#client.expectGood({ method: 'POST', url: this.#url, headers, body, signal })
  }

  #describe({ id, key, type, contentType, headers }: OutboundEvent): Record<string, string> {
    const { traceparent, tracestate } = headers
    return {
      'content-type': contentType,
      'redrive-type': headerText(type),
      ...(key !== id && { 'redrive-key': headerText(key) }),
      ...(traceparent !== undefined && { traceparent }),
      ...(tracestate !== undefined && { tracestate }),
    }
  }

  /** The id is the same on every attempt, the time is that of this one: a receiver refuses what is old. */
  #sign(eventId: string, body: Buffer): Record<string, string> {
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

  /** HEAD has no effect by its definition. Any answer that is not a gateway's trouble is one. */
  async healthCheck({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const answer = await this.#client.ask({ method: 'HEAD', url: this.#url, signal })
    const isUp = answer.status < 500 || answer.status === 501
    if (!isUp) throw this.#client.failure(this.#url, answer)
  }

  async close(): Promise<void> {
    this.#client.close()
  }
}

/** The parts that are signed are joined by dots, so an id with a dot could be read in two ways. */
function webhookId(id: string): string {
  return /^[\w-]+$/.test(id) ? id : headerText(id).replaceAll(/[^\w%-]/g, (char) => `%${hex(char)}`)
}

const hex = (char: string) => char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')

function keyOf(secret: string, problems: Problems): Buffer {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : ''
  const key = Buffer.from(text, 'base64')
  // What is not base64 is skipped in silence, and would sign with another key than the receiver's.
  const isExact = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
  if (!isExact || key.length < SECRET_MIN || key.length > SECRET_MAX) {
    problems.add(
      `secret: expected '${PREFIX}' and ${SECRET_MIN} to ${SECRET_MAX} bytes in base64, such as the output of: echo ${PREFIX}$(openssl rand -base64 32)`,
    )
  }
  return key
}
