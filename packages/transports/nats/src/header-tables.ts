/**
 * Headers that only NATS consumers add to copies. They are removed from the message that a handler receives.
 *
 * The first sentence of each comment is the format of the value; docs/reference/headers.md prints it.
 */
export interface NatsHeaderTable {
  /** Text. Subject of the original message. A handler sees it, and a dead letter keeps it. */
  readonly 'redrive-subject': string
  /** Whole number. Deliveries of the message without a result before it was returned. Absent: 0. */
  readonly 'redrive-delivery-count': string
  /** Text. Why a plain consumer gave up the message: `max_deliver` or `terminated`. Only on a dead letter that was put back. */
  readonly 'redrive-foreign': string
}

/** Headers of producers that NATS consumers read and the NATS sink writes. CloudEvents in binary mode has these names. */
export interface NatsEventHeaderTable {
  /** Text. Content type of the body. */
  readonly 'content-type': string
  /** Text. Type of the event. */
  readonly 'ce-type': string
  /** Time. Time of the event, ISO 8601. Only written. */
  readonly 'ce-time': string
}

/** Headers that the server reads. Only the sink and the copies of Redrive have them. */
export interface NatsServerHeaderTable {
  /** Text. Id of the message: the server stores messages with one id once within its duplicate window. */
  readonly 'Nats-Msg-Id': string
  /** Text. Time to live of a dead letter or confirmation, such as `3600s`. */
  readonly 'Nats-TTL': string
  /** Text. Time of a retry by the clock of the server, such as `@at 2026-01-01T00:00:00.000Z`. */
  readonly 'Nats-Schedule': string
  /** Text. Subject to which the server publishes the retry at that time. */
  readonly 'Nats-Schedule-Target': string
}
