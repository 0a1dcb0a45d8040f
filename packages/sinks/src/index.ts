import type { CheckedSink, Sink } from '@redrive/runtime'
import { type FileOptions, FileSink } from './file.ts'
import { type LokiOptions, LokiSink } from './loki.ts'
import { type OtlpOptions, OtlpSink } from './otlp.ts'
import { type SentryOptions, SentrySink } from './sentry.ts'
import { type StdoutOptions, StdoutSink } from './stdout.ts'
import { type WebhookOptions, WebhookSink } from './webhook.ts'

export { HttpError, type HttpErrorFacts } from './errors.ts'
export type { LokiLabels } from './loki.ts'
export type { HttpAuth, HttpOptions, SinkOptions, TlsOptions, WallClock } from './options.ts'
export type { FileOptions, LokiOptions, OtlpOptions, SentryOptions, StdoutOptions, WebhookOptions }

/** Creates a sink that pushes events to Loki as log lines. */
export function loki(options: LokiOptions): CheckedSink {
  return new LokiSink(options)
}

/** Creates a sink that sends events to Sentry, or a service with the same protocol. */
export function sentry(options: SentryOptions): CheckedSink {
  return new SentrySink(options)
}

/** Creates a sink that exports events as log records to an OpenTelemetry collector. */
export function otlp(options: OtlpOptions): CheckedSink {
  return new OtlpSink(options)
}

/** Creates a sink that posts signed events to an HTTP endpoint. It never connects to your own network unless allowed. */
export function webhook(options: WebhookOptions): Sink {
  return new WebhookSink(options)
}

/** Creates a sink that appends events to a file, one line of JSON each. */
export function file(options: FileOptions): CheckedSink {
  return new FileSink(options)
}

/** Creates a sink that writes events to standard output, one line of JSON each. */
export function stdout(options: StdoutOptions = {}): CheckedSink {
  return new StdoutSink(options)
}
