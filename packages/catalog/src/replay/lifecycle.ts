import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { explaining, inTransaction, type Run } from '../database.ts'
import { isId } from '../read/check.ts'
import { NAME_MAX, storable } from '../text.ts'
import { refuseFrozen } from './epoch.ts'
import { reopen } from './outcome.ts'
import type { RunState } from './runs.ts'

/** An hour: what was true when it was planned may not be any more. */
const PLAN_LIFE = `interval '1 hour'`

const LOCK_RUN = `
select state, hash, planned_by, planned_at < clock_timestamp() - ${PLAN_LIFE} as is_stale
  from redrive_catalog.replay_run where id = $1 for update`

interface LockedRun {
  readonly state: RunState
  readonly hash: string
  readonly planned_by: string
  readonly is_stale: boolean
}

/**
 * The dead letters are locked in the order of their ids, as everywhere. Of two approvals that want the
 * same one, the second waits here and then sees that it is taken.
 */
const LOCK_PLANNED = `
select d.id from redrive_catalog.dead_letter d
  where d.id = any(array(select dead_letter_id from redrive_catalog.replay_item where run_id = $1 and state = 'planned'))
  order by d.id for no key update`
/** A statement of its own, which sees what the lock waited for; joined by index, however little the planner knows. */
const TAKE = `
update redrive_catalog.dead_letter d set status = 'replaying', version = d.version + 1,
    settled_at = clock_timestamp(), settled_by = $2
  from redrive_catalog.replay_item i
  where i.run_id = $1 and i.state = 'planned' and d.id = i.dead_letter_id and d.status = 'open' and d.version = i.version
  returning i.place`

const QUEUE = `
update redrive_catalog.replay_item i set
    state = case when t.place is null then 'skipped' else 'queued' end,
    other_run = o.run_id,
    reason = case when t.place is not null then null when o.run_id is null then 'changed' else 'in_run' end
  from redrive_catalog.replay_item p
    left join unnest($2::integer[]) as t (place) on t.place = p.place
    left join redrive_catalog.replay_item o on t.place is null and o.dead_letter_id = p.dead_letter_id
      and o.state in ('queued', 'claimed', 'publishing', 'published', 'unknown')
  where p.run_id = $1 and p.state = 'planned' and i.run_id = p.run_id and i.place = p.place`

const START = `
update redrive_catalog.replay_run set approved_by = $2, approved_at = clock_timestamp(), resumed_at = clock_timestamp(),
    state = case when queued > 0 then 'running' else 'done' end,
    ended_at = case when queued > 0 then null else clock_timestamp() end
  where id = $1`

export interface Approval {
  /** Of the run, as the approver saw it. */
  readonly hash: string
  readonly by: string
}

/** `'another_person'`: who planned a run does not approve it. */
export type ApprovalRule = 'another_person' | 'anyone'

/** Takes what is still as it was planned; the rest is skipped and says why. */
export async function approve(
  pool: Pool,
  id: string,
  { hash, by }: Approval,
  rule: ApprovalRule,
): Promise<void> {
  await change(pool, id, async (run, locked) => {
    expectState(locked, 'planned', 'approved')
    refuseApproval(locked, { hash, by }, rule)
    await start(run, id, by)
  })
}

/** The same without a person, if it is still allowed; someone else may have come first. */
export async function approveWithoutPerson(
  pool: Pool,
  id: string,
  { hash, by }: Approval,
  rule: ApprovalRule,
  isAllowed: (run: Run) => Promise<boolean>,
): Promise<void> {
  await change(pool, id, async (run, locked) => {
    if (locked.state !== 'planned' || !(await isAllowed(run))) return
    refuseApproval(locked, { hash, by }, rule)
    await start(run, id, by)
  })
}

async function start(run: Run, id: string, by: string): Promise<void> {
  await refuseFrozen(run)
  await run(LOCK_PLANNED, [id])
  const taken = await run<{ place: number }>(TAKE, [id, who(by)])
  await run(QUEUE, [id, taken.map(({ place }) => place)])
  await run(START, [id, who(by)])
}

function refuseApproval(locked: LockedRun, { hash, by }: Approval, rule: ApprovalRule): void {
  if (locked.is_stale) {
    throw conflict(
      'The plan is older than an hour. Plan it again: its dead letters may have changed.',
    )
  }
  if (locked.hash !== hash) {
    throw conflict(
      'The approval is for another plan. Look at the run as it is now, and approve its hash.',
    )
  }
  if (who(by) === '') throw conflict('by: expected who approves')
  if (rule === 'another_person' && who(by) === locked.planned_by) {
    throw new RedriveError(
      'NEEDS_ANOTHER_PERSON',
      'A run is approved by another person than the one who planned it.',
    )
  }
}

/** What is claimed is not out yet, and does not go out: beginning to publish asks for a run that is running. */
const PAUSE = `
update redrive_catalog.replay_run set state = 'paused', paused_at = clock_timestamp(), paused_because = $2
  where id = $1 and state = 'running' and ($3::timestamptz is null or resumed_at = $3) returning id`

/** Nothing more goes out until it is resumed; what is out settles. */
export async function pause(pool: Pool, id: string, because: string): Promise<void> {
  await change(pool, id, async (run, locked) => {
    expectState(locked, 'running', 'paused')
    await pauseRun(run, id, because)
  })
}

