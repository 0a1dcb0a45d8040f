import { Catalog } from './catalog.ts'
import type { CatalogOptions } from './options.ts'

export type { Comment, GroupChange, GroupChangeResult, GroupVersion } from './triage/group.ts'
export type { Selection, DiscardResult } from './triage/discard.ts'
export type {
  FrozenSelection,
  SelectionAction,
  SelectionConfirmation,
  SelectionRequest,
  SelectionResult,
} from './triage/selection.ts'
export type { BackgroundRole, BackgroundSource, JobFailure } from './background/chores.ts'
export type { CatalogOptions } from './options.ts'
export { type Background, type BackgroundOptions, startBackground } from './composition.ts'
export type { IngestResult } from './ingest/ingest.ts'
export type { IngestOptions } from './ingest/options.ts'
export type { StoredPreview } from './ingest/preview.ts'
export { type Mask, resolveMask, type ResolvedMask, stepsLeft } from './masking/mask.ts'
export { maskBody, MASKED, type MaskedBody } from './masking/mask-body.ts'
export { migrate, migrationSql, missingMigrations } from './migrate.ts'
export type {
  DeadLetterDetail,
  DeadLetterPage,
  DeadLetterPreview,
  DeadLetterSummary,
} from './read/dead-letters.ts'
export type { FailureGroup, GroupMerge, GroupState } from './read/failure-group.ts'
export type { GroupOrder, GroupPage, GroupQuery } from './read/groups.ts'
export type { CountRange, DeadLetterQuery, Scalar, Status } from './read/query.ts'
export type { EarlierCycle } from './read/cycles.ts'
export type { OpenPayload } from './read/open-payload.ts'
export type { ExpiredDay, ExpiredPage, ExpiredQuery } from './read/expired.ts'
export type { ResourceKind } from './read/sources.ts'
export type { TrendPoint, TrendQuery } from './read/trend.ts'
export type { GroupExplanation } from './read/explain-group.ts'
export type { AutoReplay, AutoReplayRun, AutoReplayState } from './replay/auto.ts'
export type { Approval, ApprovalRule } from './replay/run/lifecycle.ts'
export type {
  Override,
  Proof,
  ProofReason,
  PatchOperation,
  ReplayChange,
  ReplayRequest,
  ReplaySelection,
  RunOptions,
} from './replay/run/options.ts'
export type { Turn } from './replay/publish/publish-claim.ts'
export type { Replayer, ReplaySource } from './replay/publish/replayer.ts'
export type { ActorOption, ReplayerOptions, Replays } from './replay/replays.ts'
export type {
  ItemQuery,
  ReplayItem,
  ReplayRun,
  RunPage,
  RunQuery,
} from './replay/run/read-runs.ts'
export type { ItemCounts, ItemState, RunState } from './replay/run/states.ts'
export type { SchemaOf, StandardJsonSchema } from './replay/plan/schema.ts'
export type { ConfirmResult, OutcomeResult } from './replay/outcome/confirm.ts'
export type {
  OpenSetAside,
  SetAsideDetail,
  SetAsideMessage,
  SetAsidePage,
  SetAsideQuery,
  SetAsideStatus,
} from './set-aside/read.ts'
export type { SetAside } from './set-aside/set-aside.ts'
export type { Regrouping } from './regrouping/regrouping.ts'
export type { FingerprintMatch } from './regrouping/match.ts'
export type { FingerprintRule } from './regrouping/rules.ts'
export type {
  ApplyRequest,
  FingerprintPreview,
  RulePreview,
} from './regrouping/fingerprints.ts'
export type { ApplyResult } from './regrouping/apply.ts'
export type { SplitConditions, SplitRequest, SplitResult } from './regrouping/split.ts'
export type { MergeRequest } from './regrouping/merge.ts'
export type { SetAsideReason } from './set-aside/store.ts'
export type { SourceCheck, StoredSourceCheck } from './state/source-checks.ts'
export type { PutBackOptions, PutBackProgress, PutBackResult } from './put-back/put-back.ts'
export type { MaintenanceResult } from './retention.ts'
export type { PayloadKeys } from './encryption.ts'
export type { CatalogCounts, NotableGroup, SourceCounts } from './metrics/counts.ts'
export {
  ALERT_LIMITS,
  type Alert,
  type AlertLimits,
  alertsOf,
  limitsOf,
  type Metrics,
  metricsOf,
} from './metrics/metrics.ts'
export type { SourceReplayStats } from './metrics/replay-stats.ts'
export type { Catalog }

/** Returns the catalog in this database. Create its schema first with `migrate(pool)`. */
export function catalog(options: CatalogOptions): Catalog {
  return new Catalog(options)
}
