import type { BreakerPhase } from './breaker.ts'
import type { FailureClass } from './failure.ts'

/** What `decide` noticed, as data. Logs, metrics, traces and alerts are readers of it. */
export type CoreEvent =
  | {
      readonly type: 'attempt_failed'
      readonly at: number
      readonly source: string
      readonly deliveryId: string
      readonly attemptNumber: number
      readonly class: FailureClass
      readonly signature: string
      readonly code: string | undefined
      /** False while the dependency is sick: the attempt does not count against the message. */
      readonly counted: boolean
    }
  | {
      readonly type: 'breaker_changed'
      readonly at: number
      readonly source: string
      readonly from: BreakerPhase
      readonly to: BreakerPhase
      /** When the next probe may go; undefined unless open. */
      readonly until: number | undefined
    }
  | {
      readonly type: 'limit_shrunk'
      readonly at: number
      readonly source: string
      readonly from: number
      readonly to: number
    }
  | {
      readonly type: 'budget_exhausted'
      readonly at: number
      readonly source: string
      readonly deliveryId: string
      readonly releaseAt: number
    }
  | {
      readonly type: 'flood_detected'
      readonly at: number
      readonly source: string
      readonly signature: string
      readonly until: number
    }

export const NO_EVENTS: readonly CoreEvent[] = Object.freeze([])
