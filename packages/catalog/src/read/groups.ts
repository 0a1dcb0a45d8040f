import { FAILURE_CLASSES, type FailureClass } from '@redrive/core'
import { Check, isId, PAGE, SOURCES_MAX } from './check.ts'
import { type FailureGroup, groupOf, type GroupRow, type GroupState } from './failure-group.ts'
import {
  ask,
  containing,
  cursorText,
  msSql,
  type Reader,
  readCursor,
  type Statement,
  Values,
} from './sql.ts'
import { FROM_WHOLE_GROUPS, GROUP_COLUMNS, GROUP_STATE, HANDLER, WHOLE } from './statements.ts'

const STATES: readonly GroupState[] = ['open', 'muted', 'resolved']

export type GroupOrder = 'last_seen' | 'open_count' | 'count'

/** Filters for groups. A group must match all of them. */
export interface GroupQuery {
  /** Names of sources, at most 1,000. */
  readonly sources?: readonly string[]
  readonly handler?: string
  /** Default: all. A group whose mute has expired is open. */
  readonly states?: readonly GroupState[]
  readonly class?: FailureClass
  readonly regressed?: boolean
  readonly owner?: string
  /** Whether the group has open dead letters. */
  readonly hasOpen?: boolean
  /** Part of the title or first message of the group or a group merged into it, ignoring case. Later messages are not searched. */
  readonly text?: string
  /** Sort order, largest value first. Default `'last_seen'`. */
  readonly order?: GroupOrder
  /** Maximum number of rows (1 to 200, default 50). */
  readonly limit?: number
  /** Cursor from the previous page, with the same order. */
  readonly cursor?: string
}

export interface GroupPage {
  readonly groups: readonly FailureGroup[]
  readonly nextCursor: string | undefined
}

export async function readGroups(reader: Reader, query: GroupQuery): Promise<GroupPage> {
  checkQuery(query)
  const rows = await ask<GroupRow>(reader, compile(query))
  const most = query.limit ?? PAGE
  const last = rows.length > most ? rows[most - 1] : undefined
  const next = last === undefined ? undefined : cursorText({ at: last.position, id: last.id })
  return { groups: rows.slice(0, most).map(groupOf), nextCursor: next }
}

export async function readGroup(reader: Reader, id: string): Promise<FailureGroup | undefined> {
  if (!isId(id)) return undefined
  const text = `select ${GROUP_COLUMNS}, 0 as position ${FROM_WHOLE_GROUPS} where g.id = $1::uuid`
  const [row] = await ask<GroupRow>(reader, { text, values: [id] })
  return row === undefined ? undefined : groupOf(row)
}

/** 1,000 groups: more than users merge by hand. */
const MERGED_MAX = 1_000

/** Returns the groups that users merged into a group, directly or through another group; newest merge first. */
export async function readMergedGroups(
  reader: Reader,
  id: string,
): Promise<readonly FailureGroup[]> {
  if (!isId(id)) return []
  const text = `select ${GROUP_COLUMNS}, 0 as position ${FROM_WHOLE_GROUPS}
    where g.id in (select p.part_id from redrive_catalog.group_part p where p.group_id = $1::uuid) and g.merged_by is not null
    order by g.merged_at desc, g.id limit ${MERGED_MAX}`
  return (await ask<GroupRow>(reader, { text, values: [id] })).map(groupOf)
}

const FIELDS: Readonly<Record<keyof GroupQuery, true>> = {
  sources: true,
  handler: true,
  states: true,
  class: true,
  regressed: true,
  owner: true,
  hasOpen: true,
  text: true,
  order: true,
  limit: true,
  cursor: true,
}

function checkQuery(query: GroupQuery): void {
  const check = new Check('groups()', query, FIELDS)
  check.lists('sources', SOURCES_MAX)
  check.texts('handler', 'owner', 'text', 'cursor')
  check.someOf('states', STATES)
  check.oneOf('class', FAILURE_CLASSES)
  check.booleans('regressed', 'hasOpen')
  check.oneOf('order', Object.keys(ORDERS))
  check.page()
  check.done()
}

/** Sort values as numbers, so that a cursor can contain them. */
const ORDERS: Readonly<Record<GroupOrder, string>> = {
  last_seen: msSql(WHOLE.last_seen_at),
  open_count: `${WHOLE.open_count}::float8`,
  count: `${WHOLE.count}::float8`,
}

/** Compiles a page query. A source has thousands of groups at most, so all of them are read and sorted. */
function compile(query: GroupQuery): Statement {
  const values = new Values()
  const position = ORDERS[query.order ?? 'last_seen']
  const where = ['g.root_id is null', ...conditions(query, values)]
  const cursor = readCursor(query.cursor)
  if (cursor !== undefined) {
    const at = values.add(cursor.at, 'float8')
    where.push(`(${position}, g.id) < (${at}, ${values.add(cursor.id, 'uuid')})`)
  }
  const most = values.add((query.limit ?? PAGE) + 1, 'integer')
  const text = `select ${GROUP_COLUMNS}, ${position} as position ${FROM_WHOLE_GROUPS} where ${where.join(' and ')}
    order by ${position} desc, g.id desc limit ${most}`
  return { text, values: values.all }
}

/** Returns the condition that a group has a part `o` like this. */
const somePart = (condition: string) => `exists (
      select from redrive_catalog.group_part p join redrive_catalog.failure_group o on o.id = p.part_id
        where p.group_id = g.id and ${condition})`

function conditions(query: GroupQuery, values: Values): readonly string[] {
  const { sources, handler, states, regressed, owner, hasOpen, text } = query
  const where: string[] = []
  if (sources !== undefined) where.push(`s.name = any(${values.add(sources, 'text[]')})`)
  if (handler !== undefined) {
    const wanted = values.add(handler, 'text')
    where.push(
      `(${HANDLER} = ${wanted} or ${somePart(`coalesce(o.handler, s.handler) = ${wanted}`)})`,
    )
  }
  if (states !== undefined) where.push(`${GROUP_STATE} = any(${values.add(states, 'text[]')})`)
  if (query.class !== undefined) {
    const wanted = values.add(query.class, 'text')
    where.push(`(g.class = ${wanted} or ${somePart(`o.class = ${wanted}`)})`)
  }
  if (regressed !== undefined) where.push(`g.is_regressed = ${values.add(regressed, 'boolean')}`)
  if (owner !== undefined) where.push(`g.owner = ${values.add(owner, 'text')}`)
  if (hasOpen !== undefined)
    where.push(`(${WHOLE.open_count} > 0) = ${values.add(hasOpen, 'boolean')}`)
  if (text !== undefined) {
    const pattern = values.add(containing(text), 'text')
    const inPart = somePart(`(o.title ilike ${pattern} or o.sample ilike ${pattern})`)
    where.push(`(g.title ilike ${pattern} or g.sample ilike ${pattern} or ${inPart})`)
  }
  return where
}
