import type { Pool } from 'pg'
import { inTransaction } from '../../database.ts'
import { momentOf } from '../../ingest/identity.ts'
import type { RejectedMessage } from '../../set-aside/store.ts'
import { reopen } from '../run/status-changes.ts'
import { findReturned, type ReturnedMessage } from './returned.ts'
import { COUNT_MISMATCHES, LOCK_ITEMS, NAME_REPLAYED, SET_FAILED_AGAIN } from './statements.ts'

interface RejectedReturn extends ReturnedMessage {
  /** Id of the set-aside message. */
  readonly id: string
}

/**
 * Ends replays whose messages came back and were set aside: they failed again. Their dead letters are open again with
 * the stored body and headers, because the headers that came back cannot be catalogued. A dead letter with a final status
 * keeps it, and the set-aside message is the open one. Runs after the messages are
 * stored and before they are released, so that a crash in between repeats it. It is a separate transaction: an ingest
 * locks dead letters once, in the order of their ids.
 */
export async function failSetAside(
  pool: Pool,
  { id: sourceId, name }: { readonly id: number; readonly name: string },
  rejected: readonly RejectedMessage[],
): Promise<void> {
  if (rejected.length === 0) return
  const now = Date.now()
  const messages = rejected.map((one) => returnOf(one, now))
  await inTransaction(pool, async (run) => {
    const { returned, mismatched } = await findReturned(run, sourceId, messages)
    const replayIds = returned.map(({ item }) => item.replay_id)
    await run(LOCK_ITEMS, [replayIds])
    await run(SET_FAILED_AGAIN, [replayIds, 'set aside'])
    await reopen(
      run,
      returned.map(({ letter }) => letter.id),
      'consumer',
    )
    await run(NAME_REPLAYED, [
      returned.map(({ message }) => message.id),
      returned.map(({ letter }) => letter.id),
      returned.map(({ item }) => item.is_changed),
    ])
    if (mismatched > 0) await run(COUNT_MISMATCHES, [name, mismatched])
  })
}

/** The header with the replay id. A transport that cannot read the headers of a message leaves them as they are. */
const REPLAY_ID = 'redrive-replay-id'

function returnOf({ drained, sha256, id }: RejectedMessage, now: number): RejectedReturn {
  const { delivery } = drained
  const { [REPLAY_ID]: header } = delivery.headers
  const replayId = delivery.replayId ?? (typeof header === 'string' ? header : undefined)
  // Without a plausible time of failure it failed before now. The original is not set aside, so this is not the original.
  const lastFailedAt = momentOf(delivery.cycle.history.at(-1)?.at) ?? now
  return { drained: { ...drained, delivery: { ...delivery, replayId } }, sha256, lastFailedAt, id }
}
