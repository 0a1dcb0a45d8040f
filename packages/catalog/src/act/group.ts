import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { query } from '../database.ts'
import { isId } from '../read/check.ts'
import { type FailureGroup, type GroupState, STATE } from '../read/groups.ts'
import { msSql } from '../read/sql.ts'
import { NAME_MAX, storable, storableOrNull } from '../text.ts'

/** Runs a change of one group; answers whether there is such a group. */
async function change(
  pool: Pool,
  id: string,
  set: string,
  values: readonly unknown[] = [],
): Promise<boolean> {
  if (!isId(id)) return false
  const text = `update redrive_catalog.failure_group set ${set} where id = $1::uuid`
  return ((await query(pool, text, [id, ...values])).rowCount ?? 0) > 0
}

/** Its cause is gone. A failure after this moment makes it regressed. */
export const resolveGroup = (pool: Pool, id: string): Promise<boolean> =>
  change(
    pool,
    id,
    `state = 'resolved', resolved_at = now(), is_regressed = false, muted_until = null`,
  )

/** Nobody wants to hear of it, until that moment or until it is unmuted. */
export const mute = (pool: Pool, id: string, until: number | undefined): Promise<boolean> =>
  change(
    pool,
    id,
    `state = 'muted', muted_until = to_timestamp($2::float8 / 1000.0), resolved_at = null`,
    [until ?? null],
  )

/** Open again, whatever it was. */
export const reopen = (pool: Pool, id: string): Promise<boolean> =>
  change(pool, id, `state = 'open', muted_until = null, resolved_at = null`)

export const assign = (pool: Pool, id: string, owner: string | undefined): Promise<boolean> =>
  change(pool, id, 'owner = $2', [storableOrNull(owner, NAME_MAX)])

export interface GroupChange {
  readonly state?: GroupState
  /** With the state `muted`, epoch ms. Default: until it is reopened. */
  readonly mutedUntil?: number
  /** null: nobody. */
  readonly owner?: string | null
}

/** What someone looked at before they chose a change. */
export type SeenGroup = Pick<FailureGroup, 'state' | 'mutedUntil' | 'owner' | 'regressed'>

/** `changed`: it is not what was seen any more, and nothing happened. */
export type GroupChanged = 'done' | 'changed' | 'missing'

const IS_AS_SEEN = `${STATE} = $2::text
    and case when ${STATE} = 'muted' then ${msSql('g.muted_until')} end is not distinct from $3::float8
    and g.owner is not distinct from $4::text and g.is_regressed = $5::boolean`

/** Resolving it forgets a regression: the next failure is a new one. */
const CHANGE = `
update redrive_catalog.failure_group g set
    state = coalesce($6, g.state),
    muted_until = case when $6::text is null then g.muted_until else to_timestamp($7::float8 / 1000.0) end,
    resolved_at = case $6 when 'resolved' then now() when 'open' then null when 'muted' then null else g.resolved_at end,
    is_regressed = g.is_regressed and $6 is distinct from 'resolved',
    owner = case when $8::boolean then $9::text else g.owner end
  where g.id = $1::uuid and ${IS_AS_SEEN}`

/** In one statement: two people who looked at the same group do not undo each other. */
export async function changeGroup(
  pool: Pool,
  id: string,
  { state, mutedUntil, owner }: GroupChange,
  seen: SeenGroup,
): Promise<GroupChanged> {
  if (!isId(id)) return 'missing'
  if (mutedUntil !== undefined && state !== 'muted') {
    const problem = 'mutedUntil: expected only together with the state muted'
    throw new RedriveError('POLICY_INVALID', problem, { problems: [problem] })
  }
  const was = [seen.state, seen.mutedUntil ?? null, seen.owner ?? null, seen.regressed]
  const now = [state ?? null, mutedUntil ?? null, owner !== undefined]
  const text = storableOrNull(owner ?? undefined, NAME_MAX)
  const { rowCount } = await query(pool, CHANGE, [id, ...was, ...now, text])
  if ((rowCount ?? 0) > 0) return 'done'
  const there = await query(pool, 'select from redrive_catalog.failure_group where id = $1', [id])
  return there.rowCount === 0 ? 'missing' : 'changed'
}

export interface Comment {
  readonly id: string
  readonly author: string
  readonly text: string
  readonly writtenAt: number
}

/** 10,000 characters: a page of text. */
const COMMENT_MAX = 10_000
/** 500: the last ones of a long conversation. */
const COMMENTS_MAX = 500

export async function addComment(
  pool: Pool,
  subject: string,
  { author, text }: { readonly author: string; readonly text: string },
): Promise<void> {
  const isFit = isId(subject) && author !== '' && text !== '' && text.length <= COMMENT_MAX
  if (!isFit) {
    const problem = `comment: expected the id of a dead letter or group, an author, and 1 to ${COMMENT_MAX} characters`
    throw new RedriveError('POLICY_INVALID', problem, { problems: [problem] })
  }
  await query(pool, COMMENT, [subject, storable(author, NAME_MAX), storable(text, COMMENT_MAX)])
}

const COMMENT = `insert into redrive_catalog.comment (subject, author, text) values ($1::uuid, $2, $3)`

const COMMENTS = `
select id::text, author, text, (extract(epoch from written_at) * 1000)::bigint::float8 as "writtenAt"
  from (select * from redrive_catalog.comment where subject = $1::uuid order by id desc limit ${COMMENTS_MAX}) c
  order by c.id`

/** Oldest first. */
export async function readComments(pool: Pool, subject: string): Promise<readonly Comment[]> {
  if (!isId(subject)) return []
  return (await query<Comment>(pool, COMMENTS, [subject])).rows
}
