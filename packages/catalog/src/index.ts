import { Catalog, type CatalogOptions } from './catalog.ts'

export type { Comment } from './act/group.ts'
export type { Selection, Settled } from './act/settle.ts'
export type { CatalogOptions } from './catalog.ts'
export type { Ingested } from './ingest/ingest.ts'
export type { IngestOptions } from './ingest/options.ts'
export { migrate, migrationSql } from './migrate.ts'
export type { DeadLetterDetail, DeadLetterPage, DeadLetterSummary } from './read/dead-letters.ts'
export type { FailureGroup, GroupOrder, GroupPage, GroupQuery, GroupState } from './read/groups.ts'
export type { DeadLetterQuery, Scalar, Status } from './read/query.ts'
export type { TrendPoint, TrendQuery } from './read/trend.ts'
export type { WhyGrouped } from './read/why.ts'
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
export type { Catalog }

/** The catalog in this database. Its schema is made by `migrate(pool)`. */
export function catalog(options: CatalogOptions): Catalog {
  return new Catalog(options)
}
