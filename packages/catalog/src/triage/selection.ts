import { randomUUID } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { explaining, inTransaction, query, type RunSql } from '../database.ts'
import { isId } from '../read/check.ts'
import { compileDeadLetters } from '../read/compile.ts'
import { checkDeadLetterQuery, type DeadLetterQuery } from '../read/query.ts'
import type { Change } from '../status.ts'
import { NAME_MAX, storable } from '../text.ts'
import { changeLocked } from './discard.ts'
import {
  FIND_SELECTION,
  INSERT_SELECTION,
  LOCK_SELECTED,
  MARK_SELECTED,
  SELECTED_COUNTS,
  SELECTED_SKIPPED,
  SELECTION_SETTINGS,
  selectItems,
} from './statements.ts'

/** The purpose of a selection. */
export type SelectionAction = 'discard' | 'restore'

export interface SelectionRequest {
  readonly action: SelectionAction
  /** `statuses`, `limit` and `cursor` are not allowed: a discard selects open dead letters, a restore discarded ones. */
  readonly query: DeadLetterQuery
  /** Name of the user. */
  readonly by: string
}

/** A fixed list of dead letters. Dead letters that fail later are not part of it. */
export interface FrozenSelection {
  readonly id: string
  readonly action: SelectionAction
  /** A confirmation contains this hash. */
  readonly hash: string
  readonly count: number
  /** Names of the sources of the dead letters. */
  readonly sources: readonly string[]
  readonly selectedBy: string
  /** Epoch ms. After one hour the selection cannot be confirmed any more. */
  readonly selectedAt: number
}

export interface SelectionConfirmation {
  readonly hash: string
  /** Name of the user, who must be the user who selected. */
  readonly by: string
}

export interface SelectionResult {
  readonly changed: number
  /** Number of dead letters that have changed since they were selected. They are left as they are. */
  readonly skippedCount: number
  /** Ids of the first 1,000 skipped dead letters. */
  readonly skipped: readonly string[]
}

const CHANGES: Readonly<Record<SelectionAction, Change>> = {
  discard: { from: ['open'], to: 'discarded' },
  restore: { from: ['discarded'], to: 'open' },
}

/** 100,000, as for a replay: one transaction stores them in seconds. */
const ITEMS_MAX = 100_000
/** 1,000 rows per transaction: it bounds how long other writers wait for the counts of the group. */
const BATCH_SIZE = 1_000
/** 1,000 ids: the number that a request can select by id. */
const SKIPPED_MAX = 1_000
/** One hour, as for a plan. */
const VALID_MS = 3_600_000

/** Stores the dead letters that match now, with their versions. Changes nothing and locks nothing. */
export async function select(pool: Pool, request: SelectionRequest): Promise<FrozenSelection> {
  check(request)
  const id = randomUUID()
  await explaining(() => inTransaction(pool, (run) => store(run, id, request), SELECTION_SETTINGS))
  return (await findSelection(pool, id)) as FrozenSelection
}

function check({ action, query: filter, by }: SelectionRequest): void {
  checkDeadLetterQuery(filter)
  const problems: string[] = []
  if (!Object.hasOwn(CHANGES, action)) problems.push('action: expected "discard" or "restore"')
  const { statuses, limit, cursor } = filter
  if ([statuses, limit, cursor].some((one) => one !== undefined))
    problems.push('query: "statuses", "limit" and "cursor" are not allowed in a selection')
  if (by === '') problems.push('by: expected the name of the user')
  if (problems.length > 0) throw invalid(problems)
}

async function store(run: RunSql, id: string, { action, query: filter, by }: SelectionRequest) {
  const statuses = CHANGES[action].from
  const { text, values } = compileDeadLetters({ ...filter, statuses, limit: ITEMS_MAX })
  const [found] = await run<{ count: number; hash: string; sources: readonly string[] }>(
    selectItems(text, values.length + 1),
    [...values, id],
  )
  const { count = 0, hash, sources } = found ?? {}
  if (count === 0) throw invalid(['The selection has no dead letters.'])
  if (count > ITEMS_MAX) {
    const most = ITEMS_MAX.toLocaleString('en')
    throw invalid([
      `The selection has more than ${most} dead letters. Narrow it, for example by time.`,
    ])
  }
  const asked = JSON.stringify(filter)
  await run(INSERT_SELECTION, [id, action, hash, asked, sources, count, storable(by, NAME_MAX)])
}

const invalid = (problems: readonly string[]) =>
  new RedriveError('POLICY_INVALID', problems.join('\n'), { problems })

/** Returns a selection, or undefined if it does not exist. */
export async function findSelection(pool: Pool, id: string): Promise<FrozenSelection | undefined> {
  if (!isId(id)) return undefined
  return (await query<FrozenSelection>(pool, FIND_SELECTION, [id])).rows[0]
}

/**
 * Applies a selection. It changes exactly the selected dead letters that have the same version as then. After an
 * interruption, a second call continues, and its result covers the whole selection.
 */
export async function applySelection(
  pool: Pool,
  action: SelectionAction,
  id: string,
  confirmation: SelectionConfirmation,
): Promise<SelectionResult> {
  const found = await findSelection(pool, id)
  refuse(found, action, confirmation)
  const by = storable(confirmation.by, NAME_MAX)
  return explaining(async () => {
    while (await applyBatch(pool, CHANGES[action], id, by)) continue
    const { rows: counts } = await query<{ changed: number; skipped: number }>(
      pool,
      SELECTED_COUNTS,
      [id],
    )
    const { rows: skipped } = await query<{ id: string }>(pool, SELECTED_SKIPPED, [id, SKIPPED_MAX])
    return {
      changed: counts[0]?.changed ?? 0,
      skippedCount: counts[0]?.skipped ?? 0,
      skipped: skipped.map((one) => one.id),
    }
  })
}

function refuse(
  found: FrozenSelection | undefined,
  action: SelectionAction,
  { hash, by }: SelectionConfirmation,
): void {
  if (found === undefined || found.selectedBy !== storable(by, NAME_MAX)) {
    throw conflict('The selection does not exist, or another user created it. Select again.')
  }
  if (found.action !== action) {
    throw conflict(`The selection is for "${found.action}" and cannot be used for "${action}".`)
  }
  if (found.hash !== hash)
    throw conflict('The hash is not the hash of this selection. Select again.')
  if (Date.now() - found.selectedAt > VALID_MS) {
    throw conflict('The selection is older than one hour. Select again.')
  }
}

const conflict = (message: string) => new RedriveError('CONFLICT', message)

/** Changes the next items. Returns whether there were any. */
async function applyBatch(pool: Pool, change: Change, id: string, by: string): Promise<boolean> {
  return inTransaction(pool, async (run) => {
    const items = await run<{ id: string; is_same: boolean }>(LOCK_SELECTED, [
      id,
      change.from[0],
      BATCH_SIZE,
    ])
    if (items.length === 0) return false
    const same = items.filter(({ is_same }) => is_same).map((one) => one.id)
    await changeLocked(run, change, same, by)
    await run(MARK_SELECTED, [id, items.map((one) => one.id), same])
    return true
  })
}
