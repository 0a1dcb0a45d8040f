import { pointerSteps } from '../json-pointer.ts'
import { NAME_MAX, storable } from '../text.ts'
import type { DeadLetterQuery } from './query.ts'
import { containing, momentSql, readCursor, type Values } from './sql.ts'
import { FROM_GROUPS, HANDLER } from './statements.ts'

/** Whether a selective value finds the rows. All other filters are then conditions. */
export const isByValue = ({ key, messageId, extracted = {} }: DeadLetterQuery): boolean =>
  (key ?? messageId) !== undefined || Object.keys(extracted).length > 0

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

/** Returns a statement for the ids of these groups and of all groups that are merged into them. */
export const partsSql = (ids: string): string => `select i.id from unnest(${ids}) as i (id)
    union select p.part_id from redrive_catalog.group_part p where p.group_id = any(${ids})`

function groupsSql({ groups, sources, handler }: DeadLetterQuery, values: Values): string {
  const ids = groups === undefined ? undefined : values.add(groups, 'uuid[]')
  if (sources === undefined && handler === undefined) return partsSql(ids ?? '')
  const where: string[] = []
  if (ids !== undefined) where.push(`g.id in (${partsSql(ids)})`)
  if (sources !== undefined) where.push(`s.name = any(${values.add(sources, 'text[]')})`)
  if (handler !== undefined) where.push(`${HANDLER} = ${values.add(handler, 'text')}`)
  return `select g.id ${FROM_GROUPS} where ${where.join(' and ')}`
}

/**
 * Returns the conditions for the start of the page and for its partitions. An id starts with the time of the first
 * failure in the first cycle. No later failure is before it, so an upper bound on a failure is also a bound on the id.
 */
export function positionConditions(query: DeadLetterQuery, values: Values): readonly string[] {
  const { before, firstBefore = Infinity } = query
  const where: string[] = []
  const after = latest(query.after, query.firstAfter)
  const cursor = readCursor(query.cursor)
  const last = 'd.last_failed_at'
  if (after !== undefined) where.push(`${last} >= ${momentSql(values.add(after, 'float8'))}`)
  if (before !== undefined) where.push(`${last} < ${momentSql(values.add(before, 'float8'))}`)
  if (cursor !== undefined) {
    const at = momentSql(values.add(cursor.at, 'float8'))
    where.push(`(${last}, d.id) < (${at}, ${values.add(cursor.id, 'uuid')})`)
  }
  const cursorEnd = cursor === undefined ? Infinity : cursor.at + 1
  const end = Math.min(before ?? Infinity, firstBefore, cursorEnd)
  if (end < TIMESTAMP_LIMIT) where.push(`d.id < ${values.add(floorId(end), 'uuid')}`)
  return where
}

const latest = (one: number | undefined, other: number | undefined) =>
  one === undefined || other === undefined ? (one ?? other) : Math.max(one, other)

/** 48 bits of ms: the size of the timestamp in an id. */
const TIMESTAMP_LIMIT = 2 ** 48

function floorId(at: number): string {
  const hex = Math.max(0, Math.ceil(at)).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

/** Returns the conditions that no index answers: every row of the scope, or of the value, is compared. */
export function rowConditions(query: DeadLetterQuery, values: Values): readonly string[] {
  const { class: kind, code, type, lane, quarantined, firstAfter, firstBefore } = query
  const { attempts = {}, texts = [] } = query
  const where: string[] = []
  const compare = (column: string, sign: string, value: unknown, as: string) => {
    if (value !== undefined) where.push(`d.${column} ${sign} ${values.add(value, as)}`)
  }
  const same = (column: string, value: unknown, as: string) => compare(column, '=', value, as)
  same('key', storedName(query.key), 'text')
  same('message_id', storedName(query.messageId), 'text')
  same('class', kind, 'text')
  same('code', code, 'text')
  same('type', type, 'text')
  same('lane', lane, 'text')
  compare('attempts', '>=', attempts.from, 'integer')
  compare('attempts', '<=', attempts.to, 'integer')
  same('is_quarantined', quarantined, 'boolean')
  if (firstAfter !== undefined)
    where.push(`d.first_failed_at >= ${momentSql(values.add(firstAfter, 'float8'))}`)
  if (firstBefore !== undefined)
    where.push(`d.first_failed_at < ${momentSql(values.add(firstBefore, 'float8'))}`)
  for (const text of texts) where.push(`d.message ilike ${values.add(containing(text), 'text')}`)
  const { groups, sources, handler } = query
  // Otherwise the scope has them.
  const isScoped = (groups ?? sources ?? handler) !== undefined
  if (isScoped && isByValue(query)) {
    where.push(`d.${scopeColumn(query)} in (${scopeSql(query, values)})`)
  }
  return [...where, ...contentConditions(query, values)]
}

/** Returns the name as it is stored. */
const storedName = (name: string | undefined) =>
  name === undefined ? undefined : storable(name, NAME_MAX)

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