/** False: it was not running, or was resumed again since `resumedAt`. */
export async function pauseRun(
  run: Run,
  id: string,
  because: string,
  resumedAt: string | null = null,
): Promise<boolean> {
  return (await run(PAUSE, [id, storable(because, BECAUSE_MAX), resumedAt])).length > 0
}

/**
 * The same by a worker that claimed it. If it is paused or cancelled already, that is as well; who has resumed it
 * since knows better than who looked before.
 */
export async function pauseClaimed(
  pool: Pool,
  { runId, resumedAt }: { readonly runId: string; readonly resumedAt: string },
  because: string,
): Promise<void> {
  await inTransaction(pool, (run) => pauseRun(run, runId, because, resumedAt))
}

const BECAUSE_MAX = 1_000

const RESUME = `
update redrive_catalog.replay_run set state = 'running', resumed_at = clock_timestamp(), resumed_by = $2,
    paused_at = null, paused_because = null, failing_turns = 0
  where id = $1`

export async function resume(pool: Pool, id: string, by: string): Promise<void> {
  await change(pool, id, async (run, locked) => {
    expectState(locked, 'paused', 'resumed')
    await refuseFrozen(run)
    await run(RESUME, [id, who(by)])
  })
}

/** Locked first, in the order of ids: dead letters, then items, then the run, as whoever settles them does. */
const LOCK_ITS = `
select d.id from redrive_catalog.dead_letter d
  where d.id = any(array(select dead_letter_id from redrive_catalog.replay_item
    where run_id = $1 and state in ('queued', 'claimed')))
  order by d.id for no key update`
/** One that was on its way before may be out: it waits for its proof, as those that are. */
const CANCEL_QUEUED = `
update redrive_catalog.replay_item set lease_until = null,
    state = case when publishes = 0 then 'cancelled' else 'published' end,
    reason = case when publishes = 0 then $2 else reason end,
    settled_at = case when publishes = 0 then clock_timestamp() end,
    published_at = case when publishes > 0 then coalesce(published_at, clock_timestamp()) end
  where run_id = $1 and state in ('queued', 'claimed') and dead_letter_id = any($3::uuid[])
  returning dead_letter_id as id, state`
const CANCEL_PLANNED = `
update redrive_catalog.replay_item set state = 'cancelled', reason = $2, settled_at = clock_timestamp()
  where run_id = $1 and state = 'planned'`
const END = `
update redrive_catalog.replay_run set state = 'cancelled', ended_at = clock_timestamp()
  where id = $1 and state in ('planned', 'running', 'paused') returning id`

/** What is not out never goes out, and is open again; what is out settles. */
export async function cancel(pool: Pool, id: string, by: string): Promise<void> {
  if (!isId(id)) throw noSuchRun()
  const reason = `cancelled by ${who(by)}`
  await explaining(async () => {
    if (await inTransaction(pool, (run) => cancelPlan(run, id, reason))) return
    await inTransaction(pool, async (run) => {
      await cancelQueued(run, id, { reason, by: who(by) })
      if ((await run(END, [id])).length === 0) {
        throw conflict('There is no such run, or it is over: it cannot be cancelled.')
      }
    })
  })
}

/**
 * Of a plan nothing is held, and another run may have the same dead letters. The run is locked first, as by
 * who approves it: it is either cancelled or approved. False: it is no plan.
 */
async function cancelPlan(run: Run, id: string, reason: string): Promise<boolean> {
  const [locked] = await run<LockedRun>(LOCK_RUN, [id])
  if (locked?.state !== 'planned') return false
  await run(CANCEL_PLANNED, [id, reason])
  await run(END, [id])
  return true
}

/** What a worker has in hand comes back to the queue, or not: whoever sweeps cancels it then. */
export async function cancelQueued(
  run: Run,
  id: string,
  { reason, by }: { readonly reason: string; readonly by: string },
): Promise<void> {
  const held = await run<{ id: string }>(LOCK_ITS, [id])
  const ids = held.map((one) => one.id)
  const items = await run<{ id: string; state: string }>(CANCEL_QUEUED, [id, reason, ids])
  const open = items.filter(({ state }) => state === 'cancelled').map((item) => item.id)
  await reopen(run, open, by)
}

async function change(
  pool: Pool,
  id: string,
  work: (run: Run, locked: LockedRun) => Promise<void>,
): Promise<void> {
  if (!isId(id)) throw noSuchRun()
  await explaining(() =>
    inTransaction(pool, async (run) => {
      const [locked] = await run<LockedRun>(LOCK_RUN, [id])
      if (locked === undefined) throw noSuchRun()
      await work(run, locked)
    }),
  )
}

const noSuchRun = () => conflict('There is no such run.')

function expectState({ state }: LockedRun, expected: RunState, verb: string): void {
  if (state !== expected) throw over(state, verb)
}

const over = (state: RunState, verb: string) =>
  conflict(`The run is ${state}: it cannot be ${verb}.`)

export const conflict = (message: string): RedriveError => new RedriveError('CONFLICT', message)

const who = (by: string) => storable(by, NAME_MAX)
