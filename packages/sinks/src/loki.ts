import type { CheckedSink, OutboundEvent } from '@redrive/runtime'
import { refused } from './errors.ts'
import { applicationHeaders, base64Of, nanosOf, severityOf, textOf } from './events.ts'
import { HttpClient, type HttpResponse } from './http.ts'
import { below, credentialsOf, type HttpAuth, type HttpOptions, Problems } from './options.ts'

export interface LokiOptions extends HttpOptions {
  /** URL of Loki, such as 'http://loki:3100'. A path before `/loki/api/v1/push` is kept. */
  readonly url: string
  /**
   * The labels of the streams: the same for all events, or chosen per event. Use only labels with few
   * values, such as the service and the environment. Every new combination is a new stream, and many
   * streams make Loki slow. Never use an id. Default `{ service_name: 'redrive' }`.
   */
  readonly labels?: LokiLabels | ((event: OutboundEvent) => LokiLabels)
  /** The tenant, when Loki has several: X-Scope-OrgID. Default: none. */
  readonly tenant?: string
  /** Credentials. Default: those in the URL, if any. */
  readonly auth?: HttpAuth
  /** Maximum events in one request (1–10,000, default 500). */
  readonly batch?: number
  /** Compresses requests. Default `false`: within one data centre it costs more than it saves. */
  readonly gzip?: boolean
}

export type LokiLabels = Readonly<Record<string, string>>

/** 500: a request of a few hundred KB, far below Loki's limit, and small enough to send again. */
const BATCH = 500
const LABELS: LokiLabels = { service_name: 'redrive' }

/** [nanoseconds, line, structured metadata] */
type Entry = readonly [at: string, line: string, metadata: Readonly<Record<string, string>>]

/** Pushes events as log lines. The same event twice gives one line: Loki drops lines with equal time, text and metadata. */
export class LokiSink implements CheckedSink {
  readonly name: string
  readonly batch: number
  readonly #labels: (event: OutboundEvent) => LokiLabels
  readonly #pushUrl: URL
  readonly #client: HttpClient

  constructor(options: LokiOptions) {
    const { labels = LABELS, tenant, auth, batch = BATCH, gzip = false, headers = {} } = options
    const { tls } = options
    const problems = new Problems()
    const url = problems.url('url', options.url, ['LOKI_URL'])
    this.batch = problems.batch(batch)
    if (typeof labels !== 'function') checkLabels(labels, problems)
    problems.headers('headers', headers)
    if (tenant !== undefined) problems.headers('tenant', { 'X-Scope-OrgID': tenant })
    problems.refuse('loki()')
    this.name = options.name ?? `loki ${url.host}`
    this.#labels = typeof labels === 'function' ? labels : () => labels
    this.#pushUrl = below(url, '/loki/api/v1/push')
    const credentials = credentialsOf(url, auth)
    this.#client = new HttpClient({
      name: this.name,
      headers: {
        ...headers,
        ...(tenant !== undefined && { 'x-scope-orgid': tenant }),
        ...credentials.headers,
      },
      tls,
      secrets: credentials.secrets,
      gzip,
    })
  }

  async send(
    events: readonly OutboundEvent[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<void> {
    if (events.length === 0) return
    const response = await this.#push(this.#streams(events), signal)
    // Only 204: a proxy that responds with 200 would look like Loki, and every event would be lost.
    if (response.status !== 204) throw this.#client.failure(this.#pushUrl, response)
  }

  #push(streams: readonly unknown[], signal: AbortSignal): Promise<HttpResponse> {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ streams })
    return this.#client.request({ method: 'POST', url: this.#pushUrl, headers, body, signal })
  }

  #streams(events: readonly OutboundEvent[]): readonly unknown[] {
    const streams = new Map<string, { readonly stream: LokiLabels; readonly values: Entry[] }>()
    // Labels that are the same object for every event are converted once.
    const names = new Map<LokiLabels, string>()
    for (const event of events) {
      const stream = this.#labelsOf(event)
      const name = names.get(stream) ?? nameOf(stream)
      names.set(stream, name)
      const known = streams.get(name) ?? { stream, values: [] }
      streams.set(name, known)
      known.values.push(entryOf(event))
    }
    for (const { values } of streams.values()) values.sort(byTime)
    return [...streams.values()]
  }

  #labelsOf(event: OutboundEvent): LokiLabels {
    const labels = this.#labels(event)
    if (!Object.values(labels).includes(event.id)) return labels
    throw refused(
      'labels: the id of an event is a label, so every event would get its own stream. Remove it. The id is already in the structured metadata: query it with | id="…".',
    )
  }

  /** Pushes no streams. Loki accepts that (204), or rejects it because something must be in it (400 or 422). */
  async healthCheck({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const response = await this.#push([], signal)
    if (![204, 400, 422].includes(response.status))
      throw this.#client.failure(this.#pushUrl, response)
  }

  async close(): Promise<void> {
    this.#client.close()
  }
}

function entryOf(event: OutboundEvent): Entry {
  const { at, id, key, type, lane, contentType } = event
  const text = textOf(event)
  const metadata = {
    id,
    type,
    severity: severityOf(event),
    ...(key !== id && { key }),
    ...(lane !== undefined && { lane }),
    ...(text === undefined && { encoding: 'base64', contentType }),
    ...Object.fromEntries(applicationHeaders(event).map(([name, value]) => [labelOf(name), value])),
  }
  return [nanosOf(at), text ?? base64Of(event), metadata]
}

/** Returns the name of a header in the metadata, which has the rules of labels. */
const labelOf = (header: string): string => `header_${header.replaceAll(/\W/g, '_')}`

/** Returns a key that is equal for equal labels in any order. */
const nameOf = (stream: LokiLabels): string =>
  JSON.stringify(
    Object.keys(stream)
      .sort()
      .map((label) => [label, stream[label]]),
  )

/** Compares times as text: nanoseconds have the same number of digits until the year 2286. */
const byTime = ([a]: Entry, [b]: Entry) => (a < b ? -1 : a > b ? 1 : 0)

function checkLabels(labels: LokiLabels, problems: Problems): void {
  const names = Object.keys(labels)
  if (names.length === 0)
    problems.add(
      'labels: expected at least one label, because Loki rejects a stream without labels',
    )
  for (const name of names) {
    if (!/^[a-z_]\w*$/i.test(name)) {
      problems.add(
        `labels: "${name}" is not a valid label. Use letters, digits and _, and do not start with a digit.`,
      )
    }
  }
}
