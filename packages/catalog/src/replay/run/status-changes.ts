import type { RunSql } from '../../database.ts'
import { type Change, changeStatus, LIVE } from '../../status.ts'

type SetStatus = (run: RunSql, ids: readonly string[], by: string) => Promise<void>

const createSetStatus =
  (change: Change): SetStatus =>
  (run, ids, by) =>
    changeStatus(run, change, ids, by)

/** Marks dead letters as resolved: their effect is confirmed. */
export const resolved: SetStatus = createSetStatus({
  from: [...LIVE, 'not_returned'],
  to: 'resolved',
})

/** Marks dead letters as expired: they will never be handled. */
export const expired: SetStatus = createSetStatus({
  from: [...LIVE, 'not_returned'],
  to: 'expired',
})

/** Marks dead letters as unknown: undecided until a user sets the outcome. */
export const unknown: SetStatus = createSetStatus({
  from: ['replaying'],
  to: 'unknown',
})

/** Marks dead letters as not returned: their consumers confirm nothing, and they did not fail again in time. */
export const notReturned: SetStatus = createSetStatus({ from: ['replaying'], to: 'not_returned' })

/** Sets dead letters back to open. */
export const reopen: SetStatus = createSetStatus({
  from: ['replaying', 'unknown', 'not_returned'],
  to: 'open',
})
