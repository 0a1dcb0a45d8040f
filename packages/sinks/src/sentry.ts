import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import type { CheckedSink, OutboundEvent } from '@redrive/runtime'
import { type Dsn, parseDsn } from './dsn.ts'
import { HttpError } from './errors.ts'
import { base64Of, jsonOf, severityOf, textOf } from './events.ts'
import { type HttpResponse, HttpClient, isSuccess } from './http.ts'
import { type HttpOptions, Problems, type WallClock, wallClock } from './options.ts'
import { SentryLimits } from './sentry-limits.ts'

export interface SentryOptions extends HttpOptions {
  /** The DSN of the project, as shown in its settings: 'https://key@o1.ingest.sentry.io/2'. */
  readonly dsn: string
  /** Environment of all events, such as 'production'. Default: none. */
  readonly environment?: string
  /** Release of the service, for all events. Default: none. */
  readonly release?: string
  /** Name of the machine. Default: its host name. */
  readonly serverName?: string
  /** Additional tags for all events. Use only tags with few values. Default: none. */
  readonly tags?: Readonly<Record<string, string>>
  /** Returns the title; events with the same title are one issue. Default: the type of the event. */
  readonly title?: (event: OutboundEvent) => string
  /** Compresses requests. Default `true`: most projects are reached over the internet. */
  readonly gzip?: boolean
  /** Wall time, in epoch milliseconds. Default: the system's. */
  readonly clock?: WallClock
}

/** Sends each event in a separate envelope, because the protocol allows one event per envelope. */
export class SentrySink implements CheckedSink {
  readonly name: string
  readonly batch: number = 1
  readonly #options: SentryOptions
  readonly #dsn: Dsn
  readonly #client: HttpClient
  readonly #clock: WallClock
  readonly #limits = new SentryLimits()

  constructor(options: SentryOptions) {
    const { headers = {}, tls, gzip = true, clock = wallClock } = options
    const problems = new Problems()
    this.#dsn = parseDsn(options.dsn, problems)
    problems.headers('headers', headers)
    problems.refuse('sentry()')
    const { publicKey, secretKey, host } = this.#dsn
    this.name = options.name ?? `sentry ${host}`
    this.#options = options
    this.#clock = clock
    this.#client = new HttpClient({
      name: this.name,
      headers: { ...headers, 'x-sentry-auth': authOf(this.#dsn) },
      tls,
      secrets: [publicKey, secretKey],
      gzip,
    })
  }

  async send(
    events: readonly OutboundEvent[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    for (const event of events) await this.#sendOne(event, signal)
  }

  async #sendOne(event: OutboundEvent, signal: AbortSignal): Promise<void> {
    // Sentry requested a pause, and would drop and count every event.
    const waitMs = this.#limits.waitMs(this.#clock.now())
    if (waitMs > 0) throw this.#limited(waitMs)
    const response = await this.#post(this.#envelope(event), signal)
    if (!isSuccess(response.status)) throw this.#failure(response)
  }

  async #post(body: string, signal: AbortSignal): Promise<HttpResponse> {
    const url = this.#dsn.envelopeUrl
    const headers = { 'content-type': 'application/x-sentry-envelope' }
    const response = await this.#client.request({ method: 'POST', url, headers, body, signal })
    this.#limits.learn(response, this.#clock.now())
    return response
  }

  /** Returns header, item header and item, one line each. The length allows line breaks in the payload. */
  #envelope(event: OutboundEvent): string {
    const eventId = sentryId(event.id)
    const payload = this.#payload(event, eventId)
    const sentAt = new Date(this.#clock.now()).toISOString()
    const header = JSON.stringify({ event_id: eventId, sent_at: sentAt })
    const length = Buffer.byteLength(payload)
    const item = JSON.stringify({ type: 'event', content_type: 'application/json', length })
    return `${header}\n${item}\n${payload}\n`
  }

  #payload(event: OutboundEvent, eventId: string): string {
    const { environment, release, serverName = hostname(), tags, title } = this.#options
    const { id, key, type, lane, at, contentType, headers } = event
    return JSON.stringify({
      event_id: eventId,
      timestamp: at / 1_000,
      platform: 'node',
      level: severityOf(event),
      logger: 'redrive',
      logentry: { formatted: title?.(event) ?? type },
      environment,
      release,
      server_name: serverName,
      tags: { ...tags, 'event.type': type },
      contexts: { event: { type: 'event', id, key, lane, contentType, headers } },
      extra: { body: bodyOf(event) },
    })
  }

  #failure(response: HttpResponse): Error {
    const waitMs = this.#limits.waitMs(this.#clock.now())
    return this.#client.failure(this.#dsn.envelopeUrl, response, waitMs > 0 ? waitMs : undefined)
  }

  #limited(retryAfterMs: number): HttpError {
    const detail = 'its rate limit has not ended, so no request was sent'
    return new HttpError({ status: 429, host: this.#dsn.host, detail, retryAfterMs })
  }

  /**
   * Checks the health. There is no endpoint for it. An envelope without items passes the check of the key, and
   * a healthy server accepts it or reports it as empty (400).
   */
  async healthCheck({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const response = await this.#post('{}\n', signal)
    if (!isSuccess(response.status) && response.status !== 400) throw this.#failure(response)
  }

  async close(): Promise<void> {
    this.#client.close()
  }
}

function authOf({ publicKey, secretKey }: Dsn): string {
  const secret = secretKey === '' ? '' : `, sentry_secret=${secretKey}`
  return `Sentry sentry_version=7, sentry_client=redrive, sentry_key=${publicKey}${secret}`
}

/** Returns a UUID without dashes, as Sentry requires. The same event always has the same id, so duplicates count once. */
function sentryId(id: string): string {
  const bare = id.replaceAll('-', '').toLowerCase()
  if (/^[\da-f]{32}$/.test(bare)) return bare
  return createHash('sha256').update(id).digest('hex').slice(0, 32)
}

function bodyOf(event: OutboundEvent): unknown {
  const json = jsonOf(event)
  return json === undefined
    ? (textOf(event) ?? { base64: base64Of(event) })
    : (JSON.parse(json) as unknown)
}
