import type { Pool } from 'pg'
import { explaining } from './database.ts'

/** A week ahead: nothing is missing when upkeep stops for a while. */
export const MAKE_DAYS = `
select redrive_catalog.make_days(array(
  select (now() at time zone 'UTC')::date + ahead from generate_series(0, 7) as ahead)) as made`

/** Days of which no source has to keep anything. */
const OVER = `
select d.day::text as day
  from redrive_catalog.source_day d join redrive_catalog.source s on s.id = d.source_id
  where to_regclass('redrive_catalog.dead_letter_' || to_char(d.day, 'YYYYMMDD')) is not null
  group by d.day having bool_and(d.last_ingested_at <= now() - s.retention) order by d.day`

/** Days of one source that are over while others keep theirs, or that have no partition. */
const OVER_FOR_ONE = `
select d.source_id, d.day::text as day
  from redrive_catalog.source_day d join redrive_catalog.source s on s.id = d.source_id
  where d.last_ingested_at <= now() - s.retention and (d.expired_at is null or d.expired_at < d.last_ingested_at)
  order by d.day limit 1000`

/** 3 days of minutes: what a trend by the minute shows. Hours are kept. It waits for nobody. */
const FORGET_MINUTES = `
delete from redrive_catalog.group_minute where (group_id, minute) in (
  select group_id, minute from redrive_catalog.group_minute
    where minute < now() - interval '3 days' for update skip locked)`

/** A day longer than any dead letter is kept: it is needed only to meet the same one again. */
const FORGET_UNDATED = `
delete from redrive_catalog.undated where seen_at <
  now() - (select coalesce(max(retention), '0') + interval '1 day' from redrive_catalog.source)`

/**
 * A day: what was drained and not released comes again sooner. One that was released and not forgotten
 * must go, or it would be taken for the next of the same content.
 */
const FORGET_UNRELEASED = `
delete from redrive_catalog.unreleased where held_until < now() - interval '1 day'`

/** What is left of dead letters that are gone. Few came back after a replay, fewer were edited before. */
const FORGET_PAST = ['failure_cycle', 'payload_before'].map(
  (table) => `
delete from redrive_catalog.${table} p where not exists (
  select from redrive_catalog.dead_letter d where d.id = p.dead_letter_id)`,
)

const FORGETTING = [FORGET_MINUTES, FORGET_UNDATED, FORGET_UNRELEASED, ...FORGET_PAST]

/** What upkeep did. */
export interface Maintained {
  /** Days that partitions were made for. */
  readonly made: number
  /** Days that were dropped whole. */
  readonly dropped: number
  /** Dead letters that were deleted one by one, because others of their day are kept longer. */
  readonly deleted: number
}

/** 5,000 in one transaction: some tens of ms in which nobody else changes them. */
const DELETE_AT_ONCE = 5_000
/** 200,000 in one call: the next one goes on. */
const DELETE_MOST = 200_000

/** Each step is a transaction of its own: none holds a lock for another. */
export async function maintainAll(pool: Pool): Promise<Maintained> {
  return explaining(async () => {
    const dropped = await dropDays(pool)
    const deleted = await deleteRest(pool)
    const made = await numberOf(pool, MAKE_DAYS, [])
    for (const forget of FORGETTING) await pool.query(forget)
    return { made, dropped, deleted }
  })
}

async function dropDays(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ day: string }>(OVER)
  let dropped = 0
  for (const { day } of rows) {
    dropped += await numberOf(pool, 'select redrive_catalog.drop_day($1)::integer as dropped', [
      day,
    ])
  }
  return dropped
}

async function deleteRest(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ source_id: number; day: string }>(OVER_FOR_ONE)
  let total = 0
  for (const { source_id, day } of rows) {
    for (let deleted = DELETE_AT_ONCE; deleted === DELETE_AT_ONCE && total < DELETE_MOST; ) {
      const values = [source_id, day, DELETE_AT_ONCE]
      deleted = await numberOf(
        pool,
        'select redrive_catalog.delete_some($1, $2, $3) as deleted',
        values,
      )
      total += deleted
    }
  }
  return total
}

async function numberOf(pool: Pool, text: string, values: readonly unknown[]): Promise<number> {
  const { rows } = await pool.query<Record<string, number>>(text, [...values])
  return Object.values(rows[0] ?? {})[0] ?? 0
}
