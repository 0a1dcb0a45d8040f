import type { Run } from '../database.ts'
import type { Status } from '../read/query.ts'
import { type Change, changeStatus } from '../status.ts'

/** Those that someone still has to deal with: they count as open. */
export const LIVE: readonly Status[] = ['open', 'replaying', 'unknown']

type Settle = (run: Run, ids: readonly string[], by: string) => Promise<void>

const settling =
  (change: Change): Settle =>
  (run, ids, by) =>
    changeStatus(run, change, ids, by)

/** Its effect is proven. */
export const resolved: Settle = settling({ from: LIVE, to: 'resolved', opens: -1 })

/** It will never be handled. */
export const expired: Settle = settling({ from: LIVE, to: 'expired', opens: -1 })

/** Nobody can say. It still counts as open: someone has to deal with it. */
export const unknown: Settle = settling({ from: ['replaying'], to: 'unknown', opens: 0 })

/** Back to where it was. */
export const reopen: Settle = settling({ from: ['replaying', 'unknown'], to: 'open', opens: 0 })
