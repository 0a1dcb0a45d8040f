import { pointerSteps } from '../ingest/preview.ts'
import { NAME_MAX, storable } from '../text.ts'
import { PAGE } from './check.ts'
import type { DeadLetterQuery, Status } from './query.ts'
import { containing, momentSql, msSql, readCursor, type Statement, Values } from './sql.ts'
import { FROM_GROUPS, HANDLER } from './statements.ts'

const COLUMNS = `d.id, d.group_id, d.source_id, d.status, d.class, d.reason, d.code, d.type, d.message_id, d.key,
    d.lane, d.origin, d.content_type, d.message, d.attempts, coalesce(d.runs, d.attempts) as runs, d.cycle, d.version, d.payload_bytes,
    d.is_quarantined, d.is_tombstone, d.headers, d.history, d.settled_by,
    ${msSql('d.first_failed_at')} as first_ms, ${msSql('d.last_failed_at')} as last_ms,
    ${msSql('d.ingested_at')} as ingested_ms, ${msSql('d.settled_at')} as settled_ms, d.last_failed_at`

const JOINS = `join redrive_catalog.source s on s.id = d.source_id
    left join redrive_catalog.failure_group g on g.id = d.group_id`

/** The newest 500 groups with a matching text: a word in more groups is too common to search for. */
const GROUPS_MAX = 500

const DEFAULT_STATUSES: readonly Status[] = ['open']

/**
 * Compiles a page query. A page merges short index scans, one for each status and group (or source). Each scan
 * reads at most one page, so the cost does not depend on the number of rows.
 */
export function compileDeadLetters(query: DeadLetterQuery): Statement {
  const values = new Values()
  const most = values.add((query.limit ?? PAGE) + 1, 'integer')
  const where = [...conditions(query, values), ...position(query, values)]
  const order = `order by d.last_failed_at desc, d.id desc limit ${most}`
  const scan = (...more: readonly string[]) =>
    `select ${COLUMNS} from redrive_catalog.dead_letter d where ${[...more, ...where].join(' and ')} ${order}`
  const statuses = values.add(query.statuses ?? DEFAULT_STATUSES, 'text[]')
  const hasStatus = `d.status = any(${statuses})`
  const found =
    lookupsOf(query, values, (id) => scan(hasStatus, id)) ??
    (query.key === undefined
      ? `unnest(${statuses}) as st (status) cross join ${scopeOf(query, values)}
         cross join lateral (${scan(`d.status = st.status collate "C"`, `d.${scopeColumn(query)} = scope.id`)}) d`
      : `(${scan(hasStatus)}) d`)
  const text = `select d.*, s.name as source, ${HANDLER} as handler from ${found} ${JOINS} ${order}`
  return { text, values: values.all }
}

