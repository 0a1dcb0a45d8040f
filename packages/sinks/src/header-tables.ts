/**
 * Headers of emitted events that sinks read. The emitter writes the first, the application may set the others.
 *
 * The first sentence of each comment is the format of the value; docs/reference/headers.md prints it.
 */
export interface EventHeaderTable {
  /** Text. Severity of the event: `debug`, `info`, `warning`, `error` or `fatal`. */
  readonly severity: string
  /** Text. W3C trace context. The OTLP sink makes the record a part of its trace, and the webhook sink sends it. */
  readonly traceparent: string
  /** Text. W3C trace state. The webhook sink sends it. */
  readonly tracestate: string
}

/** Headers of webhook requests. The format is that of Standard Webhooks. */
export interface WebhookHeaderTable {
  /** Text. Content type of the event. */
  readonly 'content-type': string
  /** Text. Type of the event. */
  readonly 'redrive-type': string
  /** Text. Business idempotency key. Absent: the id. */
  readonly 'redrive-key': string
  /** Text. Id of the event. It is the same on every attempt. */
  readonly 'webhook-id': string
  /** Epoch seconds. Time of this attempt. */
  readonly 'webhook-timestamp': string
  /** Text. Signatures of id, time and body, one for each secret: `v1,` and base64, separated by spaces. */
  readonly 'webhook-signature': string
  /**
   * Text. Signatures of id, time, type, key and body, in the same format. Type and key are percent-encoded like the id.
   * Use it instead of `webhook-signature` when you trust `redrive-type` or `redrive-key`.
   */
  readonly 'redrive-signature': string
}
