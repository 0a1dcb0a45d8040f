import { formatDuration, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { explaining, inTransaction, type RunSql } from '../../database.ts'
import { isId } from '../../read/check.ts'
import { countMoves } from '../../status.ts'
import { NAME_MAX, storable } from '../../text.ts'
import { refuseFrozen } from './restore-detection.ts'
import { reopen } from './status-changes.ts'
import type { RunState } from './states.ts'
import {
  LOCK_RUN,
  LOCK_PLANNED,
  TAKE_PLANNED,
  QUEUE_TAKEN,
  START_RUN,
  RENEW_APPROVAL,
  PAUSE_RUN,
  RESET_RATE,
  RESUME_RUN,
  LOCK_QUEUED,
  CANCEL_QUEUED,
  CANCEL_PLANNED,
  CANCEL_RUN,
} from './statements.ts'

interface LockedRun {
  readonly state: RunState
  readonly hash: string
  readonly planned_by: string
  readonly is_stale: boolean
  /** Null unless it is paused. */
  readonly paused_for_ms: number | null
}

export interface Approval {
  /** Hash of the run as the approver saw it. */
  readonly hash: string
  readonly by: string
  /** Approves a paused run again although its pause was short. Default: false. */
  readonly renew?: boolean
}

/** The approval rule. `'another_person'`: the planner cannot approve their own run. */
export type ApprovalRule = 'another_person' | 'anyone'

/**
 * Approves a run. Dead letters that have changed since the plan are skipped with a reason. If the approval of a paused
 * run has ended, it is renewed, and the run continues.
 */
export async function approve(
  pool: Pool,
  id: string,
  { hash, by, renew = false }: Approval,
  { rule, maxPauseMs }: { readonly rule: ApprovalRule; readonly maxPauseMs: number },
): Promise<void> {
  await change(pool, id, async (run, locked) => {
    const isEnded = renew || (locked.paused_for_ms ?? 0) > maxPauseMs
    // A repeated approval must not resume a run that a person or a check has paused since.
    if (locked.state !== 'paused' || !isEnded) {
      expectState(locked, 'planned', 'approved')
      refuseApproval(locked, { hash, by }, rule)
      return start(run, id, by)
    }
    // The dead letters of a paused run are locked by it, so its plan does not become old.
    refuseApproval({ ...locked, is_stale: false }, { hash, by }, rule)
    await run(RENEW_APPROVAL, [id, actorOf(by)])
    await proceed(run, id, by)
  })
}

/** Approves a run automatically if it is still allowed. Does nothing if the run is no longer planned. */
export async function approveWithoutPerson(
  pool: Pool,
  id: string,
  { hash, by }: Approval,
  rule: ApprovalRule,
  isAllowed: (run: RunSql) => Promise<boolean>,
): Promise<void> {
  await change(pool, id, async (run, locked) => {
    if (locked.state !== 'planned' || !(await isAllowed(run))) return
    refuseApproval(locked, { hash, by }, rule)
    await start(run, id, by)
  })
}

async function start(run: RunSql, id: string, by: string): Promise<void> {
  await refuseFrozen(run)
  await run(LOCK_PLANNED, [id])
  const taken = await run<{ place: number; group_id: string }>(TAKE_PLANNED, [id, actorOf(by)])
  await run(QUEUE_TAKEN, [id, taken.map(({ place }) => place)])
  await run(START_RUN, [id, actorOf(by)])
  await run(RESET_RATE, [id])
  // The counts of groups come last, as in all transactions.
  await countMoves(
    run,
    taken.map(({ group_id: group }) => ({ group, was: 'open', becomes: 'replaying' })),
  )
}

function refuseApproval(locked: LockedRun, { hash, by }: Approval, rule: ApprovalRule): void {
  if (locked.is_stale) {
    throw conflict(
      'The plan is older than one hour, and its dead letters may have changed. Plan the replay again.',
    )
  }
  if (locked.hash !== hash) {
    throw conflict(
      'The "hash" of the approval is not the hash of this run. Review the run, then approve its current hash.',
    )
  }
  if (actorOf(by) === '') throw conflict('by: expected the name of the approver, got an empty text')
  if (rule === 'another_person' && actorOf(by) === locked.planned_by) {
    throw new RedriveError(
      'NEEDS_ANOTHER_PERSON',
      'The planner cannot approve their own run. Ask another person to approve it.',
    )
  }
}

/** Stops publishing until the run is resumed. Items that are published already still get their outcome. */
export async function pause(pool: Pool, id: string, because: string): Promise<void> {
  await change(pool, id, async (run, locked) => {
    expectState(locked, 'running', 'paused')
    await pauseRun(run, id, because)
  })
}

/** Pauses a running run. False: it was not running, or was resumed after `resumedAt`. */
export async function pauseRun(
  run: RunSql,
  id: string,
  because: string,
  resumedAt: string | null = null,
): Promise<boolean> {
  return (await run(PAUSE_RUN, [id, storable(because, BECAUSE_MAX), resumedAt])).length > 0
}

/**
 * Pauses a run that a worker has claimed. Does nothing if the run is already paused or cancelled. Also does nothing
 * if a user has resumed it since the claim, because the user has newer information.
 */
export async function pauseClaimed(
  pool: Pool,
  { runId, resumedAt }: { readonly runId: string; readonly resumedAt: string },
  because: string,
): Promise<void> {
  await inTransaction(pool, (run) => pauseRun(run, runId, because, resumedAt))
}

const BECAUSE_MAX = 1_000

/** Resumes a paused run. After a longer pause than `maxPauseMs`, a person must approve it again. */
export async function resume(
  pool: Pool,
  id: string,
  { by, maxPauseMs }: { readonly by: string; readonly maxPauseMs: number },
): Promise<void> {
  await change(pool, id, async (run, locked) => {
    expectState(locked, 'paused', 'resumed')
    if ((locked.paused_for_ms ?? 0) > maxPauseMs) {
      throw conflict(
        `The run was paused for more than ${formatDuration(maxPauseMs)}, so its approval has ended. Ask another person to approve it again: redrive approve ${id}`,
      )
    }
    await proceed(run, id, by)
  })
}

async function proceed(run: RunSql, id: string, by: string): Promise<void> {
  await refuseFrozen(run)
  await run(RESUME_RUN, [id, actorOf(by)])
  await run(RESET_RATE, [id])
}

/** Cancels a run. Unpublished items reopen; published items still get their outcome. */
export async function cancel(pool: Pool, id: string, by: string): Promise<void> {
  if (!isId(id)) throw noSuchRun(id)
  const reason = `cancelled by ${actorOf(by)}`
  await explaining(async () => {
    if (await inTransaction(pool, (run) => cancelPlan(run, id, reason))) return
    await inTransaction(pool, async (run) => {
      await cancelQueued(run, id, { reason, by: actorOf(by) })
      if ((await run(CANCEL_RUN, [id])).length === 0) {
        throw conflict(`Run "${id}" cannot be cancelled: it does not exist or has ended.`)
      }
    })
  })
}

/**
 * Cancels a run that is only planned. A plan locks no dead letters, and another run may contain the same ones.
 * The run itself is locked first, as in an approval: it is either cancelled or approved. False: it is not planned.
 */
async function cancelPlan(run: RunSql, id: string, reason: string): Promise<boolean> {
  const [locked] = await run<LockedRun>(LOCK_RUN, [id])
  if (locked?.state !== 'planned') return false
  await run(CANCEL_PLANNED, [id, reason])
  await run(CANCEL_RUN, [id])
  return true
}

/** Cancels the queued items of a run. Items that a worker returns to the queue later are cancelled by `sweep()`. */
export async function cancelQueued(
  run: RunSql,
  id: string,
  { reason, by }: { readonly reason: string; readonly by: string },
): Promise<void> {
  const letters = await run<{ id: string }>(LOCK_QUEUED, [id])
  const ids = letters.map((one) => one.id)
  const items = await run<{ id: string; state: string }>(CANCEL_QUEUED, [id, reason, ids])
  const open = items.filter(({ state }) => state === 'cancelled').map((item) => item.id)
  await reopen(run, open, by)
}

async function change(
  pool: Pool,
  id: string,
  work: (run: RunSql, locked: LockedRun) => Promise<void>,
): Promise<void> {
  if (!isId(id)) throw noSuchRun(id)
  await explaining(() =>
    inTransaction(pool, async (run) => {
      const [locked] = await run<LockedRun>(LOCK_RUN, [id])
      if (locked === undefined) throw noSuchRun(id)
      await work(run, locked)
    }),
  )
}

export const noSuchRun = (id: string): RedriveError =>
  conflict(`Run "${id}" does not exist. Check its id.`)

function expectState({ state }: LockedRun, expected: RunState, verb: string): void {
  if (state !== expected) throw wrongState(state, verb)
}

const wrongState = (state: RunState, verb: string) =>
  conflict(`The run cannot be ${verb}: its state is "${state}".`)

export const conflict = (message: string): RedriveError => new RedriveError('CONFLICT', message)

const actorOf = (by: string) => storable(by, NAME_MAX)
