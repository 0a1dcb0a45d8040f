import { setTimeout as after } from 'node:timers/promises'
import type { Catalog, ReplayRun } from '@redrive/catalog'
import { isRedriveError } from '@redrive/core'
import type { WriteAudit } from '../audit/entry.ts'
import type { Identity } from '../identity/port.ts'
import { omitUndefined } from '../omit-undefined.ts'
import { endedApproval } from '../operations/run-approval.ts'
import type { Log } from './log.ts'

/** 30 s: a run publishes little in this time, and the check reads one page of runs. */
const INTERVAL_MS = 30_000

export interface RunApprovalsOptions {
  readonly catalog: Pick<Catalog, 'replays'>
  readonly identity: Pick<Identity, 'grantsOf'>
  readonly audit: { readonly write: WriteAudit }
  readonly log: Log
}

/** Pauses running replays whose approval has ended, every 30 s until it is stopped. */
export function startRunApprovals(options: RunApprovalsOptions): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const { signal } = stopping
  const repeat = async () => {
    while (!signal.aborted) {
      await pauseEnded(options).catch((error: unknown) =>
        options.log.warn({ err: error }, 'Cannot check the approvals of running replays.'),
      )
      // It rejects when the signal fires. The condition of the loop checks the signal.
      await after(INTERVAL_MS, undefined, { signal }).catch(() => undefined)
    }
  }
  const loop = repeat()
  return {
    async stop() {
      stopping.abort()
      await loop
    },
  }
}

/**
 * Pauses the running replays whose planner or approver has lost the permission. Groups count however old the last
 * sign-in is: a slow run must not end at a weekend.
 */
export async function pauseEnded({
  catalog: { replays },
  identity,
  audit,
  log,
}: RunApprovalsOptions): Promise<void> {
  for (const run of await runningOf(replays)) {
    const because = await endedApproval({ identity }, run, { anyAge: true })
    if (because === undefined) continue
    const { id: subject, source } = run
    const entry = { caller: undefined, operation: 'pauseReplay', subject, source } as const
    await audit.write({ ...entry, outcome: 'requested', facts: { because } })
    const outcome = await paused(replays, subject, because)
    await audit.write({ ...entry, outcome, facts: { because } })
    log.warn({ run: subject, source }, `Replay ${subject} is paused. ${because}`)
  }
}

async function runningOf(replays: Catalog['replays']): Promise<readonly ReplayRun[]> {
  const found: ReplayRun[] = []
  let cursor: string | undefined
  do {
    const page = await replays.runs({
      states: ['running'],
      limit: 200,
      ...omitUndefined({ cursor }),
    })
    found.push(...page.runs)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return found
}

/** A run that ended or paused meanwhile needs no pause. */
async function paused(
  replays: Catalog['replays'],
  id: string,
  because: string,
): Promise<'done' | 'refused'> {
  try {
    await replays.pause(id, { by: 'redrive', because })
    return 'done'
  } catch (error) {
    if (isRedriveError(error, 'CONFLICT')) return 'refused'
    throw error
  }
}
