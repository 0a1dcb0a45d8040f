import type { DeadLetterSource, ReplayConfirmation } from '@redrive/runtime'
import type { Pool } from 'pg'
import { explaining, inTransaction, type Run } from '../database.ts'
import { isId } from '../read/check.ts'
import { NAME_MAX, storable } from '../text.ts'
import { cancelQueued, conflict } from './lifecycle.ts'
import { expired, reopen, resolved, unknown } from './outcome.ts'
import type { ReplayParts } from './parts.ts'

/** 500 at a time: a transaction of milliseconds. */
const AT_ONCE = 500

export interface Confirmed {
  readonly resolved: number
  readonly expired: number
}

/** Writes down what the consumers said, then lets the broker forget it. `name` is that of the source in the catalog. */
export async function confirm(
  pool: Pool,
  name: string,
  source: DeadLetterSource,
): Promise<Confirmed> {
  const total = { resolved: 0, expired: 0 }
  for (let count = AT_ONCE; count === AT_ONCE; ) {
    const batch = await source.confirmations({ most: AT_ONCE })
    count = batch.confirmations.length
    try {
      const done = await writeDown(pool, name, batch.confirmations)
      total.resolved += done.resolved
      total.expired += done.expired
    } catch (error) {
      await batch.abandon()
      throw error
    }
    await batch.release()
  }
  return total
}

/**
 * Whatever state it has: it may not have been marked yet, be unknown, or be believed to be still queued. Only
 * items of the source that the confirmation was read from: every producer can write one, so a confirmation in
 * one queue must not change a dead letter of another source.
 */
const BY_REPLAY = `
select distinct i.dead_letter_id as id from redrive_catalog.replay_item i
    join redrive_catalog.replay_run r on r.id = i.run_id join redrive_catalog.source s on s.id = r.source_id
  where i.replay_id = any($1::uuid[]) and s.name = $2`
const LOCK = `
select from redrive_catalog.dead_letter where id = any($1::uuid[]) order by id for no key update`

/** Those of which nothing is known yet. */
const UNSETTLED = ['queued', 'claimed', 'publishing', 'published', 'unknown']
/**
 * What may still become so. A copy that failed does not undo the one that succeeded; that a late copy was
 * dropped says nothing about one that came back, or that a person has decided about.
 */
const BEFORE = { resolved: [...UNSETTLED, 'refailed', 'expired'], expired: UNSETTLED }
const CONFIRM = `
update redrive_catalog.replay_item i set state = $2, proof = $3, settled_at = clock_timestamp(), lease_until = null
  from redrive_catalog.replay_run r join redrive_catalog.source s on s.id = r.source_id
  where i.replay_id = any($1::uuid[]) and i.state = any($4) and r.id = i.run_id and s.name = $5
  returning i.dead_letter_id as id`

async function writeDown(
  pool: Pool,
  name: string,
  confirmations: readonly ReplayConfirmation[],
): Promise<Confirmed> {
  const known = confirmations.filter(({ replayId }) => isId(replayId))
  if (known.length === 0) return { resolved: 0, expired: 0 }
  const all = known.map(({ replayId }) => replayId)
  return inTransaction(pool, async (run) => {
    const held = await run<{ id: string }>(BY_REPLAY, [all, name])
    await run(LOCK, [held.map(({ id }) => id)])
    const dropped = known.filter(({ outcome }) => outcome === 'dropped')
    const handled = known.filter(({ outcome }) => outcome !== 'dropped')
    const gone = await settled(run, name, dropped, 'expired')
    const done = await settled(run, name, handled, 'resolved')
    await expired(run, gone, BY_CONSUMER)
    await resolved(run, done, BY_CONSUMER)
    return { resolved: done.length, expired: gone.length }
  })
}

const BY_CONSUMER = 'consumer'

async function settled(
  run: Run,
  name: string,
  confirmations: readonly ReplayConfirmation[],
  state: 'resolved' | 'expired',
): Promise<readonly string[]> {
  if (confirmations.length === 0) return []
  const ids = confirmations.map(({ replayId }) => replayId)
  const values = [ids, state, 'confirmation', BEFORE[state], name]
  const rows = await run<{ id: string }>(CONFIRM, values)
  return rows.map(({ id }) => id)
}

/** Published, and neither confirmed nor back in time. */
const OVERDUE = `
select i.dead_letter_id as id, i.replay_id, case when r.change ? 'force' then null else d.key end as key
  from redrive_catalog.replay_run r
    join redrive_catalog.source s on s.id = r.source_id
    join redrive_catalog.replay_item i on i.run_id = r.id
    left join redrive_catalog.dead_letter d on d.id = i.dead_letter_id
  where s.name = $1 and r.published > 0 and i.state = 'published'
    and i.published_at < clock_timestamp() - (r.options ->> 'confirmWithinMs')::float8 * interval '1 millisecond'
  order by i.dead_letter_id limit ${AT_ONCE}`

const PROVE = `
update redrive_catalog.replay_item i set state = $2, proof = $3, reason = coalesce(i.reason, $4), settled_at = clock_timestamp()
  where i.replay_id = any($1::uuid[]) and i.state = 'published' returning i.dead_letter_id as id`

