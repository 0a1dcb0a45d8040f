import { Catalog, type CatalogOptions } from './catalog.ts'

export type { Comment, GroupChange, GroupChanged, SeenGroup } from './act/group.ts'
export type { Selection, Settled } from './act/settle.ts'
export type { BackgroundRole, BackgroundSource, Trouble } from './background/chores.ts'
export type { CatalogOptions } from './catalog.ts'
export { type Background, type BackgroundOptions, startBackground } from './composition.ts'
export type { Ingested } from './ingest/ingest.ts'
export type { IngestOptions } from './ingest/options.ts'
export { migrate, migrationSql, missingMigrations } from './migrate.ts'
export type {
  DeadLetterDetail,
  DeadLetterPage,
  DeadLetterPreview,
  DeadLetterSummary,
} from './read/dead-letters.ts'
export type { FailureGroup, GroupOrder, GroupPage, GroupQuery, GroupState } from './read/groups.ts'
export type { DeadLetterQuery, Scalar, Status } from './read/query.ts'
export type { Sourced } from './read/sources.ts'
export type { TrendPoint, TrendQuery } from './read/trend.ts'
export type { WhyGrouped } from './read/why.ts'
export type { AutoReplay } from './replay/auto.ts'
export type { Verdict } from './replay/gates.ts'
export type { Approval, ApprovalRule } from './replay/lifecycle.ts'
export type {
  Override,
  PatchOperation,
  ReplayChange,
  ReplayRequest,
  ReplaySelection,
  RunOptions,
} from './replay/options.ts'
export type { Replayer, ReplaySource, Turn } from './replay/replayer.ts'
export type { By, ReplayerOptions, Replays } from './replay/replays.ts'
export type {
  ItemCounts,
  ItemQuery,
  ItemState,
  ReplayItem,
  ReplayRun,
  RunPage,
  RunQuery,
  RunState,
} from './replay/runs.ts'
export type { SchemaOf, StandardJsonSchema } from './replay/schema.ts'
export type { Confirmed, Decided, HandledKeys } from './replay/settle.ts'
export type { Maintained } from './retention.ts'
export type { PayloadKeys } from './seal.ts'
export type { CatalogCounts, NotableGroup, SourceCounts } from './watch/counts.ts'
export {
  ALERT_LIMITS,
  type Alert,
  type AlertLimits,
  alertsOf,
  type Metrics,
  metricsOf,
} from './watch/metrics.ts'
export type { SourceReplays } from './watch/replayed.ts'
export type { Catalog }

/** The catalog in this database. Its schema is made by `migrate(pool)`. */
export function catalog(options: CatalogOptions): Catalog {
  return new Catalog(options)
}
