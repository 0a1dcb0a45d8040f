import type { RunSql } from '../../database.ts'
import type { Status } from '../../read/query.ts'
import { type Change, changeStatus } from '../../status.ts'

/** The statuses that count as open. */
export const LIVE: readonly Status[] = ['open', 'replaying', 'unknown']

type SetStatus = (run: RunSql, ids: readonly string[], by: string) => Promise<void>

const createSetStatus =
  (change: Change): SetStatus =>
  (run, ids, by) =>
    changeStatus(run, change, ids, by)

/** Marks dead letters as resolved: their effect is confirmed. */
export const resolved: SetStatus = createSetStatus({ from: LIVE, to: 'resolved', opens: -1 })

/** Marks dead letters as expired: they will never be handled. */
export const expired: SetStatus = createSetStatus({ from: LIVE, to: 'expired', opens: -1 })

/** Marks dead letters as unknown. They still count as open, because a user must set the outcome. */
export const unknown: SetStatus = createSetStatus({
  from: ['replaying'],
  to: 'unknown',
  opens: 0,
})

/** Sets dead letters back to open. */
export const reopen: SetStatus = createSetStatus({
  from: ['replaying', 'unknown'],
  to: 'open',
  opens: 0,
})
