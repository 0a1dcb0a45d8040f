import { pointerSteps } from '../ingest/preview.ts'
import { NAME_MAX, storable } from '../text.ts'
import type { DeadLetterQuery } from './query.ts'
import { containing, momentSql, readCursor, type Values } from './sql.ts'
import { FROM_GROUPS, HANDLER } from './statements.ts'

/** Whether a selective value finds the rows. All other filters are then conditions. */
export const isByValue = ({ key, extracted = {} }: DeadLetterQuery): boolean =>
  key !== undefined || Object.keys(extracted).length > 0

const isByGroup = ({ groups, handler }: DeadLetterQuery) =>
  groups !== undefined || handler !== undefined

/** The column that `scopeSql` selects ids for. */
export const scopeColumn = (query: DeadLetterQuery): 'group_id' | 'source_id' =>
  isByGroup(query) ? 'group_id' : 'source_id'

/** Returns a statement for the ids of the groups, or else of the sources, that can have matching rows. */
export const scopeSql = (query: DeadLetterQuery, values: Values): string =>
  isByGroup(query) ? groupsSql(query, values) : sourcesSql(query, values)

function sourcesSql({ sources }: DeadLetterQuery, values: Values): string {
  const named = sources === undefined ? 'true' : `s.name = any(${values.add(sources, 'text[]')})`
  return `select s.id from redrive_catalog.source s where ${named}`
}

function groupsSql({ groups, sources, handler }: DeadLetterQuery, values: Values): string {
  const ids = groups === undefined ? undefined : values.add(groups, 'uuid[]')
  if (sources === undefined && handler === undefined)
    return `select g.id from unnest(${ids}) g (id)`
  const where: string[] = []
  if (ids !== undefined) where.push(`g.id = any(${ids})`)
  if (sources !== undefined) where.push(`s.name = any(${values.add(sources, 'text[]')})`)
  if (handler !== undefined) where.push(`${HANDLER} = ${values.add(handler, 'text')}`)
  return `select g.id ${FROM_GROUPS} where ${where.join(' and ')}`
}

/**
 * Returns the conditions for the start of the page and for its partitions. An id starts with the first failure
 * time. This is never after the last failure, so a bound on the last failure is also a bound on the id.
 */
export function positionConditions(query: DeadLetterQuery, values: Values): readonly string[] {
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

/** Returns the conditions that no index answers: every row of the scope, or of the value, is compared. */
export function rowConditions(query: DeadLetterQuery, values: Values): readonly string[] {
  const { key, class: kind, code, type, quarantined, text } = query
  const where: string[] = []
  const same = (column: string, value: unknown, as: string) => {
    if (value !== undefined) where.push(`d.${column} = ${values.add(value, as)}`)
  }
  same('key', key === undefined ? undefined : storable(key, NAME_MAX), 'text')
  same('class', kind, 'text')
  same('code', code, 'text')
  same('type', type, 'text')
  same('is_quarantined', quarantined, 'boolean')
  if (text !== undefined) where.push(`d.message ilike ${values.add(containing(text), 'text')}`)
  const { groups, sources, handler } = query
  // Otherwise the scope has them.
  const isScoped = (groups ?? sources ?? handler) !== undefined
  if (isScoped && isByValue(query)) {
    where.push(`d.${scopeColumn(query)} in (${scopeSql(query, values)})`)
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
