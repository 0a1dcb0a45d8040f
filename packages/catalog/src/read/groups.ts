import { FAILURE_CLASSES, type FailureClass } from '@redrive/core'
import { OWN_SIGNATURE } from '@redrive/core/internal'
import { Check, isId, PAGE, SOURCES_MAX } from './check.ts'
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

export type GroupState = 'open' | 'muted' | 'resolved'
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

/** The merge of a group into another one. */
export interface GroupMerge {
  /** Id of the group that contains its dead letters now: the last one, if that group was merged, too. */
  readonly group: string
  /** Name of the user. */
  readonly by: string
  /** Epoch ms. */
  readonly at: number
  readonly reason: string
}

/** A group of similar failures of one source. Its counts include the groups that are merged into it. */
export interface FailureGroup {
  readonly id: string
  readonly source: string
  readonly handler: string | undefined
  readonly signature: string
  /** `consumer`: the consumer gave the signature, with its option `signature`. */
  readonly signatureFrom: 'rules' | 'consumer'
  /** Version of the signature rules. Failures with different versions are never in the same group. */
  readonly algorithm: number
  readonly class: FailureClass
  readonly code: string | undefined
  /** Type of the error, e.g. `TypeError`. Undefined: an older release or another library wrote the first dead letter. */
  readonly errorType: string | undefined
  /** First line of the user's code in the stack trace, for unknown failures whose stack trace is kept. */
  readonly frame: string | undefined
  /** Name by a fingerprint rule or a split. Undefined: the signature made the group. */
  readonly name: string | undefined
  /** The name, or the message with its ids, numbers and quoted values replaced. */
  readonly title: string
  /** The message of the first dead letter. */
  readonly sample: string
  readonly state: GroupState
  readonly mutedUntil: number | undefined
  /** Whether the group failed again after it was resolved. */
  readonly regressed: boolean
  readonly regressedAt: number | undefined
  readonly resolvedAt: number | undefined
  readonly owner: string | undefined
  readonly firstSeenAt: number
  readonly lastSeenAt: number
  readonly count: number
  /** Number of dead letters with the status open. */
  readonly openCount: number
  /** Number of dead letters with the status replaying. */
  readonly replayingCount: number
  /** Number of dead letters with the status unknown: a user has to set the outcome of their replay. */
  readonly undecidedCount: number
  /** Attempts of all dead letters that were ever in the group. Divide by `count` for the average. */
  readonly attempts: number
  /** Number of groups that users merged into it, directly or through another group. */
  readonly mergedCount: number
  /** Set if a user merged the group into another one. Lists show only the other one. */
  readonly mergedInto: GroupMerge | undefined
  /** Groups of earlier signature rules with the same failures, at most 20. They keep their state, owner and comments. */
  readonly continues: readonly string[]
  /** The group of later signature rules with the same failures. New dead letters are there. */
  readonly continuedIn: string | undefined
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

interface GroupRow {
  readonly id: string
  readonly source: string
  readonly handler: string | null
  readonly signature: string
  readonly algorithm: number
  readonly class: FailureClass
  readonly code: string | null
  readonly error_type: string | null
  readonly frame: string | null
  readonly name: string | null
  readonly title: string
  readonly sample: string
  readonly state: GroupState
  readonly muted_ms: number | null
  readonly is_regressed: boolean
  readonly regressed_ms: number | null
  readonly resolved_ms: number | null
  readonly owner: string | null
  readonly first_ms: number
  readonly last_ms: number
  readonly count: number
  readonly open_count: number
  readonly replaying_count: number
  readonly undecided_count: number
  readonly attempts: number
  readonly merged_count: number
  readonly merged_into: string | null
  readonly root_id: string | null
  readonly merged_by: string | null
  readonly merged_ms: number | null
  readonly merge_reason: string | null
  readonly continued_in: string | null
  readonly continues: readonly string[]
  readonly position: number
}

function groupOf(row: GroupRow): FailureGroup {
  return {
    id: row.id,
    source: row.source,
    handler: row.handler ?? undefined,
    signature: row.signature,
    signatureFrom: row.signature.startsWith(OWN_SIGNATURE) ? 'consumer' : 'rules',
    algorithm: row.algorithm,
    class: row.class,
    code: row.code ?? undefined,
    errorType: row.error_type ?? undefined,
    frame: row.frame ?? undefined,
    name: row.name ?? undefined,
    title: row.title,
    sample: row.sample,
    state: row.state,
    mutedUntil: row.state === 'muted' ? (row.muted_ms ?? undefined) : undefined,
    regressed: row.is_regressed,
    regressedAt: row.regressed_ms ?? undefined,
    resolvedAt: row.resolved_ms ?? undefined,
    owner: row.owner ?? undefined,
    firstSeenAt: row.first_ms,
    lastSeenAt: row.last_ms,
    count: row.count,
    openCount: row.open_count,
    replayingCount: row.replaying_count,
    undecidedCount: row.undecided_count,
    attempts: row.attempts,
    mergedCount: row.merged_count,
    continues: row.continues,
    continuedIn: row.continued_in ?? undefined,
    mergedInto: mergeOf(row),
  }
}

/** Returns the merge of a group by a user. A part that a rule created has no user. */
function mergeOf(row: GroupRow): GroupMerge | undefined {
  if (row.merged_into === null) return undefined
  return {
    group: row.root_id ?? row.merged_into,
    by: row.merged_by ?? 'redrive',
    at: row.merged_ms ?? 0,
    reason: row.merge_reason ?? '',
  }
}
