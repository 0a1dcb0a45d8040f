import type { Enactment } from '@redrive/runtime'
import type { ClaimedRow, PostgresDelivery } from './delivery.ts'
import { type Change, encodeChanges } from './enact.ts'
import type { ResolvedOptions } from './options.ts'
import { TURN } from './sql/transport.ts'
import { runPrepared, runStatement } from './statement.ts'

/** An enactment that waits for the database. */
export interface PendingEnactment {
  readonly delivery: PostgresDelivery
  /** The change; undefined for a settled delivery that is not a replay. */
  readonly change: Change | undefined
  readonly done: Enactment
  readonly resolve: (enactment: Enactment) => void
}

export interface Turn {
  readonly pending: readonly PendingEnactment[]
  /** Maximum number of rows to claim. */
  readonly maxRows: number
  /** The due time from which the claim searches. */
  readonly watermark: string
  /** The lane after which the claim starts; empty for all lanes. */
  readonly afterLane: string
}

export interface TurnResult {
  readonly claimed: readonly ClaimedRow[]
  /** The ids of deliveries that have another owner now. */
  readonly fenced: ReadonlySet<string | null>
  /** The lane after which the next claim starts; empty when all lanes were searched. */
  readonly nextLane: string
}

/** Sends a turn to the database. */
export async function sendTurn(
  options: ResolvedOptions,
  { pending, maxRows, watermark, afterLane }: Turn,
): Promise<TurnResult> {
  const { queue, order, leaseMs, isListening } = options
  const done = pending.filter(({ change }) => change === undefined)
  const changes = pending.flatMap(({ change }) => change ?? [])
  const values = [
    done.map(({ delivery }) => delivery.id),
    done.map(({ delivery }) => delivery.token),
    changes.length === 0 ? null : encodeChanges(changes),
    queue,
    maxRows,
    leaseMs,
    watermark,
    order === 'lane' ? afterLane : null,
  ]
  // Without LISTEN, a pooler is between, and the next statement can run on another connection.
  const run = isListening ? runPrepared<ClaimedRow> : runStatement<ClaimedRow>
  const rows = await run(options, TURN, values)
  const claimed = rows.filter(([, token]) => token !== null)
  // A row without a token is a notice: a delivery with another owner, or the lane of the next claim.
  const notices = claimed.length === rows.length ? [] : rows.filter(([, token]) => token === null)
  const fenced = new Set<string | null>(notices.map(([id]) => id))
  return { claimed, fenced, nextLane: notices.find(([id]) => id === null)?.[4] ?? '' }
}
