/**
 * The protocol. All times come from the database. The settings of the functions allow only the indexed plan,
 * so the plan does not depend on statistics. It is therefore made once per connection: planning takes longer
 * than execution.
 *
 * Rows are found by id with `id = any (array[…])`, not by a join on equality. PostgreSQL could reverse such a join:
 * it would read an empty table completely, and still do so when the table is full.
 */
export const INDEXED = `
set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_sort = off set enable_material = off`

/**
 * The history of a row, or null without one. The expression is repeated in each claim: a function with the
 * row as argument would read its payload.
 */
export const PAST = `case when o.attempts = 0 and o.lapses = 0 and o.generation = 0 and o.cycle is null
        and o.replay_id is null and o.failure_history = '[]' then null
      else jsonb_build_object(
        'attempts', o.attempts, 'lapses', o.lapses, 'generation', o.generation, 'replayId', o.replay_id,
        'closedCycles', jsonb_array_length(o.failure_history), 'cycle', o.cycle,
        'firstFailedAt', (extract(epoch from o.first_failed_at) * 1000)::bigint) end`

/** Condition: the row is due, and no consumer has a lease on it. */
export const IS_READY = `(o.due_at <= now() and (o.lease_until is null or o.lease_until < now()))`

/** The same condition for rows found by id, written so that the index of unfinished rows cannot be used. */
export const IS_READY_BY_ID = `(coalesce(o.due_at, 'infinity') <= now() and (o.lease_until is null or o.lease_until < now()))`

export const TAKE = `update redrive.outbox o
      set status = 'in_flight', lease_until = now() + lease, lease_token = new_token,
        lapses = o.lapses + (o.status = 'in_flight')::integer`

export const NO_ROW = `null::bigint, null::timestamptz, null, null, null, null, null::jsonb, null::bytea, null::jsonb`

/** 1,000 lanes per turn; with more lanes, the next turn continues after them. */
export const LANES_AT_ONCE = 1_000
