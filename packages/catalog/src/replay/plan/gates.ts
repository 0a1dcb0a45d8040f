import type { Status } from '../../read/query.ts'
import type { Override, RunOptions } from '../run/options.ts'

/** The result of the gates for a dead letter in a plan: `replay`, or the reason to skip it. */
export type GateResult =
  | 'replay'
  /** Its status is not open. */
  | 'not_open'
  /** It is part of another active run. */
  | 'in_run'
  /** Its origin is not in the allowed origins of the source. */
  | 'unknown_origin'
  /** It is quarantined as a suspected poison message. */
  | 'quarantined'
  /** It is older than `maxAge`. */
  | 'too_old'
  /** Its key has expired in the inbox, so a replay could take effect a second time. */
  | 'inbox_expired'
  /** It was replayed three times and failed again each time. */
  | 'too_many_cycles'
  /** Its last replay failed in the same way, less than an hour ago. */
  | 'failed_recently'
  /** The change cannot be applied to its body. */
  | 'patch_failed'
  /** Its body, after the change, does not match the JSON Schema of the source. */
  | 'schema_invalid'
  /** The schema checks of the plan reached their time limit before its body was checked. */
  | 'not_checked'

/** A dead letter with the values that the gates check. */
export interface Candidate {
  readonly id: string
  readonly status: Status
  readonly version: number
  readonly cycle: number
  readonly type: string | null
  readonly payload_bytes: number
  readonly is_quarantined: boolean
  /** Time since the first failure, by the clock of the database. */
  readonly age_ms: number
  /** Time since the last failure, by the clock of the database. */
  readonly since_last_ms: number
  /** The active run that contains it, if any. */
  readonly run_id: string | null
  /** Whether its group is the same as in the previous cycle. */
  readonly is_same_failure: boolean
  readonly origin: string
  /** Why it is a dead letter. */
  readonly reason: string
}

/** Three replays: a message that failed again each time needs a fix, not a fourth replay. */
const CYCLES_MAX = 3
/** One hour: a fix takes longer than that. */
const FAILED_RECENTLY_MS = 3_600_000

/** Values that are the same for the whole plan. */
export interface GateContext {
  readonly options: RunOptions
  readonly isForced: boolean
  /** Allowed origins. Undefined: every origin is allowed. */
  readonly origins: readonly string[] | undefined
}

type Gate = (one: Candidate, options: RunOptions, context: GateContext) => GateResult | undefined

/** All gates in order. The first gate with a result is the reason. */
const GATES: readonly Gate[] = [
  ({ run_id }) => (run_id === null ? undefined : 'in_run'),
  ({ status }) => (status === 'open' ? undefined : 'not_open'),
  ({ origin }, _, { origins }) =>
    origins === undefined || origins.includes(origin) ? undefined : 'unknown_origin',
  ({ age_ms }, { inboxRetentionMs }, { isForced }) =>
    age_ms <= inboxRetentionMs || isForced ? undefined : 'inbox_expired',
  ({ age_ms }, { maxAgeMs }) => (age_ms > maxAgeMs ? 'too_old' : undefined),
  ({ is_quarantined }) => (is_quarantined ? 'quarantined' : undefined),
  ({ cycle }) => (cycle > CYCLES_MAX ? 'too_many_cycles' : undefined),
  ({ is_same_failure, since_last_ms }) =>
    is_same_failure && since_last_ms < FAILED_RECENTLY_MS ? 'failed_recently' : undefined,
]

/** Applies the gates that do not need the body. */
export function verdictOf(candidate: Candidate, context: GateContext): GateResult {
  const { options } = context
  for (const gate of GATES) {
    const result = gate(candidate, options, context)
    if (result !== undefined && !options.overrides.includes(result as Override)) return result
  }
  return 'replay'
}