/** Compiles the query for one dead letter, with the same columns. */
export function compileDeadLetter(id: string): Statement {
  const text = `select ${COLUMNS}, s.name as source, ${HANDLER} as handler from redrive_catalog.dead_letter d
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

/** Whether a selective value finds the rows. All other filters are then conditions. */
const isByValue = ({ key, extracted = {} }: DeadLetterQuery) =>
  key !== undefined || Object.keys(extracted).length > 0
const isByGroup = ({ groups, text, handler }: DeadLetterQuery) =>
  groups !== undefined || text !== undefined || handler !== undefined
const scopeColumn = (query: DeadLetterQuery) => (isByGroup(query) ? 'group_id' : 'source_id')

function scopeOf(query: DeadLetterQuery, values: Values): string {
  const { groups, text } = query
  if (groups !== undefined) return `unnest(${values.add(groups, 'uuid[]')}) as scope (id)`
  if (!isByGroup(query)) return `(${sourcesOf(query, values)}) scope`
  const most = text === undefined ? '' : `order by g.last_seen_at desc limit ${GROUPS_MAX}`
  return `(${groupsOf(query, values)} ${most}) scope`
}

function sourcesOf({ sources }: DeadLetterQuery, values: Values): string {
  const named = sources === undefined ? 'true' : `s.name = any(${values.add(sources, 'text[]')})`
  return `select s.id from redrive_catalog.source s where ${named}`
}

/** Selects the groups of these sources with this text and this handler. */
function groupsOf({ sources, handler, text }: DeadLetterQuery, values: Values): string {
  const where = ['true']
  if (sources !== undefined) where.push(`s.name = any(${values.add(sources, 'text[]')})`)
  if (handler !== undefined) where.push(`${HANDLER} = ${values.add(handler, 'text')}`)
  if (text !== undefined) {
    const pattern = values.add(containing(text), 'text')
    where.push(`(g.title ilike ${pattern} or g.sample ilike ${pattern})`)
  }
  return `select g.id ${FROM_GROUPS} where ${where.join(' and ')}`
}

/**
 * Returns the conditions for the start of the page and for its partitions. An id starts with the first failure
 * time. This is never after the last failure, so a bound on the last failure is also a bound on the id.
 */
function position(query: DeadLetterQuery, values: Values): readonly string[] {
  const { after, before } = query
  const where: string[] = []
  const cursor = readCursor(query.cursor)
  const last = 'd.last_failed_at'
  if (after !== undefined) where.push(`${last} >= ${momentSql(values.add(after, 'float8'))}`)
  if (before !== undefined) where.push(`${last} < ${momentSql(values.add(before, 'float8'))}`)
  if (cursor !== undefined) {
    const at = momentSql(values.add(cursor.at, 'float8'))
    where.push(`(${last}, d.id) < (${at}, ${values.add(cursor.id, 'uuid')})`)
  }
  const end = Math.min(before ?? Infinity, cursor === undefined ? Infinity : cursor.at + 1)
  if (end < TIMESTAMP_LIMIT) where.push(`d.id < ${values.add(floorId(end), 'uuid')}`)
  return where
}

/** 48 bits of ms: the size of the timestamp in an id. */
const TIMESTAMP_LIMIT = 2 ** 48

function floorId(at: number): string {
  const hex = Math.max(0, Math.ceil(at)).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

function conditions(query: DeadLetterQuery, values: Values): readonly string[] {
  const { key, class: kind, code, type, quarantined, groups, text } = query
  const where: string[] = []
  const same = (column: string, value: unknown, as: string) => {
    if (value !== undefined) where.push(`d.${column} = ${values.add(value, as)}`)
  }
  same('key', key === undefined ? undefined : storable(key, NAME_MAX), 'text')
  same('class', kind, 'text')
  same('code', code, 'text')
  same('type', type, 'text')
  same('is_quarantined', quarantined, 'boolean')
  if (groups !== undefined && isByValue(query)) {
    where.push(`d.group_id = any(${values.add(groups, 'uuid[]')})`)
  }
  if (text !== undefined && (groups !== undefined || isByValue(query))) {
    where.push(`d.message ilike ${values.add(containing(text), 'text')}`)
  }
  const { sources, handler } = query
  if (sources !== undefined && (isByGroup(query) || isByValue(query))) {
    where.push(`d.source_id in (${sourcesOf(query, values)})`)
  }
  if (handler !== undefined && (groups !== undefined || isByValue(query))) {
    where.push(`d.group_id in (${groupsOf({ handler }, values)})`)
  }
  return [...where, ...contentConditions(query, values)]
}

function contentConditions(
  { headers = {}, json = {}, extracted = {} }: DeadLetterQuery,
  values: Values,
): readonly string[] {
  const where: string[] = []
  if (Object.keys(headers).length > 0) {
    where.push(`d.headers @> ${values.add(JSON.stringify(headers), 'jsonb')}`)
  }
  for (const [name, value] of Object.entries(extracted).slice(1)) {
    where.push(`(select l.value from redrive_catalog.dead_letter_lookup l
      where l.dead_letter_id = d.id and l.name = ${values.add(name, 'text')}) = ${values.add(value, 'text')}`)
  }
  for (const [pointer, value] of Object.entries(json)) {
    // Compares a value instead of using `exists`: the planner would turn `exists` into a join with all payloads.
    const path = values.add(pointerSteps(pointer), 'text[]')
    where.push(`(select p.preview #> ${path} from redrive_catalog.dead_letter_payload p
      where p.dead_letter_id = d.id and p.part = 0) = ${values.add(JSON.stringify(value), 'jsonb')}`)
  }
  return where
}
