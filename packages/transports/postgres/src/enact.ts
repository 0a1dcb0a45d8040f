import type { Decision } from '@redrive/core'
import { isRejectedByServer } from '@redrive/postgres-internal'
import {
  type Destination,
  type Enactment,
  movedTo,
  type ReplayConfirmation,
  SETTLED,
} from '@redrive/runtime'
import type { PostgresDelivery, StoredCycle } from './delivery.ts'

/** A decision as one row of the changes of `redrive.outbox_turn`. */
export interface Change {
  readonly id: string
  readonly token: string
  readonly place: 'retry' | 'returned' | 'failed' | 'dropped' | 'delivered'
  /** Outcome of a finished replay, stored for the control plane. */
  readonly outcome?: ReplayConfirmation['outcome']
  readonly delay_ms?: number
  readonly attempts?: number
  readonly first_failed_ms?: number | undefined
  readonly cycle?: StoredCycle
  readonly reason?: string
  readonly error?: string | undefined
}

const PLACES: Readonly<Record<Decision['kind'], Change['place']>> = {
  settle: 'delivered',
  retryAt: 'retry',
  pause: 'returned',
  deadLetter: 'failed',
  quarantine: 'failed',
  drop: 'dropped',
}

const DESTINATIONS: Readonly<Record<Decision['kind'], Destination>> = {
  settle: 'settled',
  retryAt: 'retry',
  pause: 'returned',
  deadLetter: 'dead_letter',
  quarantine: 'quarantine',
  drop: 'dropped',
}

/** Returns the result of a decision that the database has applied. */
export const appliedResult = ({ kind }: Decision): Enactment =>
  kind === 'settle' ? SETTLED : movedTo(DESTINATIONS[kind])

/** Returns the change of a row, or undefined for a settled delivery that is not a replay. */
export function changeOf(
  { id, token, replayId, clockAheadMs }: PostgresDelivery,
  decision: Decision,
  handler: string | undefined,
): Change | undefined {
  const place = PLACES[decision.kind]
  if (decision.kind === 'pause') return { id, token, place }
  if (decision.kind === 'settle') {
    return replayId === undefined ? undefined : { id, token, place, outcome: decision.reason }
  }
  const { cycle, reason, failure } = decision
  const { attempts, runs, unproven, firstFailedAt, lastDelayMs, remainingMs, history } = cycle
  return {
    id,
    token,
    place,
    ...(place === 'dropped' && replayId !== undefined ? { outcome: 'dropped' } : {}),
    ...(decision.kind === 'retryAt' ? { delay_ms: Math.max(0, decision.delayMs) } : {}),
    attempts,
    first_failed_ms:
      firstFailedAt === undefined ? undefined : Math.round(firstFailedAt + clockAheadMs),
    cycle: {
      lastDelayMs,
      ...(runs === attempts ? {} : { runs }),
      ...(unproven.runs === 0 ? {} : { unproven }),
      ...(remainingMs === 0 ? {} : { remainingMs }),
      history:
        clockAheadMs === 0
          ? history
          : history.map((one) => ({ ...one, at: one.at + clockAheadMs })),
      ...(handler === undefined || place === 'retry' ? {} : { handler }),
      ...(failure?.stack === undefined || place === 'retry' ? {} : { stack: failure.stack }),
    },
    reason,
    error: failure?.message,
  }
}

/** Returns the changes as text that PostgreSQL can store. Error messages may contain characters that it rejects. */
export function encodeChanges(changes: readonly Change[]): string {
  const text = JSON.stringify(changes)
  if (!UNSTORABLE.test(text)) return text
  return JSON.stringify(changes, (_, value: unknown) =>
    typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '\ufffd') : value,
  )
}

/** Matches NUL and half of a surrogate pair, as JSON encodes them. */
const UNSTORABLE = /\\u(?:0000|d[89a-f])/

/** Returns the result of a change that the database did not apply, or may not have applied. */
export const unfinished = (error: unknown): Enactment =>
  isRejectedByServer(error)
    ? { kind: 'refused', error, isTooLarge: false }
    : { kind: 'unknown', error }
