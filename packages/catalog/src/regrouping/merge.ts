import { RedriveError } from '@redrive/core'
import { sqlStateOf } from '@redrive/postgres-internal'
import type { Pool } from 'pg'
import { explaining, inTransaction, type RunSql } from '../database.ts'
import { isId } from '../read/check.ts'
import type { FailureGroup } from '../read/failure-group.ts'
import { readGroup } from '../read/groups.ts'
import type { Reader } from '../read/sql.ts'
import { MESSAGE_MAX, NAME_MAX, storable } from '../text.ts'
import {
  ADD_PARTS,
  LOCK_MERGED,
  LOCK_SOURCE,
  MARK_MERGED,
  MARK_SEPARATE,
  MERGE_SETTINGS,
  REMOVE_PARTS,
  REOPEN_MERGED,
  SET_ROOT,
  SOURCE_OF_GROUP,
} from './statements.ts'

export interface MergeRequest {
  /** Ids of the groups to merge into the target, at most 100. They must be groups of its source. */
  readonly groups: readonly string[]
  /** Name of the user. */
  readonly by: string
  /** Why these failures belong together. */
  readonly reason: string
}

export interface RegroupingDeps {
  readonly pool: Pool
  readonly reader: Reader
}

/** 100 groups: more than users select by hand. */
const GROUPS_MAX = 100

/** Merges groups into the target and returns it. */
export async function mergeGroups(
  { pool, reader }: RegroupingDeps,
  target: string,
  request: MergeRequest,
): Promise<FailureGroup> {
  const others = checked(target, request)
  const by = storable(request.by, NAME_MAX)
  const reason = storable(request.reason, MESSAGE_MAX)
  await alone(pool, target, async (run) => {
    const found = await run<GroupRow>(LOCK_MERGED, [[target, ...others]])
    const added = mergeable(target, others, found)
    if (added.length === 0) return
    await run(ADD_PARTS, [target, added])
    await run(MARK_MERGED, [target, added, by, reason])
    await run(SET_ROOT, [target])
    await run(REOPEN_MERGED, [target])
  })
  return requireGroup(reader, target)
}

/** Makes a merged group a separate group again. Groups that were merged into it before stay in it. */
export async function unmergeGroup(
  { pool, reader }: RegroupingDeps,
  id: string,
): Promise<FailureGroup> {
  await alone(pool, id, async (run) => {
    const [found] = await run<GroupRow>(LOCK_MERGED, [[id]])
    if (found === undefined) throw missing([id])
    if (found.merged_by === null) {
      throw conflict(`The group ${id} is not merged into another group. There is nothing to undo.`)
    }
    await run(REMOVE_PARTS, [id])
    await run(MARK_SEPARATE, [id])
    await run(SET_ROOT, [id])
  })
  return requireGroup(reader, id)
}

interface GroupRow {
  readonly id: string
  readonly source_id: number
  readonly source: string
  /** The group that shows its dead letters. Null: it is not merged. */
  readonly root: string | null
  /** Null: it is not merged, or it is a part of a named group. */
  readonly merged_by: string | null
}

function checked(target: string, { groups, by, reason }: MergeRequest): readonly string[] {
  const problems: string[] = []
  const others = [...new Set(groups)]
  const isListed = others.length >= 1 && others.length <= GROUPS_MAX && others.every(isId)
  if (!isListed) problems.push(`groups: expected the ids of 1 to ${GROUPS_MAX} groups`)
  if (others.includes(target)) {
    problems.push(
      `groups: the group ${target} cannot be merged into itself. List only the other groups.`,
    )
  }
  if (by === '') problems.push('by: expected the name of the user')
  if (reason.trim() === '') problems.push('reason: expected why these failures belong together')
  if (problems.length === 0) return others
  throw new RedriveError('POLICY_INVALID', problems.join('\n'), { problems })
}

/** Returns the groups to add. A group that is in the target already needs no change, so a request can be repeated. */
function mergeable(
  target: string,
  others: readonly string[],
  found: readonly GroupRow[],
): readonly string[] {
  const byId = new Map(found.map((row) => [row.id, row]))
  const absent = [target, ...others].filter((id) => !byId.has(id))
  if (absent.length > 0) throw missing(absent)
  const goal = byId.get(target) as GroupRow
  if (goal.root !== null) {
    throw conflict(
      `The group ${target} is merged into ${goal.root}. Merge into that group, or unmerge ${target} first.`,
    )
  }
  for (const { id, source_id, source, root } of found) {
    if (source_id !== goal.source_id) {
      throw conflict(
        `The group ${id} belongs to source "${source}" and the target to source "${goal.source}". Only groups of one source can be merged.`,
      )
    }
    if (root !== null && root !== target) {
      throw conflict(
        `The group ${id} is merged into ${root}. Merge that group, or unmerge ${id} first.`,
      )
    }
  }
  return others.filter((id) => byId.get(id)?.root === null)
}

/** Runs `work` while no ingest and no other merge changes groups of this source. */
export async function alone(
  pool: Pool,
  id: string,
  work: (run: RunSql, sourceId: number) => Promise<void>,
): Promise<void> {
  if (!isId(id)) throw missing([id])
  await explaining(async () => {
    try {
      await inTransaction(
        pool,
        async (run) => {
          const [row] = await run<{ source_id: number }>(SOURCE_OF_GROUP, [id])
          if (row === undefined) throw missing([id])
          await run(LOCK_SOURCE, [row.source_id])
          await work(run, row.source_id)
        },
        MERGE_SETTINGS,
      )
    } catch (error) {
      throw sqlStateOf(error) === LOCK_NOT_AVAILABLE ? busy(error) : error
    }
  })
}

const LOCK_NOT_AVAILABLE = '55P03'

const busy = (cause: unknown) =>
  new RedriveError(
    'CONFLICT',
    'Another change of these groups, such as a batch of the ingest, did not end within 5 s. Nothing was changed. Retry.',
    { cause },
  )

const missing = (ids: readonly string[]) =>
  conflict(`No group has the id ${ids.join(' or ')}. Check the ids with the list of groups.`)

export const conflict = (message: string): RedriveError => new RedriveError('CONFLICT', message)

async function requireGroup(reader: Reader, id: string): Promise<FailureGroup> {
  const found = await readGroup(reader, id)
  if (found === undefined) throw missing([id])
  return found
}
