import type { FailureClass } from './failure.ts'

/** One failed attempt, as it travels with the message. */
export interface AttemptRecord {
  /** Number of the attempt in its cycle, from 1. */
  readonly number: number
  /** When it failed, epoch ms. */
  readonly at: number
  readonly class: FailureClass
  readonly signature: string
  readonly code: string | undefined
  /** Bounded; the whole text belongs to logs and the catalog. */
  readonly message: string
}

/** The attempts from first failure to settlement. A replay opens the next cycle. */
export interface FailureCycle {
  /** From 1; a replay adds 1. */
  readonly number: number
  /** Attempts that count against the limit. Failures while a dependency is sick are not among them. */
  readonly attempts: number
  /** Epoch ms of the first failure of this cycle. */
  readonly firstFailedAt: number | undefined
  /** Last delay chosen, ms: decorrelated jitter grows from it. */
  readonly lastDelayMs: number
  /** The retry must not run before this moment although the broker delivered it (a delay longer than the broker's longest). */
  readonly notBefore: number | undefined
  /** The last attempts, oldest first; bounded by the policy. */
  readonly history: readonly AttemptRecord[]
}

export const FIRST_CYCLE: FailureCycle = Object.freeze({
  number: 1,
  attempts: 0,
  firstFailedAt: undefined,
  lastDelayMs: 0,
  notBefore: undefined,
  history: Object.freeze([]),
})

/** One message handed to us by a transport. Transports extend it with what they need to settle it. */
export interface Delivery {
  /** Identity that survives retries and replays. */
  readonly id: string
  /** Queue, topic, subject or table it came from. */
  readonly source: string
  /** The unit of order it belongs to: partition, key, message group. */
  readonly lane: string | undefined
  /** Business idempotency key; the id when the producer gave none. */
  readonly key: string
  /** Type of the event when the producer names one (CloudEvents `type`, AMQP `type`). */
  readonly type: string | undefined
  /** The body exactly as it arrived; never changed, never re-encoded. */
  readonly bytes: Uint8Array
  /** There is no body, which is not an empty one: a record that deletes its key. Absent where there is no such thing. */
  readonly isTombstone?: boolean
  readonly contentType: string | undefined
  /** Headers as the producer sent them, without Redrive's own. */
  readonly headers: Readonly<Record<string, unknown>>
  readonly cycle: FailureCycle
  /**
   * 1, plus the times this copy was handed out and its consumer was never heard of again. A return
   * that we asked for does not count. Always 1 when the broker cannot tell.
   */
  readonly deliveryCount: number
  /** Present on a replayed message: confirms which replay this is. */
  readonly replayId: string | undefined
  /** The key of the message it stands in for: a person edited it before the replay. Absent otherwise. */
  readonly replaces?: string
  /** Problems met while reading Redrive's headers; the message then counts as a first attempt. */
  readonly headerProblems: readonly string[]
}
