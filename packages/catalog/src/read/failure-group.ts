import type { FailureClass } from '@redrive/core'
import { OWN_SIGNATURE } from '@redrive/core/internal'

export type GroupState = 'open' | 'muted' | 'resolved'

/** The merge of a group into another one. */
export interface GroupMerge {
  /** Id of the group that contains its dead letters now: the last one, if that group was merged, too. */
  readonly group: string
  /** Name of the user. */
  readonly by: string
  /** Epoch ms. */
  readonly at: number
  readonly reason: string
}

/** A group of similar failures of one source. Its counts include the groups that are merged into it. */
export interface FailureGroup {
  readonly id: string
  readonly source: string
  readonly handler: string | undefined
  readonly signature: string
  /** `consumer`: the consumer gave the signature, with its option `signature`. */
  readonly signatureFrom: 'rules' | 'consumer'
  /** Version of the signature rules. Failures with different versions are never in the same group. */
  readonly algorithm: number
  readonly class: FailureClass
  readonly code: string | undefined
  /** Type of the error, e.g. `TypeError`. Undefined: an older release or another library wrote the first dead letter. */
  readonly errorType: string | undefined
  /** First line of the user's code in the stack trace, for unknown failures whose stack trace is kept. */
  readonly frame: string | undefined
  /** Name by a fingerprint rule or a split. Undefined: the signature made the group. */
  readonly name: string | undefined
  /** The name, or the message with its ids, numbers and quoted values replaced. */
  readonly title: string
  /** The message of the first dead letter. */
  readonly sample: string
  readonly state: GroupState
  readonly mutedUntil: number | undefined
  /** Whether the group failed again after it was resolved. */
  readonly regressed: boolean
  readonly regressedAt: number | undefined
  readonly resolvedAt: number | undefined
  readonly owner: string | undefined
  readonly firstSeenAt: number
  readonly lastSeenAt: number
  readonly count: number
  /** Number of dead letters with the status open. */
  readonly openCount: number
  /** Number of dead letters with the status replaying. */
  readonly replayingCount: number
  /** Number of dead letters with the status unknown: a user has to set the outcome of their replay. */
  readonly undecidedCount: number
  /** Attempts of all dead letters that were ever in the group. Divide by `count` for the average. */
  readonly attempts: number
  /** Number of groups that users merged into it, directly or through another group. */
  readonly mergedCount: number
  /** Set if a user merged the group into another one. Lists show only the other one. */
  readonly mergedInto: GroupMerge | undefined
  /** Groups of earlier signature rules with the same failures, at most 20. They keep their state, owner and comments. */
  readonly continues: readonly string[]
  /** The group of later signature rules with the same failures. It gets the new dead letters. */
  readonly continuedIn: string | undefined
}

/** A group as the statements select it. */
export interface GroupRow {
  readonly id: string
  readonly source: string
  readonly handler: string | null
  readonly signature: string
  readonly algorithm: number
  readonly class: FailureClass
  readonly code: string | null
  readonly error_type: string | null
  readonly frame: string | null
  readonly name: string | null
  readonly title: string
  readonly sample: string
  readonly state: GroupState
  readonly muted_ms: number | null
  readonly is_regressed: boolean
  readonly regressed_ms: number | null
  readonly resolved_ms: number | null
  readonly owner: string | null
  readonly first_ms: number
  readonly last_ms: number
  readonly count: number
  readonly open_count: number
  readonly replaying_count: number
  readonly undecided_count: number
  readonly attempts: number
  readonly merged_count: number
  readonly merged_into: string | null
  readonly root_id: string | null
  readonly merged_by: string | null
  readonly merged_ms: number | null
  readonly merge_reason: string | null
  readonly continued_in: string | null
  readonly continues: readonly string[]
  readonly position: number
}

export function groupOf(row: GroupRow): FailureGroup {
  return {
    id: row.id,
    source: row.source,
    handler: row.handler ?? undefined,
    signature: row.signature,
    signatureFrom: row.signature.startsWith(OWN_SIGNATURE) ? 'consumer' : 'rules',
    algorithm: row.algorithm,
    class: row.class,
    code: row.code ?? undefined,
    errorType: row.error_type ?? undefined,
    frame: row.frame ?? undefined,
    name: row.name ?? undefined,
    title: row.title,
    sample: row.sample,
    state: row.state,
    mutedUntil: row.state === 'muted' ? (row.muted_ms ?? undefined) : undefined,
    regressed: row.is_regressed,
    regressedAt: row.regressed_ms ?? undefined,
    resolvedAt: row.resolved_ms ?? undefined,
    owner: row.owner ?? undefined,
    firstSeenAt: row.first_ms,
    lastSeenAt: row.last_ms,
    count: row.count,
    openCount: row.open_count,
    replayingCount: row.replaying_count,
    undecidedCount: row.undecided_count,
    attempts: row.attempts,
    mergedCount: row.merged_count,
    continues: row.continues,
    continuedIn: row.continued_in ?? undefined,
    mergedInto: mergeOf(row),
  }
}

/** Returns the merge of a group by a user. A part that a rule created has no user. */
function mergeOf(row: GroupRow): GroupMerge | undefined {
  if (row.merged_into === null) return undefined
  return {
    group: row.root_id ?? row.merged_into,
    by: row.merged_by ?? 'redrive',
    at: row.merged_ms ?? 0,
    reason: row.merge_reason ?? '',
  }
}
