import type { Status } from '../read/query.ts'
import type { Override, RunOptions } from './options.ts'

/** What becomes of a dead letter in a plan. */
export type Verdict =
  | 'replay'
  /** Somebody is dealing with it, or has. */
  | 'not_open'
  /** Another run has it. */
  | 'in_run'
  /** It says that it came from where this source does not replay to. */
  | 'elsewhere'
  /** Suspected poison. */
  | 'quarantined'
  /** Older than the plan allows. */
  | 'too_old'
  /** The inbox has forgotten its key: a replay could take effect a second time. */
  | 'forgotten'
  /** Replayed three times, and it came back each time. */
  | 'too_many_cycles'
  /** Its last replay failed in the same way, less than an hour ago. */
  | 'failing_again'
  /** The change cannot be made of it. */
  | 'not_changeable'
  /** What would go out does not match the schema of the consumer. */
  | 'invalid'

/** What the gates look at. */
export interface Candidate {
  readonly id: string
  readonly status: Status
  readonly version: number
  readonly cycle: number
  readonly type: string | null
  readonly payload_bytes: number
  readonly is_quarantined: boolean
  /** By the clock of the database. */
  readonly age_ms: number
  readonly since_last_ms: number
  /** The run that has it, if any. */
  readonly run_id: string | null
  /** Its group is the one of the cycle before. */
  readonly is_same_failure: boolean
  readonly origin: string
}

/** Three replays: a fourth return is not bad luck. */
const CYCLES_MAX = 3
/** An hour: fixes take longer than that. */
const AGAIN_MS = 3_600_000

/** What holds for the whole plan. */
export interface Grounds {
  readonly options: RunOptions
  readonly isForced: boolean
  /** Undefined: anywhere. */
  readonly origins: readonly string[] | undefined
}

type Gate = (one: Candidate, options: RunOptions, grounds: Grounds) => Verdict | undefined

/** In this order: the first that says no is the reason. */
const GATES: readonly Gate[] = [
  ({ run_id }) => (run_id === null ? undefined : 'in_run'),
  ({ status }) => (status === 'open' ? undefined : 'not_open'),
  ({ origin }, _, { origins }) =>
    origins === undefined || origins.includes(origin) ? undefined : 'elsewhere',
  ({ age_ms }, { inboxKeepMs }, { isForced }) =>
    age_ms <= inboxKeepMs || isForced ? undefined : 'forgotten',
  ({ age_ms }, { maxAgeMs }) => (age_ms > maxAgeMs ? 'too_old' : undefined),
  ({ is_quarantined }) => (is_quarantined ? 'quarantined' : undefined),
  ({ cycle }) => (cycle > CYCLES_MAX ? 'too_many_cycles' : undefined),
  ({ is_same_failure, since_last_ms }) =>
    is_same_failure && since_last_ms < AGAIN_MS ? 'failing_again' : undefined,
]

/** What can be said without looking at the body. */
export function verdictOf(candidate: Candidate, grounds: Grounds): Verdict {
  const { options } = grounds
  for (const gate of GATES) {
    const verdict = gate(candidate, options, grounds)
    if (verdict !== undefined && !options.overrides.includes(verdict as Override)) return verdict
  }
  return 'replay'
}
