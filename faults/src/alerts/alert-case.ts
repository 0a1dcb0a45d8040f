import type { Place } from './place.ts'

/** A fault, and the alerts that it must raise. */
export interface AlertCase {
  /** The name of the case, its source and its dependency. */
  readonly name: string
  readonly story: string
  /** The alert about the cause. */
  readonly alert: string
  /** Alerts about consequences. They must also fire. */
  readonly also?: readonly string[]
  /** Time from the fault until the rule fires, in real time: windows, thresholds and `for`. */
  readonly afterMs: number
  readonly isInSmoke?: boolean
  /** Whether its alert takes a minute or more in the short form. Default false. */
  readonly isLong?: true
  /** Resolves when the fault has begun. Returns what the runbook describes, for the repair. */
  begin(place: Place): Promise<() => Promise<unknown>>
}

export const MINUTE = 60_000
export const HOUR = 3_600_000
