import { parseTraceparent, type TraceParent } from '@redrive/core/internal'
import { isRecord } from './json.ts'
import type { CheckedSink, OutboundEvent } from '@redrive/runtime'
import { refused, unknownOutcome } from './errors.ts'
import {
  applicationHeaders,
  base64Of,
  nanosOf,
  type Severity,
  severityOf,
  textOf,
} from './events.ts'
import type { EventHeaderTable } from './header-tables.ts'
import { type HttpResponse, HttpClient, isSuccess } from './http.ts'
import {
  below,
  credentialsOf,
  type HttpAuth,
  type HttpOptions,
  Problems,
  type WallClock,
  wallClock,
} from './options.ts'

export interface OtlpOptions extends HttpOptions {
  /** The base URL of a collector, such as 'http://localhost:4318'; `/v1/logs` is added. */
  readonly url: string
  /** Attributes of the resource, such as `service.name`. Default `{ 'service.name': 'redrive' }`. */
  readonly resource?: Readonly<Record<string, string | number | boolean>>
  /** Credentials. Default: those in the URL, if any. */
  readonly auth?: HttpAuth
  /** Maximum events in one request (1–10,000, default 500). */
  readonly batch?: number
  /** Compresses requests. Default `false`: within one data centre it costs more than it saves. */
  readonly gzip?: boolean
  /** Wall time, in epoch milliseconds. Default: the system's. */
  readonly clock?: WallClock
}

/** 500: like OpenTelemetry's own exporters, rounded. */
const BATCH = 500
const RESOURCE = { 'service.name': 'redrive' }

/** The lowest number of each range. https://opentelemetry.io/docs/specs/otel/logs/data-model/#field-severitynumber */
const SEVERITY_NUMBERS: Readonly<Record<Severity, number>> = {
  debug: 5,
  info: 9,
  warning: 13,
  error: 17,
  fatal: 21,
}

/** The statuses that the protocol allows to retry; all others must not be retried. https://opentelemetry.io/docs/specs/otlp/#failures-1 */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** Exports events as log records: OTLP over HTTP, in JSON. */
export class OtlpSink implements CheckedSink {
  readonly name: string
  readonly batch: number
  readonly #url: URL
  readonly #resource: readonly Attribute[]
  readonly #client: HttpClient
  readonly #clock: WallClock

  constructor(options: OtlpOptions) {
    const { resource = RESOURCE, auth, batch = BATCH, gzip = false, headers = {} } = options
    const { tls, clock = wallClock } = options
    const problems = new Problems()
    const url = problems.url('url', options.url, ['OTEL_EXPORTER_OTLP_ENDPOINT'])
    this.batch = problems.batch(batch)
    problems.headers('headers', headers)
    problems.refuse('otlp()')
    this.name = options.name ?? `otlp ${url.host}`
    this.#url = url.pathname.endsWith('/v1/logs') ? url : below(url, '/v1/logs')
    this.#resource = Object.entries(resource).map(([key, value]) => ({
      key,
      value: valueOf(value),
    }))
    this.#clock = clock
    const credentials = credentialsOf(url, auth)
    this.#client = new HttpClient({
      name: this.name,
      headers: { ...headers, ...credentials.headers },
      tls,
      secrets: credentials.secrets,
      gzip,
    })
  }

  async send(
    events: readonly OutboundEvent[],
    options: { readonly signal: AbortSignal },
  ): Promise<void> {
    if (events.length > 0) await this.#export(events, options.signal)
  }

  /** Sends an empty export, which is valid. A collector has no other health endpoint here. */
  async healthCheck({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.#export([], signal)
  }

  async #export(events: readonly OutboundEvent[], signal: AbortSignal): Promise<void> {
    const url = this.#url
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ resourceLogs: this.#resourceLogs(events) })
    const response = await this.#client.request({ method: 'POST', url, headers, body, signal })
    if (isSuccess(response.status)) this.#judge(response, events.length)
    else throw this.#failure(response)
  }

  #resourceLogs(events: readonly OutboundEvent[]): readonly unknown[] {
    if (events.length === 0) return []
    const observedTimeUnixNano = nanosOf(this.#clock.now())
    const logRecords = events.map((event) => ({ ...recordOf(event), observedTimeUnixNano }))
    const scopeLogs = [{ scope: { name: 'redrive' }, logRecords }]
    return [{ resource: { attributes: this.#resource }, scopeLogs }]
  }

  /** Checks a successful response: when a part was rejected, the batch was not accepted. */
  #judge({ text, isWhole }: HttpResponse, count: number): void {
    if (!isWhole) throw unknownOutcome(`${this.#url.host} sent an incomplete response.`)
    if (text.trim() === '') return
    const { rejected, message } = partialSuccessOf(text, this.#url.host)
    if (rejected === 0) return
    const reason = this.#client.redact(message)
    throw refused(`${this.#url.host} rejected ${rejected} of ${count} log records: ${reason}`)
  }

  #failure(response: HttpResponse): Error {
    const error = this.#client.failure(this.#url, response)
    const speaksForItself = RETRYABLE.has(response.status) || response.status < 500
    return speaksForItself
      ? error
      : refused(`${error.message}; OTLP does not allow a retry.`, error)
  }

  async close(): Promise<void> {
    this.#client.close()
  }
}

interface Attribute {
  readonly key: string
  readonly value: Readonly<Record<string, string | number | boolean>>
}

function valueOf(value: string | number | boolean): Attribute['value'] {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  // 64-bit integers are text in protobuf's JSON.
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

function recordOf(event: OutboundEvent): Readonly<Record<string, unknown>> {
  const { at, id, key, type, lane, contentType, headers } = event
  const severity = severityOf(event)
  const text = textOf(event)
  const attributes = {
    'event.id': id,
    'event.key': key,
    ...(lane !== undefined && { 'event.lane': lane }),
    'event.content_type': contentType,
    ...Object.fromEntries(
      applicationHeaders(event).map(([name, value]) => [`event.header.${name}`, value]),
    ),
  }
  return {
    timeUnixNano: nanosOf(at),
    severityNumber: SEVERITY_NUMBERS[severity],
    severityText: severity,
    eventName: type,
    body: text === undefined ? { bytesValue: base64Of(event) } : { stringValue: text },
    attributes: Object.entries(attributes).map(([name, value]) => ({
      key: name,
      value: valueOf(value),
    })),
    ...traceOf(headers['traceparent' satisfies keyof EventHeaderTable]),
  }
}

/** Returns the trace of the event from its W3C traceparent. Ids are hex here, unlike elsewhere in protobuf's JSON. */
const traceOf = (traceparent: string | undefined): Partial<TraceParent> =>
  parseTraceparent(traceparent) ?? {}

interface PartialSuccess {
  readonly rejected: number
  readonly message: string
}

function partialSuccessOf(text: string, host: string): PartialSuccess {
  const response = parsed(text)
  if (!isRecord(response)) {
    throw refused(
      `${host} did not respond with OTLP JSON. Use the HTTP URL of a collector (port 4318).`,
    )
  }
  const partial = isRecord(response['partialSuccess']) ? response['partialSuccess'] : {}
  const message = partial['errorMessage']
  return {
    rejected: Number(partial['rejectedLogRecords'] ?? 0),
    message: typeof message === 'string' ? message : 'no reason given',
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
