import { Check, SOURCES_MAX } from './check.ts'
import { ask, momentSql, msSql, type Reader, Values } from './sql.ts'

/** Dead letters by the time of their last failure, from the counts that are kept. */
export interface TrendQuery {
  readonly per: 'minute' | 'hour'
  /** From that moment, epoch ms. */
  readonly after: number
  /** Up to that moment. At most 1,500 spans after the start. */
  readonly before: number
  /** Ids of groups, at most 100. */
  readonly groups?: readonly string[]
  /** Names of sources, at most 1,000. */
  readonly sources?: readonly string[]
}

/** Only spans with something in them. */
export interface TrendPoint {
  /** Start of the span, epoch ms. */
  readonly at: number
  readonly count: number
}

const SPAN_MS = { minute: 60_000, hour: 3_600_000 } as const
/** 1,500: a day by the minute, two months by the hour. */
const SPANS_MAX = 1_500
const LIST_MAX = 100

const FIELDS: Readonly<Record<keyof TrendQuery, true>> = {
  per: true,
  after: true,
  before: true,
  groups: true,
  sources: true,
}

function checkQuery(query: TrendQuery): void {
  const check = new Check('trend()', query, FIELDS)
  check.oneOf('per', Object.keys(SPAN_MS))
  check.moments('after', 'before')
  check.ids('groups', LIST_MAX)
  check.lists('sources', SOURCES_MAX)
  const spans = (query.before - query.after) / (SPAN_MS[query.per] ?? SPAN_MS.minute)
  if (!(spans > 0 && spans <= SPANS_MAX)) {
    check.problem(`after, before: expected 1 to ${SPANS_MAX} spans, got ${spans}`)
  }
  check.done()
}

export async function readTrend(reader: Reader, query: TrendQuery): Promise<readonly TrendPoint[]> {
  checkQuery(query)
  const { per, after, before, groups, sources } = query
  const values = new Values()
  const where = [
    `r.${per} >= ${momentSql(values.add(after, 'float8'))}`,
    `r.${per} < ${momentSql(values.add(before, 'float8'))}`,
  ]
  // Along the primary key, group by group: there are thousands at most.
  const chosen = ['true']
  if (groups !== undefined) chosen.push(`g.id = any(${values.add(groups, 'uuid[]')})`)
  if (sources !== undefined) chosen.push(`s.name = any(${values.add(sources, 'text[]')})`)
  const text = `select ${msSql(`r.${per}`)} as at, sum(r.count)::float8 as count
    from redrive_catalog.failure_group g join redrive_catalog.source s on s.id = g.source_id
    cross join lateral (select r.${per}, r.count from redrive_catalog.group_${per} r
      where r.group_id = g.id and ${where.join(' and ')}) r
    where ${chosen.join(' and ')} group by r.${per} order by r.${per}`
  return ask<TrendPoint>(reader, { text, values: values.all })
}
