/**
 * Headers on copies of messages. Transports write them on retries, dead letters and replays. PostgreSQL stores
 * the same data in columns. All values are text: everything but printable ASCII is percent-encoded.
 *
 * The first sentence of each comment is the format of the value; docs/reference/headers.md prints it.
 */
export interface RedriveHeaderTable {
  /** Whole number. Version of this format, now 1. */
  readonly 'redrive-version': string
  /** Text. Id of the message. It survives retries and replays. */
  readonly 'redrive-id': string
  /** Text. Business idempotency key. A producer may set it. Absent: the id. */
  readonly 'redrive-key': string
  /** Text. Source that the message first came from. A replay is published there. */
  readonly 'redrive-source': string
  /** Whole number. Counted attempts of this cycle. */
  readonly 'redrive-attempt': string
  /** Whole number. Failed runs of this cycle, counted or not. Absent: as many as counted attempts. */
  readonly 'redrive-runs': string
  /** Whole number. Runs of this cycle without a proven cause. Absent: 0. */
  readonly 'redrive-unproven-runs': string
  /** Milliseconds. Time that the message waited for runs without a proven cause. Absent: 0. */
  readonly 'redrive-unproven-ms': string
  /** Whole number. Number of the cycle. A replay starts the next one. Absent: 1. */
  readonly 'redrive-cycle': string
  /** Epoch milliseconds. First failure of this cycle. Absent: it has not failed. */
  readonly 'redrive-first-failed-at': string
  /** Milliseconds. Last delay, from which some backoffs compute the next one. Absent: 0. */
  readonly 'redrive-delay': string
  /** Milliseconds. Rest of the delay after this delivery, when the delay needs several steps of the broker. Absent: 0. */
  readonly 'redrive-remaining': string
  /** Text. Class of the last failure. */
  readonly 'redrive-class': string
  /** Text. Signature of the last failure. */
  readonly 'redrive-signature': string
  /** Text. Name of the consumer whose handler failed. Only on dead letters and in quarantine. Absent: it has no name. */
  readonly 'redrive-handler': string
  /** Text. Reason of the decision, such as `backoff`, `terminal` or `crash_loop`. */
  readonly 'redrive-reason': string
  /** Text. Id of the replay. Absent: the message was not replayed. */
  readonly 'redrive-replay-id': string
  /** Text. Key of the original message, when a user edited it before the replay. */
  readonly 'redrive-replaces': string
  /**
   * JSON. Last failures, oldest first: `[omitted, [number, at, class, signature, code, message, type, waitedMs,
   * counted, trace], …]`. `counted` is 1 for an attempt. `trace` is absent without tracing. When the header budget is
   * exceeded, the oldest failures are omitted and counted.
   */
  readonly 'redrive-history': string
  /** Text. W3C `traceparent` of the last run of the cycle before. Absent in the first cycle, and without tracing. */
  readonly 'redrive-trace': string
  /** Text. Stack trace of the last failure, if the policy includes it and it fits. */
  readonly 'redrive-stack': string
}
