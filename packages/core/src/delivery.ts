import type { FailureClass } from './failure.ts'

/** One failed run, as it is stored with the message. */
export interface FailureRecord {
  /** Number of the failure in its cycle, from 1. Numbers are missing where records were omitted. */
  readonly number: number
  /** When it failed, epoch ms. */
  readonly at: number
  /** How long the message waited for this run, in ms. A run that timed out is included. */
  readonly waitedMs: number
  readonly class: FailureClass
  readonly signature: string
  readonly code: string | undefined
  /** The error's type, e.g. `TypeError`. Undefined when the message was written by an older release. */
  readonly type: string | undefined
  /** The message of the error, at most 500 characters. */
  readonly message: string
  /** True when the run counts as an attempt. */
  readonly counted: boolean
  /** W3C `traceparent` of the span of the run. Absent without tracing. */
  readonly trace?: string
}

/**
 * The failures of a message in its current cycle. A cycle ends when the message is settled, dropped,
 * quarantined or dead-lettered; a replay starts the next one.
 */
export interface FailureCycle {
  /** From 1; a replay adds 1. */
  readonly number: number
  /** Failed runs that count against the limit. Runs while a dependency is or may be unhealthy are not included. */
  readonly attempts: number
  /** Failed runs of the handler, counted or not. */
  readonly runs: number
  /** The runs that prove nothing about the cause. A failure of the dependency resets them. */
  readonly unproven: UnprovenRuns
  /** Epoch ms of the first failure of this cycle. */
  readonly firstFailedAt: number | undefined
  /** The last delay, in ms. A `decorrelated` backoff computes the next delay from it. */
  readonly lastDelayMs: number
  /**
   * Rest of a delay that was split, in ms: the broker delivers the message earlier, and then it is delayed again
   * for this time. Otherwise 0. It is a duration, because the clocks of two machines differ.
   */
  readonly remainingMs: number
  /**
   * The last failures, oldest first; `retry.history` of the policy limits their number. The oldest uncounted
   * one is omitted first. The number of the last one minus the length is the number of omitted ones.
   */
  readonly history: readonly FailureRecord[]
  /** W3C `traceparent` of the last run of the cycle before. Absent in the first cycle, and without tracing. */
  readonly trace?: string
}

/** Failed runs whose cause is not proven: no other message passed or failed in the same time. */
export interface UnprovenRuns {
  readonly runs: number
  /** The time that the message waited for them, in ms. Long waits that the dependency requested count in part. */
  readonly waitedMs: number
}

export const NONE_UNPROVEN: UnprovenRuns = Object.freeze({ runs: 0, waitedMs: 0 })

export const FIRST_CYCLE: FailureCycle = Object.freeze({
  number: 1,
  attempts: 0,
  runs: 0,
  unproven: NONE_UNPROVEN,
  firstFailedAt: undefined,
  lastDelayMs: 0,
  remainingMs: 0,
  history: Object.freeze([]),
})

/** Returns the cycle that a replay starts. Of the cycle before, it has only the number and the trace of the last run. */
export function nextCycle({ number, trace, history }: FailureCycle): FailureCycle {
  const last = history.at(-1)?.trace ?? trace
  return { ...FIRST_CYCLE, number: number + 1, ...(last === undefined ? {} : { trace: last }) }
}

/** One message that a transport delivered. Transports extend it with the data they need to settle it. */
export interface Delivery {
  /** Id of the message. It stays the same in retries and replays. */
  readonly id: string
  /** Queue, topic, subject or table it came from. */
  readonly source: string
  /** Messages with the same lane keep their order. A lane is a key, a partition or a message group. */
  readonly lane: string | undefined
  /** Business idempotency key; the id when the producer set none. */
  readonly key: string
  /** Type of the event when the producer names one (CloudEvents `type`, AMQP `type`). */
  readonly type: string | undefined
  /** The body exactly as it arrived. It is never changed or encoded again. */
  readonly bytes: Uint8Array
  /** True when there is no body, as in a record that deletes its key. An empty body is different. Absent on brokers without tombstones. */
  readonly isTombstone?: boolean
  readonly contentType: string | undefined
  /** Headers as the producer sent them, without Redrive's own. */
  readonly headers: Readonly<Record<string, unknown>>
  readonly cycle: FailureCycle
  /**
   * 1, plus the number of times this copy was delivered and its consumer disappeared. A return that
   * Redrive requested does not count. Always 1 when the broker does not count deliveries.
   */
  readonly deliveryCount: number
  /** Identifies the replay of a replayed message. */
  readonly replayId: string | undefined
  /** The key of the original message, when a user edited it before the replay. Absent otherwise. */
  readonly replaces?: string
  /** Problems found in Redrive's headers. The message then counts as a first attempt. */
  readonly headerProblems: readonly string[]
}
