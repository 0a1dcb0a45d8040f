import type { Pool } from 'pg'
import { inTransaction } from '../database.ts'
import { NAME_MAX, storable } from '../text.ts'
import type { Claim } from './claim.ts'
import { pauseRun } from './lifecycle.ts'

/** 5 times: what the broker does not confirm so often, it does not confirm at all. */
const PUBLISHES_MAX = 5
/** 3 turns in which nothing could be published: the target is gone. */
const FAILING_TURNS_MAX = 3

/** It may be out, although the broker did not say so: the next time it has the same replay id. */
const RETURN = `
update redrive_catalog.replay_item i set lease_until = null, reason = f.reason,
    state = case when i.publishes < ${PUBLISHES_MAX} then 'queued' else 'published' end,
    published_at = case when i.publishes < ${PUBLISHES_MAX} then null else clock_timestamp() end
  from unnest($3::integer[], $4::text[]) as f (place, reason)
  where i.run_id = $1 and i.lease_token = $2 and i.place = f.place and i.state = 'publishing'`

/** Begun or not, and certainly not out. */
const UNSENT = `
update redrive_catalog.replay_item set lease_until = null, state = 'queued',
    publishes = publishes - case state when 'publishing' then 1 else 0 end
  where run_id = $1 and lease_token = $2 and place = any($3::integer[]) and state in ('claimed', 'publishing')`

export async function returnUnsent(
  pool: Pool,
  { runId, token }: Claim,
  places: readonly number[],
): Promise<void> {
  if (places.length > 0) await pool.query(UNSENT, [runId, token, places])
}

const FAILING = `
update redrive_catalog.replay_run set failing_turns = failing_turns + 1 where id = $1 returning failing_turns`
const WORKING = `update redrive_catalog.replay_run set failing_turns = 0 where id = $1 and failing_turns > 0`

export interface FailedPublish {
  readonly place: number
  readonly error: unknown
}

/** What the broker did not take goes back to the queue; a run of which nothing is taken pauses. */
export async function returnFailed(
  pool: Pool,
  { runId, token }: Claim,
  failed: readonly FailedPublish[],
  isAll: boolean,
): Promise<void> {
  if (failed.length === 0) return void (await pool.query(WORKING, [runId]))
  const reasons = failed.map(({ error }) => storable(textOf(error), NAME_MAX))
  await inTransaction(pool, async (run) => {
    await run(RETURN, [runId, token, failed.map(({ place }) => place), reasons])
    if (!isAll) return
    const [row] = await run<{ failing_turns: number }>(FAILING, [runId])
    if ((row?.failing_turns ?? 0) >= FAILING_TURNS_MAX) {
      await pauseRun(run, runId, `The source takes nothing: ${reasons[0]}`)
    }
  })
}

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
