import type { Pool } from 'pg'
import { query } from '../database.ts'
import { Check, isId, PAGE, SOURCES_MAX } from '../read/check.ts'
import { cursorText, momentSql, msSql, readCursor } from '../read/sql.ts'
import type { PayloadKeys } from '../seal.ts'
import { readChange } from './change.ts'
import type { ReplayChange, RunOptions } from './options.ts'

export type RunState = 'planned' | 'running' | 'paused' | 'done' | 'cancelled' | 'lapsed'

/**
 * What became of one dead letter in a run. `resolved`: its effect is proven. `refailed`: it came back.
 * `unknown`: neither in time, and never repeated without a person. `expired`: it will never be handled.
 */
export type ItemState =
  | 'planned'
  | 'skipped'
  | 'queued'
  | 'claimed'
  | 'publishing'
  | 'published'
  | 'resolved'
  | 'refailed'
  | 'unknown'
  | 'expired'
  | 'cancelled'

export const ITEM_STATES: readonly ItemState[] = [
  'planned',
  'skipped',
  'queued',
  'claimed',
  'publishing',
  'published',
  'resolved',
  'refailed',
  'unknown',
  'expired',
  'cancelled',
]

export type ItemCounts = Readonly<Record<ItemState, number>>

/** A replay run. */
export interface ReplayRun {
  readonly id: string
  readonly source: string
  readonly state: RunState
  /** Over all that decides what goes out; an approval names it. */
  readonly hash: string
  readonly note: string
  readonly selection: unknown
  readonly options: RunOptions
  readonly isChanged: boolean
  readonly plannedBy: string
  readonly plannedAt: number
  readonly approvedBy: string | undefined
  readonly approvedAt: number | undefined
  /** Who let it go on after its last pause. */
  readonly resumedBy: string | undefined
  readonly pausedAt: number | undefined
  readonly pausedBecause: string | undefined
  readonly endedAt: number | undefined
  /** How many items are in each state. */
  readonly counts: ItemCounts
  /** How many were skipped, by reason. */
  readonly skipped: Readonly<Record<string, number>>
}

const COLUMNS = `r.id, s.name as source, r.state, r.hash, r.note, r.asked, r.options, r.change is not null as is_changed,
    r.planned_by, r.approved_by, r.resumed_by, r.paused_because, ${msSql('r.planned_at')} as planned_ms,
    ${msSql('r.approved_at')} as approved_ms, ${msSql('r.paused_at')} as paused_ms, ${msSql('r.ended_at')} as ended_ms,
    ${ITEM_STATES.map((state) => `r.${state}`).join(', ')}`

const FROM = 'from redrive_catalog.replay_run r join redrive_catalog.source s on s.id = r.source_id'

/** The word before the colon: what follows is about that one alone. */
const SKIPPED = `
select split_part(reason, ':', 1) as reason, count(*)::integer as count
  from redrive_catalog.replay_item where run_id = $1 and state = 'skipped' group by 1 order by 1`

export async function readRun(pool: Pool, id: string): Promise<ReplayRun | undefined> {
  if (!isId(id)) return undefined
  const { rows } = await query<RunRow>(pool, `select ${COLUMNS} ${FROM} where r.id = $1`, [id])
  const [row] = rows
  if (row === undefined) return undefined
  const { rows: skipped } = await query<{ reason: string; count: number }>(pool, SKIPPED, [id])
  return runOf(row, Object.fromEntries(skipped.map(({ reason, count }) => [reason, count])))
}

export interface RunQuery {
  /** Name of a source. */
  readonly source?: string
  /** Names of sources, at most 1,000. */
  readonly sources?: readonly string[]
  readonly states?: readonly RunState[]
  /** Most on one page, 1 to 200, default 50. */
  readonly most?: number
  readonly next?: string
}

export interface RunPage {
  /** Without the reasons of those that were skipped: `run(id)` has them. */
  readonly runs: readonly ReplayRun[]
  readonly next: string | undefined
}

const RUN_STATES: readonly RunState[] = [
  'planned',
  'running',
  'paused',
  'done',
  'cancelled',
  'lapsed',
]

/** Newest first. */
export async function readRuns(pool: Pool, asked: RunQuery): Promise<RunPage> {
  const known = { source: true, sources: true, states: true, most: true, next: true } as const
  const check = new Check('runs()', asked, known)
  check.texts('source', 'next')
  check.lists('sources', SOURCES_MAX)
  check.someOf('states', RUN_STATES)
  check.page()
  check.done()
  const { source = null, sources = null, states = RUN_STATES, most = PAGE } = asked
  const cursor = readCursor(asked.next)
  const text = `select ${COLUMNS} ${FROM} where ($1::text is null or s.name = $1) and r.state = any($2)
      and ($6::text[] is null or s.name = any($6))
      and ($3::float8 is null or (r.planned_at, r.id) < (${momentSql('$3')}, $4::uuid))
    order by r.planned_at desc, r.id desc limit $5`
  const values = [source, states, cursor?.at ?? null, cursor?.id ?? null, most + 1, sources]
  const { rows } = await query<RunRow>(pool, text, values)
  const runs = rows.slice(0, most).map((row) => runOf(row, {}))
  const last = runs.at(-1)
  const isMore = rows.length > most && last !== undefined
  return { runs, next: isMore ? cursorText({ at: last.plannedAt, id: last.id }) : undefined }
}

