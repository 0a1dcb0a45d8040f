import { isRecord } from './json.ts'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import { refused, unknownOutcome } from './errors.ts'
import { base64Of, nanosOf, type Severity, severityOf, textOf } from './events.ts'
import { type HttpAnswer, HttpClient, isGood } from './http.ts'
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
  /** The base address of a collector, such as 'http://localhost:4318'; `/v1/logs` is added. */
  readonly url: string
  /** Who speaks: `service.name` and its like. Default `{ 'service.name': 'redrive' }`. */
  readonly resource?: Readonly<Record<string, string | number | boolean>>
  readonly auth?: HttpAuth
  /** Most events in one request. Default 500, at most 10,000. */
  readonly batch?: number
  /** Compresses requests. Default `false`: in one data centre it costs more than it saves. */
  readonly gzip?: boolean
  /** Wall time, in epoch milliseconds. Default: the system's. */
  readonly clock?: WallClock
}

/** 500: as OpenTelemetry's own exporters do, rounded. */
const BATCH = 500
const RESOURCE = { 'service.name': 'redrive' }

/** The lowest of each range. https://opentelemetry.io/docs/specs/otel/logs/data-model/#field-severitynumber */
const SEVERITY_NUMBERS: Readonly<Record<Severity, number>> = {
  debug: 5,
  info: 9,
  warning: 13,
  error: 17,
  fatal: 21,
}

/** The protocol names what may be sent again; everything else must not be. https://opentelemetry.io/docs/specs/otlp/#failures-1 */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** Exports events as log records: OTLP over HTTP, in JSON. */
export class OtlpSink implements Sink {
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
    const url = problems.url('url', options.url)
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

  /** An empty export is valid and answered like any other; a collector has no other door here. */
  async healthCheck({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    await this.#export([], signal)
  }

  async #export(events: readonly OutboundEvent[], signal: AbortSignal): Promise<void> {
    const url = this.#url
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ resourceLogs: this.#resourceLogs(events) })
    const answer = await this.#client.ask({ method: 'POST', url, headers, body, signal })
    if (isGood(answer.status)) this.#judge(answer, events.length)
    else throw this.#failure(answer)
  }

  #resourceLogs(events: readonly OutboundEvent[]): readonly unknown[] {
    if (events.length === 0) return []
    const observedTimeUnixNano = nanosOf(this.#clock.now())
    const logRecords = events.map((event) => ({ ...recordOf(event), observedTimeUnixNano }))
    const scopeLogs = [{ scope: { name: 'redrive' }, logRecords }]
    return [{ resource: { attributes: this.#resource }, scopeLogs }]
  }

  /** A good status with a part refused is not the whole batch accepted. */
  #judge({ text, isWhole }: HttpAnswer, count: number): void {
    if (!isWhole) throw unknownOutcome(`${this.#url.host} broke off its answer.`)
    if (text.trim() === '') return
    const { rejected, message } = partialSuccessOf(text, this.#url.host)
    if (rejected === 0) return
    const said = this.#client.redact(message)
    throw refused(`${this.#url.host} refused ${rejected} of ${count} log records: ${said}`)
  }

  #failure(answer: HttpAnswer): Error {
    const error = this.#client.failure(this.#url, answer)
    const speaksForItself = RETRYABLE.has(answer.status) || answer.status < 500
    return speaksForItself
      ? error
      : refused(`${error.message}; OTLP does not allow to send it again.`, error)
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
    ...traceOf(headers['traceparent']),
  }
}

/** The trace it belongs to, when the event says so as W3C wrote it down. Ids are hex here, unlike elsewhere in protobuf's JSON. */
function traceOf(traceparent = ''): Readonly<Record<string, unknown>> {
  const match = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})/.exec(traceparent)
  if (match === null) return {}
  const [, traceId, spanId, flags = '0'] = match
  return { traceId, spanId, flags: Number.parseInt(flags, 16) }
}

interface PartialSuccess {
  readonly rejected: number
  readonly message: string
}

function partialSuccessOf(text: string, host: string): PartialSuccess {
  const answer = parsed(text)
  if (!isRecord(answer)) {
    throw refused(
      `${host} does not answer in OTLP's JSON. Is it a collector's HTTP address (port 4318)?`,
    )
  }
  const partial = isRecord(answer['partialSuccess']) ? answer['partialSuccess'] : {}
  const message = partial['errorMessage']
  return {
    rejected: Number(partial['rejectedLogRecords'] ?? 0),
    message: typeof message === 'string' ? message : 'it does not say why',
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
