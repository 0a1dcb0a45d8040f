import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { inTransaction } from '../../database.ts'
import { NAME_MAX, storable } from '../../text.ts'
import type { Claim } from './claim.ts'
import { pauseRun } from '../run/lifecycle.ts'
import { RETURN_FAILED, RETURN_UNSENT, TURN_FAILED, TURN_WORKED } from './statements.ts'

/** 3 turns without a successful publish: the target is unavailable. */
const FAILING_TURNS_MAX = 3

/** Returns items to the queue that were not published. Resolves with their number, without items of another worker. */
export async function returnUnsent(
  pool: Pool,
  { runId, token }: Claim,
  places: readonly number[],
): Promise<number> {
  if (places.length === 0) return 0
  const { rowCount } = await pool.query(RETURN_UNSENT, [runId, token, places])
  return rowCount ?? 0
}

export interface FailedPublish {
  readonly place: number
  readonly error: unknown
}

/** Whether the broker certainly did not store the message: no queue accepts it. */
const isReturned = ({ error }: FailedPublish) =>
  error instanceof RedriveError && error.code === 'UNROUTABLE'

/**
 * Returns failed items to the queue. Pauses the run if every publish failed for several turns. Pauses it immediately
 * if the broker returned a message, because another publish has the same result until a user changes the broker.
 */
export async function returnFailed(
  pool: Pool,
  { runId, token }: Pick<Claim, 'runId' | 'token'>,
  failed: readonly FailedPublish[],
  isAll: boolean,
): Promise<void> {
  if (failed.length === 0) return void (await pool.query(TURN_WORKED, [runId]))
  const returned = failed.find(isReturned)
  if (returned !== undefined) {
    const places = failed.filter(isReturned).map(({ place }) => place)
    await inTransaction(pool, async (run) => {
      await run(RETURN_UNSENT, [runId, token, places])
      await pauseRun(run, runId, `The broker returned a message: ${textOf(returned.error)}`)
    })
    const others = failed.filter((one) => !isReturned(one))
    return others.length === 0 ? undefined : returnFailed(pool, { runId, token }, others, false)
  }
  const reasons = failed.map(({ error }) => storable(textOf(error), NAME_MAX))
  await inTransaction(pool, async (run) => {
    await run(RETURN_FAILED, [runId, token, failed.map(({ place }) => place), reasons])
    if (!isAll) return
    const [row] = await run<{ failing_turns: number }>(TURN_FAILED, [runId])
    if ((row?.failing_turns ?? 0) >= FAILING_TURNS_MAX) {
      await pauseRun(
        run,
        runId,
        `Publishing failed ${FAILING_TURNS_MAX} times in a row: ${reasons[0]}`,
      )
    }
  })
}

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
