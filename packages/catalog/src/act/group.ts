import { RedriveError } from '@redrive/core'
import type { Pool, QueryResult, QueryResultRow } from 'pg'
import { explaining } from '../database.ts'
import { isId } from '../read/check.ts'
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
  return ((await ask(pool, text, [id, ...values])).rowCount ?? 0) > 0
}

async function ask<R extends object>(
  pool: Pool,
  text: string,
  values: readonly unknown[],
): Promise<QueryResult<R & QueryResultRow>> {
  return explaining(() => pool.query<R & QueryResultRow>(text, [...values]))
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
  await ask(pool, COMMENT, [subject, storable(author, NAME_MAX), storable(text, COMMENT_MAX)])
}

const COMMENT = `insert into redrive_catalog.comment (subject, author, text) values ($1::uuid, $2, $3)`

const COMMENTS = `
select id::text, author, text, (extract(epoch from written_at) * 1000)::bigint::float8 as "writtenAt"
  from (select * from redrive_catalog.comment where subject = $1::uuid order by id desc limit ${COMMENTS_MAX}) c
  order by c.id`

/** Oldest first. */
export async function readComments(pool: Pool, subject: string): Promise<readonly Comment[]> {
  if (!isId(subject)) return []
  return (await ask<Comment>(pool, COMMENTS, [subject])).rows
}
