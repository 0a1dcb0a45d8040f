import { PAGE } from './check.ts'
import {
  isByValue,
  positionConditions,
  rowConditions,
  scopeColumn,
  scopeSql,
} from './conditions.ts'
import type { DeadLetterQuery, Status } from './query.ts'
import { msSql, type Statement, Values } from './sql.ts'
import { HANDLER } from './statements.ts'

const COLUMNS = `d.id, d.group_id, d.source_id, d.status, d.class, d.reason, d.code, d.type, d.message_id, d.key,
    d.lane, d.origin, d.content_type, d.message, d.attempts, coalesce(d.runs, d.attempts) as runs, d.cycle, d.version, d.payload_bytes,
    d.is_quarantined, d.is_tombstone, d.headers, d.history, d.settled_by,
    ${msSql('d.first_failed_at')} as first_ms, ${msSql('d.last_failed_at')} as last_ms,
    ${msSql('d.ingested_at')} as ingested_ms, ${msSql('d.settled_at')} as settled_ms, d.last_failed_at`

const JOINS = `join redrive_catalog.source s on s.id = d.source_id
    left join redrive_catalog.failure_group g on g.id = d.group_id`

/** Values of the joined tables. The group is the visible group: it may contain merged groups. */
const JOINED = `s.name as source, ${HANDLER} as handler, coalesce(g.root_id, d.group_id) as root_id`

const DEFAULT_STATUSES: readonly Status[] = ['open']

/** The order of a list, newest last failure first. */
const ORDER = 'order by d.last_failed_at desc, d.id desc'

/** Whether indexes alone find the rows of a page. Otherwise a page can require a search through many rows. */
export const isIndexed = (query: DeadLetterQuery): boolean =>
  isByValue(query) || rowConditions(query, new Values()).length === 0

/**
 * Compiles a query for all matching rows up to its limit. It merges index scans, one for each status and group (or
 * source). If the query is indexed, each scan reads at most one page, so the cost does not depend on the number of rows.
 */
export function compileDeadLetters(query: DeadLetterQuery): Statement {
  const values = new Values()
  const most = values.add((query.limit ?? PAGE) + 1, 'integer')
  const where = [...rowConditions(query, values), ...positionConditions(query, values)]
  const scan = (...more: readonly string[]) =>
    `select ${COLUMNS} from redrive_catalog.dead_letter d where ${[...more, ...where].join(' and ')} ${ORDER} limit ${most}`
  const statuses = values.add(query.statuses ?? DEFAULT_STATUSES, 'text[]')
  const hasStatus = `d.status = any(${statuses})`
  const found =
    lookupsOf(query, values, (id) => scan(hasStatus, id)) ??
    ((query.key ?? query.messageId) === undefined
      ? `unnest(${statuses}) as st (status) cross join (${scopeSql(query, values)}) scope
         cross join lateral (${scan(...inScope(query))}) d`
      : `(${scan(hasStatus)}) d`)
  const text = `select d.*, ${JOINED} from ${found} ${JOINS} ${ORDER} limit ${most}`
  return { text, values: values.all }
}

const inScope = (query: DeadLetterQuery) => [
  `d.status = st.status collate "C"`,
  `d.${scopeColumn(query)} = scope.id`,
]

/** 20 rows: with fewer, a search in many scopes would not advance. */
const SCAN_ROWS_MIN = 20

/**
 * Compiles one step of a search: it compares about `rows` rows of the scope and returns the matching ones.
 *
 * Each scan reads the same number of rows. A scan that reads all of them may have more. The newest row where such a
 * scan stopped is the frontier: all rows down to it were compared, in every scan. Rows behind it are left to the next
 * step, whose cursor is the frontier. No frontier: there are no more rows. Every row of the result has the frontier. If
 * nothing matches, the result has one row, and only the frontier is set.
 */
export function compileStep(query: DeadLetterQuery, rows: number): Statement {
  const values = new Values()
  const most = values.add((query.limit ?? PAGE) + 1, 'integer')
  const isMatch = rowConditions(query, values).join(' and ')
  const inReach = [...inScope(query), ...positionConditions(query, values)].join(' and ')
  const statuses = values.add(query.statuses ?? DEFAULT_STATUSES, 'text[]')
  const text = `
with scope as materialized (${scopeSql(query, values)}),
scan as materialized (
  select greatest(${SCAN_ROWS_MIN}, ${values.add(rows, 'bigint')} / greatest(1, cardinality(${statuses}) * count(*))) as rows from scope
),
compared as materialized (
  select d.* from unnest(${statuses}) as st (status) cross join scope cross join lateral (
    select d.id, d.last_failed_at, d.is_match, row_number() over (${ORDER}) as place from (
      select d.id, d.last_failed_at, (${isMatch}) as is_match from (
        select d.* from redrive_catalog.dead_letter d where ${inReach} ${ORDER} limit (select rows from scan)
      ) d offset 0
    ) d
  ) d
),
frontier as materialized (
  select d.last_failed_at, d.id from compared d where d.place = (select rows from scan) ${ORDER} limit 1
)
select ${msSql('f.last_failed_at')} as frontier_ms, f.id as frontier_id, d.* from (values (true)) as always
  left join frontier f on true
  left join lateral (
    select ${COLUMNS}, ${JOINED} from (
      select d.id from compared d where d.is_match and (f.id is null or (d.last_failed_at, d.id) >= (f.last_failed_at, f.id))
        ${ORDER} limit ${most}
    ) m join redrive_catalog.dead_letter d on d.id = m.id ${JOINS}
  ) d on true
  ${ORDER}`
  return { text, values: values.all }
}

/** Compiles the query for one dead letter, with the same columns. */
export function compileDeadLetter(id: string): Statement {
  const text = `select ${COLUMNS}, ${JOINED} from redrive_catalog.dead_letter d
    ${JOINS} where d.id = $1::uuid`
  return { text, values: [id] }
}

/** The newest 10,000: a value that more dead letters share is too common to search for. */
const LOOKUPS_MAX = 10_000

/** Finds dead letters by the first extracted value. Further values are conditions. */
function lookupsOf(
  { extracted = {} }: DeadLetterQuery,
  values: Values,
  scan: (condition: string) => string,
): string | undefined {
  const [first] = Object.entries(extracted)
  if (first === undefined) return undefined
  const [name, value] = first.map((one) => values.add(one, 'text'))
  return `(select l.dead_letter_id from redrive_catalog.dead_letter_lookup l
      where l.name = ${name} and l.value = ${value} order by l.dead_letter_id desc limit ${LOOKUPS_MAX}) l
    cross join lateral (${scan('d.id = l.dead_letter_id')}) d`
}
