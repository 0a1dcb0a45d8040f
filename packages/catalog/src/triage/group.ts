import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { query } from '../database.ts'
import { isId } from '../read/check.ts'
import type { FailureGroup, GroupState } from '../read/failure-group.ts'
import { NAME_MAX, storable, storableOrNull } from '../text.ts'
import {
  ASSIGN_GROUP,
  CHANGE_GROUP,
  GROUP_EXISTS,
  INSERT_COMMENT,
  MUTE_GROUP,
  NEWEST_COMMENTS,
  REOPEN_GROUP,
  RESOLVE_GROUP,
} from './statements.ts'

/** Changes one group. Returns whether the group exists. */
async function change(
  pool: Pool,
  id: string,
  statement: string,
  values: readonly unknown[] = [],
): Promise<boolean> {
  if (!isId(id)) return false
  return ((await query(pool, statement, [id, ...values])).rowCount ?? 0) > 0
}

/** Marks the group as resolved. A later failure marks it as regressed. */
export const resolveGroup = (pool: Pool, id: string): Promise<boolean> =>
  change(pool, id, RESOLVE_GROUP)

/** Mutes the alerts of the group until a timestamp, or until the group is reopened. */
export const mute = (pool: Pool, id: string, until: number | undefined): Promise<boolean> =>
  change(pool, id, MUTE_GROUP, [until ?? null])

/** Sets the group to open, whatever its state is. */
export const reopen = (pool: Pool, id: string): Promise<boolean> => change(pool, id, REOPEN_GROUP)

export const assign = (pool: Pool, id: string, owner: string | undefined): Promise<boolean> =>
  change(pool, id, ASSIGN_GROUP, [storableOrNull(owner, NAME_MAX)])

export interface GroupChange {
  readonly state?: GroupState
  /** End of the mute in epoch ms; only with the state `muted`. Default: until the group is reopened. */
  readonly mutedUntil?: number
  /** null removes the owner. */
  readonly owner?: string | null
}

/** The values of the group that the user saw before the change. */
export type GroupVersion = Pick<FailureGroup, 'state' | 'mutedUntil' | 'owner' | 'regressed'>

/**
 * `changed`: the group no longer equals what the user saw. `merged`: it is part of another group, whose state applies.
 * Nothing was changed in both cases.
 */
export type GroupChangeResult = 'done' | 'changed' | 'merged' | 'missing'

/** Changes a group in one statement. Two users who saw the same state cannot overwrite each other's change. */
export async function changeGroup(
  pool: Pool,
  id: string,
  { state, mutedUntil, owner }: GroupChange,
  seen: GroupVersion,
): Promise<GroupChangeResult> {
  if (!isId(id)) return 'missing'
  if (mutedUntil !== undefined && state !== 'muted') {
    const problem = 'mutedUntil: allowed only with the state "muted"'
    throw new RedriveError('POLICY_INVALID', problem, { problems: [problem] })
  }
  const before = [seen.state, seen.mutedUntil ?? null, seen.owner ?? null, seen.regressed]
  const after = [state ?? null, mutedUntil ?? null, owner !== undefined]
  const newOwner = storableOrNull(owner ?? undefined, NAME_MAX)
  const { rowCount } = await query(pool, CHANGE_GROUP, [id, ...before, ...after, newOwner])
  if ((rowCount ?? 0) > 0) return 'done'
  const { rows } = await query<{ is_merged: boolean }>(pool, GROUP_EXISTS, [id])
  const [found] = rows
  if (found === undefined) return 'missing'
  return found.is_merged ? 'merged' : 'changed'
}

export interface Comment {
  readonly id: string
  readonly author: string
  readonly text: string
  readonly writtenAt: number
}

/** 10,000 characters: several pages of text. */
const COMMENT_MAX = 10_000
/** 500: the newest comments of a long conversation. */
const COMMENTS_MAX = 500

export async function addComment(
  pool: Pool,
  subject: string,
  { author, text }: { readonly author: string; readonly text: string },
): Promise<void> {
  const isValid = isId(subject) && author !== '' && text !== '' && text.length <= COMMENT_MAX
  if (!isValid) {
    const problem = `comment: expected the id of a dead letter or group, an author, and a text of 1 to ${COMMENT_MAX} characters`
    throw new RedriveError('POLICY_INVALID', problem, { problems: [problem] })
  }
  await query(pool, INSERT_COMMENT, [
    subject,
    storable(author, NAME_MAX),
    storable(text, COMMENT_MAX),
  ])
}

/** Returns the newest comments, oldest first. */
export async function readComments(pool: Pool, subject: string): Promise<readonly Comment[]> {
  if (!isId(subject)) return []
  return (await query<Comment>(pool, NEWEST_COMMENTS, [subject, COMMENTS_MAX])).rows
}