/** One dead letter of a run, and what became of it. */
export interface ReplayItem {
  readonly run: string
  readonly place: number
  readonly deadLetter: string
  readonly replayId: string
  readonly cycle: number
  readonly state: ItemState
  /** Why it was skipped, sent back or given up. */
  readonly reason: string | undefined
  /** The run that has it, when that is why. */
  readonly otherRun: string | undefined
  readonly publishes: number
  readonly publishedAt: number | undefined
  readonly settledAt: number | undefined
  /** What proved it: the consumer's confirmation, its inbox, or a person. */
  readonly proof: string | undefined
}

/** By run, or everything that was ever done with one dead letter. */
export interface ItemQuery {
  readonly run?: string
  readonly deadLetter?: string
  readonly states?: readonly ItemState[]
  readonly most?: number
  /** The place after which to go on, within a run. */
  readonly after?: number
}

const ITEMS = `
select run_id, place, dead_letter_id, replay_id, cycle, state, reason, other_run, publishes, proof,
    ${msSql('published_at')} as published_ms, ${msSql('settled_at')} as settled_ms
  from redrive_catalog.replay_item`

export async function readItems(pool: Pool, asked: ItemQuery): Promise<readonly ReplayItem[]> {
  const known = { run: true, deadLetter: true, states: true, most: true, after: true } as const
  const check = new Check('items()', asked, known)
  check.someOf('states', ITEM_STATES)
  check.page()
  const { run, deadLetter, states = ITEM_STATES, most = PAGE, after = -1 } = asked
  if ([run, deadLetter].filter(isId).length !== 1 || !Number.isSafeInteger(after)) {
    check.problem('expected the id of a run or of a dead letter, and a place to go on after')
  }
  check.done()
  const text =
    run === undefined
      ? `${ITEMS} where dead_letter_id = $1 and state = any($2) order by cycle desc, settled_at desc limit $3`
      : `${ITEMS} where run_id = $1 and state = any($2) and place > $4 order by place limit $3`
  const values = [run ?? deadLetter, states, most, ...(run === undefined ? [] : [after])]
  const { rows } = await query<ItemRow>(pool, text, values)
  return rows.map(itemOf)
}

/** What is changed on the way out; undefined when nothing is. */
export async function readRunChange(
  pool: Pool,
  keys: PayloadKeys | undefined,
  id: string,
): Promise<ReplayChange | undefined> {
  const { rows } = await query<{ change: unknown }>(
    pool,
    'select change from redrive_catalog.replay_run where id = $1',
    [id],
  )
  return readChange(rows[0]?.change ?? null, id, keys)
}

type RunRow = ItemCounts & {
  readonly id: string
  readonly source: string
  readonly state: RunState
  readonly hash: string
  readonly note: string
  readonly asked: unknown
  readonly options: RunOptions
  readonly is_changed: boolean
  readonly planned_by: string
  readonly approved_by: string | null
  readonly resumed_by: string | null
  readonly paused_because: string | null
  readonly planned_ms: number
  readonly approved_ms: number | null
  readonly paused_ms: number | null
  readonly ended_ms: number | null
}

function runOf(row: RunRow, skipped: Readonly<Record<string, number>>): ReplayRun {
  const counts = Object.fromEntries(ITEM_STATES.map((state) => [state, row[state]]))
  return {
    id: row.id,
    source: row.source,
    state: row.state,
    hash: row.hash,
    note: row.note,
    selection: row.asked,
    options: row.options,
    isChanged: row.is_changed,
    plannedBy: row.planned_by,
    plannedAt: row.planned_ms,
    approvedBy: row.approved_by ?? undefined,
    approvedAt: row.approved_ms ?? undefined,
    resumedBy: row.resumed_by ?? undefined,
    pausedAt: row.paused_ms ?? undefined,
    pausedBecause: row.paused_because ?? undefined,
    endedAt: row.ended_ms ?? undefined,
    counts: counts as unknown as ItemCounts,
    skipped,
  }
}

interface ItemRow {
  readonly run_id: string
  readonly place: number
  readonly dead_letter_id: string
  readonly replay_id: string
  readonly cycle: number
  readonly state: ItemState
  readonly reason: string | null
  readonly other_run: string | null
  readonly publishes: number
  readonly proof: string | null
  readonly published_ms: number | null
  readonly settled_ms: number | null
}

const itemOf = (row: ItemRow): ReplayItem => ({
  run: row.run_id,
  place: row.place,
  deadLetter: row.dead_letter_id,
  replayId: row.replay_id,
  cycle: row.cycle,
  state: row.state,
  reason: row.reason ?? undefined,
  otherRun: row.other_run ?? undefined,
  publishes: row.publishes,
  publishedAt: row.published_ms ?? undefined,
  settledAt: row.settled_ms ?? undefined,
  proof: row.proof ?? undefined,
})