interface Overdue {
  readonly id: string
  readonly replay_id: string
  readonly key: string | null
}

/** Those that may be out and of which nobody will say more, because their run is over. */
const LEFT_BEHIND = `
update redrive_catalog.replay_item i set state = 'published', lease_until = null, published_at = clock_timestamp()
  from redrive_catalog.replay_run r join redrive_catalog.source s on s.id = r.source_id
  where s.name = $1 and r.state in ('cancelled', 'done') and r.publishing > 0 and i.run_id = r.id
    and i.state = 'publishing' and i.lease_until < clock_timestamp()`

/** Cancelled while a worker had some in hand, which has given them back. */
const UNDONE = `
select r.id from redrive_catalog.replay_run r join redrive_catalog.source s on s.id = r.source_id
  where s.name = $1 and r.state = 'cancelled' and r.queued + r.claimed > 0`

const DONE = `
update redrive_catalog.replay_run r set state = 'done', ended_at = clock_timestamp()
  from redrive_catalog.source s
  where s.id = r.source_id and s.name = $1 and r.state in ('running', 'paused')
    and r.queued + r.claimed + r.publishing + r.published = 0`

const LAPSED = `
update redrive_catalog.replay_run r set state = 'lapsed', ended_at = clock_timestamp()
  from redrive_catalog.source s
  where s.id = r.source_id and s.name = $1 and r.state = 'planned' and r.planned_at < clock_timestamp() - interval '1 hour'`

const WITH_ITS_RUN = { reason: 'cancelled with its run', by: 'redrive' }

/** Which of these business keys were handled. */
export type HandledKeys = (keys: readonly string[]) => Promise<ReadonlySet<string>>

export async function sweep(
  { pool }: ReplayParts,
  source: string,
  handled: HandledKeys | undefined,
): Promise<void> {
  await pool.query(LEFT_BEHIND, [source])
  const { rows: undone } = await pool.query<{ id: string }>(UNDONE, [source])
  for (const { id } of undone) {
    await inTransaction(pool, (run) => cancelQueued(run, id, WITH_ITS_RUN))
  }
  for (let count = AT_ONCE; count === AT_ONCE; ) {
    const { rows } = await pool.query<Overdue>(OVERDUE, [source])
    count = rows.length
    if (count > 0) await settleOverdue(pool, rows, handled)
  }
  await pool.query(DONE, [source])
  await pool.query(LAPSED, [source])
}

/** The inbox is asked once more; whatever it does not know stays unknown until a person says otherwise. */
async function settleOverdue(
  pool: Pool,
  overdue: readonly Overdue[],
  handled: HandledKeys | undefined,
): Promise<void> {
  const keys = overdue.flatMap(({ key }) => (key === null ? [] : [key]))
  const known = (await handled?.(keys)) ?? new Set<string>()
  const isProven = ({ key }: Overdue) => key !== null && known.has(key)
  const proven = overdue.filter(isProven).map(({ replay_id }) => replay_id)
  const others = overdue.filter((one) => !isProven(one)).map(({ replay_id }) => replay_id)
  await inTransaction(pool, async (run) => {
    await run(LOCK, [overdue.map(({ id }) => id)])
    const done = await run<{ id: string }>(PROVE, [proven, 'resolved', 'inbox', null])
    const why = 'neither a confirmation nor a failure came in time'
    const open = await run<{ id: string }>(PROVE, [others, 'unknown', null, why])
    await unknown(
      run,
      open.map(({ id }) => id),
      BY_CONSUMER,
    )
    await resolved(
      run,
      done.map(({ id }) => id),
      'inbox',
    )
  })
}

const DECIDE = `
update redrive_catalog.replay_item set state = $2, proof = $3, reason = $4, settled_at = clock_timestamp()
  where dead_letter_id = any($1::uuid[]) and state = 'unknown' returning dead_letter_id as id`

export interface Decided {
  readonly changed: number
  /** Named, but their outcome is not unknown. */
  readonly skipped: readonly string[]
}

/** A person has found out: it took effect, or it did not and may be replayed again. */
export async function decide(
  pool: Pool,
  ids: readonly string[],
  { as, by }: { readonly as: 'resolved' | 'open'; readonly by: string },
): Promise<Decided> {
  if (!ids.every(isId) || by === '' || !['resolved', 'open'].includes(as)) {
    throw conflict('expected ids of dead letters, resolved or open, and who says so')
  }
  const who = storable(by, NAME_MAX)
  const changed = await explaining(() =>
    inTransaction(pool, async (run) => {
      await run(LOCK, [ids])
      const isDone = as === 'resolved'
      const values = [ids, isDone ? 'resolved' : 'expired', isDone ? `person: ${who}` : null]
      const rows = await run<{ id: string }>(DECIDE, [
        ...values,
        isDone ? null : `reopened by ${who}`,
      ])
      const found = rows.map(({ id }) => id)
      await (isDone ? resolved(run, found, who) : reopen(run, found, who))
      return new Set(found)
    }),
  )
  return { changed: changed.size, skipped: ids.filter((id) => !changed.has(id)) }
}
