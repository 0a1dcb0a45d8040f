import type { Pool } from 'pg'
import { query } from '../../database.ts'
import { Check, isId, PAGE, SOURCES_MAX } from '../../read/check.ts'
import { cursorText, readCursor } from '../../read/sql.ts'
import type { PayloadKeys } from '../../encryption.ts'
import { readChange } from './payload-change.ts'
import type { ReplayChange, RunOptions } from './options.ts'
import {
  CHANGE_OF_RUN,
  ITEMS_OF_DEAD_LETTER,
  ITEMS_OF_RUN,
  RUN,
  RUNS,
  SKIPPED,
} from './statements.ts'
import {
  ITEM_STATES,
  type ItemCounts,
  type ItemState,
  RUN_STATES,
  type RunState,
} from './states.ts'

/** A replay run. */
export interface ReplayRun {
  readonly id: string
  readonly source: string
  readonly state: RunState
  /** Hash of everything that determines what is published. An approval must contain it. */
  readonly hash: string
  readonly note: string
  readonly selection: unknown
  readonly options: RunOptions
  readonly isChanged: boolean
  readonly plannedBy: string
  readonly plannedAt: number
  readonly approvedBy: string | undefined
  readonly approvedAt: number | undefined
  /** The user who resumed it after its last pause. */
  readonly resumedBy: string | undefined
  readonly pausedAt: number | undefined
  readonly pauseReason: string | undefined
  readonly endedAt: number | undefined
  /** Number of items in each state. */
  readonly counts: ItemCounts
  /** Number of skipped items, by reason. */
  readonly skipped: Readonly<Record<string, number>>
}

export async function readRun(pool: Pool, id: string): Promise<ReplayRun | undefined> {
  if (!isId(id)) return undefined
  const { rows } = await query<RunRow>(pool, RUN, [id])
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
  /** Maximum number of rows (1 to 200, default 50). */
  readonly limit?: number
  readonly cursor?: string
}

export interface RunPage {
  /** Runs without the reasons of skipped items. `run(id)` returns these reasons. */
  readonly runs: readonly ReplayRun[]
  readonly nextCursor: string | undefined
}

const RUN_FILTERS: Readonly<Record<keyof RunQuery, true>> = {
  source: true,
  sources: true,
  states: true,
  limit: true,
  cursor: true,
}

/** Returns a page of runs, newest first. */
export async function readRuns(pool: Pool, filter: RunQuery): Promise<RunPage> {
  const check = new Check('runs()', filter, RUN_FILTERS)
  check.texts('source', 'cursor')
  check.lists('sources', SOURCES_MAX)
  check.someOf('states', RUN_STATES)
  check.page()
  check.done()
  const { source = null, sources = null, states = RUN_STATES, limit = PAGE } = filter
  const cursor = readCursor(filter.cursor)
  const values = [source, states, cursor?.at ?? null, cursor?.id ?? null, limit + 1, sources]
  const { rows } = await query<RunRow>(pool, RUNS, values)
  const runs = rows.slice(0, limit).map((row) => runOf(row, {}))
  const last = runs.at(-1)
  const isMore = rows.length > limit && last !== undefined
  return { runs, nextCursor: isMore ? cursorText({ at: last.plannedAt, id: last.id }) : undefined }
}

/** One dead letter of a run, with its outcome. */
export interface ReplayItem {
  readonly run: string
  readonly position: number
  readonly deadLetter: string
  readonly replayId: string
  readonly cycle: number
  readonly state: ItemState
  /** Why it was skipped, returned to the queue or not replayed. */
  readonly reason: string | undefined
  /** The other run that contains it, if this is the reason. */
  readonly otherRun: string | undefined
  readonly publishCount: number
  readonly publishedAt: number | undefined
  readonly settledAt: number | undefined
  /** What confirmed it: the consumer's confirmation, its inbox, a new dead letter or a user. */
  readonly confirmedBy: string | undefined
  /** Facts of the dead letter; undefined after retention deleted it. */
  readonly key: string | undefined
  readonly message: string | undefined
  readonly group: string | undefined
}

/** Filters for items: all items of one run, or of one dead letter in all runs. */
export interface ItemQuery {
  readonly run?: string
  readonly deadLetter?: string
  readonly states?: readonly ItemState[]
  readonly limit?: number
  /** Returns items after this position; only for the items of a run. */
  readonly after?: number
}

const ITEM_FILTERS: Readonly<Record<keyof ItemQuery, true>> = {
  run: true,
  deadLetter: true,
  states: true,
  limit: true,
  after: true,
}

export async function readItems(pool: Pool, filter: ItemQuery): Promise<readonly ReplayItem[]> {
  const check = new Check('items()', filter, ITEM_FILTERS)
  check.someOf('states', ITEM_STATES)
  check.page()
  const { run, deadLetter, states = ITEM_STATES, limit = PAGE, after = -1 } = filter
  if ([run, deadLetter].filter(isId).length !== 1 || !Number.isSafeInteger(after)) {
    check.problem('expected the id of either "run" or "deadLetter", and a whole number for "after"')
  }
  check.done()
  const text = run === undefined ? ITEMS_OF_DEAD_LETTER : ITEMS_OF_RUN
  const values = [run ?? deadLetter, states, limit, ...(run === undefined ? [] : [after])]
  const { rows } = await query<ItemRow>(pool, text, values)
  return rows.map(itemOf)
}

/** Returns the change that a run makes to its messages, or undefined if it makes none. */
export async function readRunChange(
  pool: Pool,
  keys: PayloadKeys | undefined,
  id: string,
): Promise<ReplayChange | undefined> {
  const { rows } = await query<{ change: unknown }>(pool, CHANGE_OF_RUN, [id])
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
    pauseReason: row.paused_because ?? undefined,
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
  readonly key: string | null
  readonly message: string | null
  readonly group_id: string | null
}

const itemOf = (row: ItemRow): ReplayItem => ({
  run: row.run_id,
  position: row.place,
  deadLetter: row.dead_letter_id,
  replayId: row.replay_id,
  cycle: row.cycle,
  state: row.state,
  reason: row.reason ?? undefined,
  otherRun: row.other_run ?? undefined,
  publishCount: row.publishes,
  publishedAt: row.published_ms ?? undefined,
  settledAt: row.settled_ms ?? undefined,
  confirmedBy: row.proof ?? undefined,
  key: row.key ?? undefined,
  message: row.message ?? undefined,
  group: row.group_id ?? undefined,
})
