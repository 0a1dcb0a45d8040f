import type { OutboundEvent, Sink } from '@redrive/runtime'
import { refused } from './errors.ts'
import { base64Of, nanosOf, severityOf, textOf } from './events.ts'
import { HttpClient } from './http.ts'
import { below, credentialsOf, type HttpAuth, type HttpOptions, Problems } from './options.ts'

export interface LokiOptions extends HttpOptions {
  /** Where Loki is, such as 'http://loki:3100'. A path before `/loki/api/v1/push` is kept. */
  readonly url: string
  /**
   * What streams are told apart by: the same for all, or chosen for each event. Only what has few values,
   * such as the service and the environment: every new combination is a new stream, and Loki slows down
   * with their number. Never an id. Default `{ service_name: 'redrive' }`.
   */
  readonly labels?: LokiLabels | ((event: OutboundEvent) => LokiLabels)
  /** The tenant, where Loki has several: X-Scope-OrgID. */
  readonly tenant?: string
  readonly auth?: HttpAuth
  /** Most events in one request. Default 500, at most 10,000. */
  readonly batch?: number
  /** Compresses requests. Default `false`: in one data centre it costs more than it saves. */
  readonly gzip?: boolean
  /** What tells that Loki is there. Default '/ready'; a gateway in front of it may have another. */
  readonly healthPath?: string
}

export type LokiLabels = Readonly<Record<string, string>>

/** 500: a request of a few hundred KB, far below what Loki takes, and few enough to send again. */
const BATCH = 500
const LABELS: LokiLabels = { service_name: 'redrive' }

/** [nanoseconds, line, structured metadata] */
type Entry = readonly [at: string, line: string, metadata: Readonly<Record<string, string>>]

/** Pushes events as log lines. The same event twice is one line: Loki drops what has time, line and metadata alike. */
export class LokiSink implements Sink {
  readonly name: string
  readonly batch: number
  readonly #labels: (event: OutboundEvent) => LokiLabels
  readonly #pushUrl: URL
  readonly #healthUrl: URL
  readonly #client: HttpClient

  constructor(options: LokiOptions) {
    const { labels = LABELS, tenant, auth, batch = BATCH, gzip = false, headers = {} } = options
    const { healthPath = '/ready', tls } = options
    const problems = new Problems()
    const url = problems.url('url', options.url)
    this.batch = problems.batch(batch)
    if (typeof labels !== 'function') checkLabels(labels, problems)
    problems.headers('headers', headers)
    if (tenant !== undefined) problems.headers('tenant', { 'X-Scope-OrgID': tenant })
    if (!healthPath.startsWith('/')) problems.add(`healthPath: expected '/…', got '${healthPath}'`)
    problems.refuse('loki()')
    this.name = options.name ?? `loki ${url.host}`
    this.#labels = typeof labels === 'function' ? labels : () => labels
    this.#pushUrl = below(url, '/loki/api/v1/push')
    this.#healthUrl = below(url, healthPath)
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
    const url = this.#pushUrl
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ streams: this.#streams(events) })
    const answer = await this.#client.ask({ method: 'POST', url, headers, body, signal })
    // Nothing else: a page that some proxy answers with 200 would pass for Loki, and every event be lost.
    if (answer.status !== 204) throw this.#client.failure(url, answer)
  }

  #streams(events: readonly OutboundEvent[]): readonly unknown[] {
    const streams = new Map<string, { readonly stream: LokiLabels; readonly values: Entry[] }>()
    // Labels that are the same object for every event are named once.
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
      'labels: the id of an event is a label, which would make a stream of every event. It is in the structured metadata already: query it with | id="…".',
    )
  }

  async healthCheck({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.#client.expectGood({ method: 'GET', url: this.#healthUrl, signal })
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
  }
  return [nanosOf(at), text ?? base64Of(event), metadata]
}

/** Nanoseconds have the same number of digits until the year 2286, so text compares as numbers do. */
/** The same for the same labels, in whatever order. */
const nameOf = (stream: LokiLabels): string =>
  JSON.stringify(
    Object.keys(stream)
      .sort()
      .map((label) => [label, stream[label]]),
  )

const byTime = ([a]: Entry, [b]: Entry) => (a < b ? -1 : a > b ? 1 : 0)

function checkLabels(labels: LokiLabels, problems: Problems): void {
  const names = Object.keys(labels)
  if (names.length === 0)
    problems.add('labels: expected at least one: Loki refuses a stream without')
  for (const name of names) {
    if (!/^[a-z_]\w*$/i.test(name)) {
      problems.add(
        `labels: '${name}' is no label: letters, digits and _, not beginning with a digit`,
      )
    }
  }
}
