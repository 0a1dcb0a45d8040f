import { Check, SOURCES_MAX } from './check.ts'
import { partsSql } from './conditions.ts'
import { ask, momentSql, type Reader, Values } from './sql.ts'
import { trendOf } from './statements.ts'

/** Filters for counts of dead letters by the time of their last failure. */
export interface TrendQuery {
  readonly per: 'minute' | 'hour'
  /** Start, epoch ms. */
  readonly after: number
  /** End, epoch ms, at most 1,500 minutes or hours after the start. */
  readonly before: number
  /** Ids of groups, at most 100. */
  readonly groups?: readonly string[]
  /** Names of sources, at most 1,000. */
  readonly sources?: readonly string[]
}

/** The count of one minute or hour. Minutes and hours without dead letters are left out. */
export interface TrendPoint {
  /** Start of the minute or hour, epoch ms. */
  readonly at: number
  readonly count: number
}

const SPAN_MS = { minute: 60_000, hour: 3_600_000 } as const
/** 1,500: one day by the minute, or two months by the hour. */
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
  check.timestamps('after', 'before')
  check.ids('groups', LIST_MAX)
  check.lists('sources', SOURCES_MAX)
  const spans = (query.before - query.after) / (SPAN_MS[query.per] ?? SPAN_MS.minute)
  if (!(spans > 0 && spans <= SPANS_MAX)) {
    check.problem(
      `after, before: expected "before" later than "after" by at most ${SPANS_MAX} minutes or hours (see "per"), got ${spans}`,
    )
  }
  check.done()
}

export async function readTrend(reader: Reader, query: TrendQuery): Promise<readonly TrendPoint[]> {
  checkQuery(query)
  const { per, after, before, groups, sources } = query
  const values = new Values()
  const inTime = [
    `r.${per} >= ${momentSql(values.add(after, 'float8'))}`,
    `r.${per} < ${momentSql(values.add(before, 'float8'))}`,
  ]
  const ofGroups: string[] = []
  if (groups !== undefined) ofGroups.push(`g.id in (${partsSql(values.add(groups, 'uuid[]'))})`)
  if (sources !== undefined) ofGroups.push(`s.name = any(${values.add(sources, 'text[]')})`)
  const text = trendOf(per, inTime, ofGroups)
  return ask<TrendPoint>(reader, { text, values: values.all })
}
