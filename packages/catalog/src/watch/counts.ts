import type { FailureClass } from '@redrive/core'
import { msSql, reading, type Reader } from '../read/sql.ts'

/** What is known of all sources at one moment, from the counts that are kept. */
export interface CatalogCounts {
  /** On the clock of the database. */
  readonly at: number
  readonly sources: readonly SourceCounts[]
  /** Of each source the largest group, and those that are new or regressed since a while. */
  readonly groups: readonly NotableGroup[]
}

export interface SourceCounts {
  readonly source: string
  /** Dead letters that nobody has dealt with. */
  readonly open: number
  /** Of all there ever were. */
  readonly count: number
  readonly attempts: number
  readonly openByClass: Readonly<Partial<Record<FailureClass, number>>>
  /** Last failure of the open one that waits longest. */
  readonly oldestAt: number | undefined
}

export interface NotableGroup {
  readonly id: string
  readonly source: string
  readonly title: string
  readonly open: number
  readonly isMuted: boolean
  /** When the catalog first heard of it. */
  readonly createdAt: number
  readonly regressedAt: number | undefined
}

/** A day: an alert looks at less. */
const RECENT = `interval '1 day'`
/** 1,000 groups: with more of them new on one day, the first thousand say so. */
const GROUPS_MAX = 1_000

const SOURCES = `
select s.name as source, coalesce(g.open, 0)::float8 as open, coalesce(g.count, 0)::float8 as count,
    coalesce(g.attempts, 0)::float8 as attempts, coalesce(g.by_class, '{}') as "openByClass", o.oldest_ms as "oldestAt"
  from redrive_catalog.source s
  left join lateral (
    select sum(c.open) as open, sum(c.count) as count, sum(c.attempts) as attempts,
        jsonb_object_agg(c.class, c.open) filter (where c.open > 0) as by_class
      from (select class, sum(open_count) as open, sum(count) as count, sum(attempts) as attempts
        from redrive_catalog.failure_group where source_id = s.id group by class) c
  ) g on true
  left join lateral (
    select ${msSql('d.last_failed_at')} as oldest_ms from redrive_catalog.dead_letter d
      where d.source_id = s.id and d.status = 'open' order by d.last_failed_at, d.id limit 1
  ) o on true
  order by s.name`

const GROUPS = `
select id, source, title, open_count::float8 as open, is_muted as "isMuted", ${msSql('created_at')} as "createdAt",
    ${msSql('regressed_at')} as "regressedAt"
  from (select g.*, s.name as source,
      g.state = 'muted' and coalesce(g.muted_until, 'infinity') > now() as is_muted,
      row_number() over (partition by g.source_id order by g.open_count desc, g.id) as place
    from redrive_catalog.failure_group g join redrive_catalog.source s on s.id = g.source_id) g
  where place = 1 or created_at > now() - ${RECENT} or regressed_at > now() - ${RECENT}
  order by place, created_at desc limit ${GROUPS_MAX}`

export async function readCounts(reader: Reader): Promise<CatalogCounts> {
  return reading(reader, async (run) => {
    const [clock] = await run<{ at: number }>(`select ${msSql('now()')} as at`)
    const sources = await run<SourceRow>(SOURCES)
    const groups = await run<GroupRow>(GROUPS)
    return {
      at: clock?.at ?? 0,
      sources: sources.map((row) => ({ ...row, oldestAt: row.oldestAt ?? undefined })),
      groups: groups.map((row) => ({ ...row, regressedAt: row.regressedAt ?? undefined })),
    }
  })
}

type SourceRow = Omit<SourceCounts, 'oldestAt'> & { readonly oldestAt: number | null }
type GroupRow = Omit<NotableGroup, 'regressedAt'> & { readonly regressedAt: number | null }
