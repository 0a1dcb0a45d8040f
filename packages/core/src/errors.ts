/**
 * The mark of every error that Redrive throws. Codes are stable and documented; messages may change.
 * The mark survives duplicate installs of this package, where `instanceof` fails.
 */
const BRAND = Symbol.for('redrive.error')

/** Each comment has two paragraphs: the meaning, and what to do. docs/reference/errors.md prints both. */
export type RedriveErrorCode =
  /**
   * Options, a config or a request are invalid. `problems` lists every field.
   *
   * Correct the listed fields.
   */
  | 'POLICY_INVALID'
  /**
   * The policy or the command needs a feature that the transport does not have.
   *
   * Change the option that the message names, or use another transport.
   */
  | 'CAPABILITY_MISSING'
  /**
   * The consumer, emitter, sink or connection is closed.
   *
   * Create a new one. Close it only when no code uses it any more.
   */
  | 'CLOSED'
  /**
   * The dead-letter store is closed.
   *
   * Close the store after the emitter. The emitter closes its own store.
   */
  | 'DLQ_CLOSED'
  /**
   * The dead-letter queue or store is at its limit, or its disk is full.
   *
   * Replay or delete dead letters, or raise the limit that the message names.
   */
  | 'DLQ_FULL'
  /**
   * The handler or sink ran longer than the attempt timeout. The attempt counts as a transient failure.
   *
   * Pass the signal of the attempt to slow calls, or raise the timeout.
   */
  | 'ATTEMPT_TIMEOUT'
  /**
   * The attempt was cancelled because the consumer or emitter stops. The message is not lost.
   *
   * Nothing. If handlers need more time, allow more time to stop.
   */
  | 'STOPPING'
  /**
   * The payload could not be decoded or serialized, or does not match the schema.
   *
   * Correct the producer or the schema. Edit the dead letter and replay it.
   */
  | 'PAYLOAD_INVALID'
  /**
   * The inbox has the same idempotency key with different content.
   *
   * Give each message its own key. Check how the producer creates keys.
   */
  | 'KEY_CONFLICT'
  /**
   * A request ended without a response. It may or may not have been applied.
   *
   * A consumer repeats the hand-off automatically. Before you repeat your own request, check whether it was applied.
   */
  | 'OUTCOME_UNKNOWN'
  /**
   * The broker cannot route the message, because no queue is bound for it.
   *
   * Create the queue or binding that the message names.
   */
  | 'UNROUTABLE'
  /**
   * The destination understood the request and rejected it. The same request will fail again.
   *
   * Read the reason in the message and change the request or the destination.
   */
  | 'REFUSED'
  /**
   * The current state does not allow this operation.
   *
   * Read the current state, then decide again.
   */
  | 'CONFLICT'
  /**
   * The four-eyes rule requires another person for this operation.
   *
   * Let another person approve the run.
   */
  | 'NEEDS_ANOTHER_PERSON'
  /**
   * This process no longer owns the delivery or dead letter, for example after a lost connection. The broker delivers it again.
   *
   * Nothing. If it happens often, check the connection to the broker.
   */
  | 'DELIVERY_LOST'
  /**
   * A sink did not receive an event, and the store did not save it.
   *
   * Read the cause. Make room in the store or restore it, then emit the event again.
   */
  | 'EVENT_LOST'
  /**
   * A replay did not reach its sink. The dead letter stays in the store.
   *
   * Read the cause, and replay the dead letter when the sink is healthy.
   */
  | 'REPLAY_FAILED'
  /**
   * The broker, database or destination cannot be reached, or refuses the credentials.
   *
   * Check the address, the credentials, and that the service runs.
   */
  | 'UNREACHABLE'
  /**
   * A queue, exchange, topic, table or schema is missing or has other properties than expected.
   *
   * Create or change what the message names: with `redrive migrate`, `topology: 'declare'`, or by hand.
   */
  | 'TOPOLOGY_MISMATCH'

export interface RedriveErrorFacts {
  readonly cause?: unknown
  /** Every problem found, one sentence each. */
  readonly problems?: readonly string[]
  /** How long to wait before the next try, when known. */
  readonly retryAfterMs?: number
}

/** The error of all packages. `code` is stable; match it with `isRedriveError(error, code)`. */
export class RedriveError extends Error {
  readonly code: RedriveErrorCode
  readonly problems: readonly string[]
  readonly retryAfterMs: number | undefined

  constructor(code: RedriveErrorCode, message: string, facts: RedriveErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.name = 'RedriveError'
    this.code = code
    this.problems = facts.problems ?? []
    this.retryAfterMs = facts.retryAfterMs
    Object.defineProperty(this, BRAND, { value: true })
  }
}

/** Returns true for errors of any installed copy of Redrive. Pass a code to match only that code. */
export function isRedriveError(error: unknown, code?: RedriveErrorCode): error is RedriveError {
  if (typeof error !== 'object' || error === null) return false
  try {
    return BRAND in error && (code === undefined || (error as { code?: unknown }).code === code)
  } catch {
    // A Proxy can throw.
    return false
  }
}
