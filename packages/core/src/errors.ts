/**
 * Every error Redrive raises. The code is stable and documented; the message is for people and may change.
 * `brand` survives duplicate installs of this package, where `instanceof` does not.
 */
const BRAND = Symbol.for('redrive.error')

export type RedriveErrorCode =
  /** Options break a rule; `problems` names every field at once. */
  | 'POLICY_INVALID'
  /** The policy needs something the transport cannot do. */
  | 'CAPABILITY_MISSING'
  /** The consumer or emitter is closed. */
  | 'CLOSED'
  /** The dead-letter queue or store is closed. */
  | 'DLQ_CLOSED'
  /** The dead-letter queue or store is at its limit. */
  | 'DLQ_FULL'
  /** The handler ran longer than the attempt timeout. */
  | 'ATTEMPT_TIMEOUT'
  /** The attempt was cut short because the consumer stops. */
  | 'STOPPING'
  /** The payload did not match the schema. */
  | 'PAYLOAD_INVALID'
  /** The same idempotency key arrived with another content. */
  | 'KEY_CONFLICT'
  /** A broker request ended without an answer: it may or may not have happened. */
  | 'OUTCOME_UNKNOWN'
  /** The broker has nowhere to put the message: no queue is bound for it. */
  | 'UNROUTABLE'
  /** The destination understood what was sent, and will not have it. */
  | 'REFUSED'
  /** It is not, or no longer, in a state in which that can be done. */
  | 'CONFLICT'
  /** It can be done, but not by who asks: four eyes. */
  | 'NEEDS_ANOTHER_PERSON'
  /** The broker no longer considers this delivery ours. */
  | 'DELIVERY_LOST'
  /** A sink did not get an event, and the store did not take it either. */
  | 'EVENT_LOST'
  /** A replay did not reach its sink; the dead letter stays in the store. */
  | 'REPLAY_FAILED'
  /** The broker does not answer, or does not let us in. */
  | 'UNREACHABLE'
  /** A queue, exchange, topic or table is missing or is not as it must be. */
  | 'TOPOLOGY_MISMATCH'

export interface RedriveErrorFacts {
  readonly cause?: unknown
  /** Every problem found, one sentence each. */
  readonly problems?: readonly string[]
  /** How long to wait before trying again, when that is known. */
  readonly retryAfterMs?: number
}

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

/** True for errors of any installed copy of Redrive; give a code to ask for that one only. */
export function isRedriveError(error: unknown, code?: RedriveErrorCode): error is RedriveError {
  if (typeof error !== 'object' || error === null || !(BRAND in error)) return false
  return code === undefined || (error as { code?: unknown }).code === code
}
