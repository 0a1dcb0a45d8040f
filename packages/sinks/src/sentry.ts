import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import { type Dsn, parseDsn } from './dsn.ts'
import { HttpError } from './errors.ts'
import { base64Of, jsonOf, severityOf, textOf } from './events.ts'
import { type HttpAnswer, HttpClient, isGood } from './http.ts'
import { type HttpOptions, Problems, type WallClock, wallClock } from './options.ts'
import { SentryLimits } from './sentry-limits.ts'

export interface SentryOptions extends HttpOptions {
  /** Of the project, as its settings show it: 'https://key@o1.ingest.sentry.io/2'. */
  readonly dsn: string
  readonly environment?: string
  readonly release?: string
  /** The machine. Default: its host name. */
  readonly serverName?: string
  /** More tags for all events. Only what has few values. */
  readonly tags?: Readonly<Record<string, string>>
  /** The headline; events with the same one are one issue. Default: the type of the event. */
  readonly title?: (event: OutboundEvent) => string
  /** Compresses requests. Default `true`: most projects are on the other side of the internet. */
  readonly gzip?: boolean
  /** Wall time, in epoch milliseconds. Default: the system's. */
  readonly clock?: WallClock
}

/** Sends each event in an envelope of its own: the protocol allows one event in each. */
export class SentrySink implements Sink {
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
    // It asked for silence, and would drop and count whatever comes.
    const waitMs = this.#limits.waitMs(this.#clock.now())
    if (waitMs > 0) throw this.#limited(waitMs)
    const answer = await this.#post(this.#envelope(event), signal)
    if (!isGood(answer.status)) throw this.#failure(answer)
  }

  async #post(body: string, signal: AbortSignal): Promise<HttpAnswer> {
    const url = this.#dsn.envelopeUrl
    const headers = { 'content-type': 'application/x-sentry-envelope' }
    const answer = await this.#client.ask({ method: 'POST', url, headers, body, signal })
    this.#limits.learn(answer, this.#clock.now())
    return answer
  }

  /** Header, item header, item: a line each. The length lets a payload contain line breaks. */
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

  #failure(answer: HttpAnswer): Error {
    const waitMs = this.#limits.waitMs(this.#clock.now())
    return this.#client.failure(this.#dsn.envelopeUrl, answer, waitMs > 0 ? waitMs : undefined)
  }

  #limited(retryAfterMs: number): HttpError {
    const detail = 'the limit it set before is not over, so it was not asked'
    return new HttpError({ status: 429, host: this.#dsn.host, detail, retryAfterMs })
  }

  /**
   * There is no door for this: an envelope without items reaches who checks the key, and is taken or
   * called empty (400) by who is well.
   */
  async healthCheck({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const answer = await this.#post('{}\n', signal)
    if (!isGood(answer.status) && answer.status !== 400) throw this.#failure(answer)
  }

  async close(): Promise<void> {
    this.#client.close()
  }
}

function authOf({ publicKey, secretKey }: Dsn): string {
  const secret = secretKey === '' ? '' : `, sentry_secret=${secretKey}`
  return `Sentry sentry_version=7, sentry_client=redrive, sentry_key=${publicKey}${secret}`
}

/** Sentry's ids are UUIDs without dashes. The same event always has the same one, so twice is once. */
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
