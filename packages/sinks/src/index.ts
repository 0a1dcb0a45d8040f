import { type FileOptions, FileSink } from './file.ts'
import { type LokiOptions, LokiSink } from './loki.ts'
import { type OtlpOptions, OtlpSink } from './otlp.ts'
import { type SentryOptions, SentrySink } from './sentry.ts'
import { type StdoutOptions, StdoutSink } from './stdout.ts'
import { type WebhookOptions, WebhookSink } from './webhook.ts'

export { HttpError, type HttpErrorFacts } from './errors.ts'
export type { LokiLabels } from './loki.ts'
export type { HttpAuth, HttpOptions, SinkOptions, TlsOptions, WallClock } from './options.ts'
export type {
  FileOptions,
  FileSink,
  LokiOptions,
  LokiSink,
  OtlpOptions,
  OtlpSink,
  SentryOptions,
  SentrySink,
  StdoutOptions,
  StdoutSink,
  WebhookOptions,
  WebhookSink,
}

/** Pushes events to Loki as log lines. */
export function loki(options: LokiOptions): LokiSink {
  return new LokiSink(options)
}

/** Sends events to Sentry, or whatever speaks its envelopes. */
export function sentry(options: SentryOptions): SentrySink {
  return new SentrySink(options)
}

/** Exports events as log records to an OpenTelemetry collector. */
export function otlp(options: OtlpOptions): OtlpSink {
  return new OtlpSink(options)
}

/** Posts events to an HTTP endpoint, signed, and never into your own network unless you say so. */
export function webhook(options: WebhookOptions): WebhookSink {
  return new WebhookSink(options)
}

/** Appends events to a file, one line of JSON each. */
export function file(options: FileOptions): FileSink {
  return new FileSink(options)
}

/** Writes events to standard output, one line of JSON each. */
export function stdout(options: StdoutOptions = {}): StdoutSink {
  return new StdoutSink(options)
}
