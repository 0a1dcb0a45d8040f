import type { BreakerPhase } from './breaker.ts'
import type { FailureClass } from './failure.ts'

/** An observation of `decide`, as data. Logs, metrics, traces and alerts read it. */
export type CoreEvent =
  /** An attempt failed: the handler threw, timed out, or the body could not be read. */
  | {
      readonly type: 'attempt_failed'
      /** Time of the event, epoch ms. */
      readonly at: number
      /** Queue, topic or table of the message; for emitted events the name of the sink. */
      readonly source: string
      /** Id of the message. It survives retries and replays. */
      readonly deliveryId: string
      /** Number of the attempt in its cycle, from 1. */
      readonly attemptNumber: number
      /** Class of the failure. */
      readonly class: FailureClass
      /** Fingerprint of the failure. Similar failures share it. */
      readonly signature: string
      /** Machine-readable code of the error, such as `ECONNREFUSED`; undefined when it has none. */
      readonly code: string | undefined
      /** False while the dependency is unhealthy: the attempt does not count against the message. */
      readonly counted: boolean
      /** Type of the message, when the producer names one. */
      readonly eventType: string | undefined
      /** Type of the error, such as `TypeError`. */
      readonly errorType: string
      /** Message of the error, at most 500 characters. */
      readonly message: string
      /** Failed runs of this cycle so far, counted or not. */
      readonly runs: number
      /** First failure of this cycle, epoch ms. */
      readonly firstFailedAt: number
      /** Time of the next run, epoch ms; undefined when there is none, or when it is not known. */
      readonly retryAt: number | undefined
    }
  /** The circuit breaker of a dependency changed its phase. */
  | {
      readonly type: 'breaker_changed'
      readonly at: number
      readonly source: string
      /** Phase before. */
      readonly from: BreakerPhase
      /** Phase after. */
      readonly to: BreakerPhase
      /** Time of the next probe, epoch ms; undefined unless open. */
      readonly until: number | undefined
    }
  /** Adaptive concurrency lowered its limit, because the dependency is overloaded. */
  | {
      readonly type: 'limit_shrunk'
      readonly at: number
      readonly source: string
      /** Attempts in flight allowed before. */
      readonly from: number
      /** Attempts in flight allowed from now on. */
      readonly to: number
    }
  /** A retry exceeded the retry budget. It returns later than its backoff. */
  | {
      readonly type: 'budget_exhausted'
      readonly at: number
      readonly source: string
      readonly deliveryId: string
      /** Earliest time of the retry, epoch ms. */
      readonly releaseAt: number
    }
  /** Too many similar messages became dead letters. The next ones are written more slowly, except in lane order. */
  | {
      readonly type: 'flood_detected'
      readonly at: number
      readonly source: string
      readonly signature: string
      /** When the first slowed dead letter is written, epoch ms. In lane order nothing is slowed. */
      readonly until: number
    }

export const NO_EVENTS: readonly CoreEvent[] = Object.freeze([])
