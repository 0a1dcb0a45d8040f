import {
  type AttemptRecord,
  type Decision,
  decodeHeaders,
  type Delivery,
  type FailureCycle,
  FIRST_CYCLE,
  HEADER_PREFIX,
} from '@redrive/core'
import type { Place, ReplayConfirmation } from '@redrive/runtime'

/** A delivery with the token that settles it. */
export interface PostgresDelivery extends Delivery {
  readonly token: string
  /** Chosen by whoever replayed it last; 0 when nobody has. */
  readonly generation: number
}

/**
 * Selects the payload as hexadecimal digits. The format of a plain bytea column depends on `bytea_output`,
 * which the server, the database, the role or the pool may set. Redrive must not change it with SET: behind
 * a pooler the next statement can run on another connection.
 */
export const HEX_PAYLOAD = `encode(payload, 'hex')`

/** A row as the transport and the source select it. */
export type ClaimedRow = [
  id: string,
  token: string | null,
  dueAt: string,
  type: string | null,
  lane: string | null,
  key: string | null,
  contentType: string | null,
  headers: Readonly<Record<string, unknown>>,
  /** See `HEX_PAYLOAD`. */
  payload: string,
  past: Past | null,
]

/** What has happened to a row; absent when nothing has. */
interface Past {
  readonly attempts: number
  readonly lapses: number
  readonly generation: number
  readonly replayId: string | null
  readonly replaces?: string | null
  readonly closedCycles: number
  readonly cycle: KeptCycle | null
  readonly firstFailedAt: number | null
}

/** The column `cycle`. Additive only: what an older release wrote must stay readable. */
interface KeptCycle {
  readonly lastDelayMs: number
  readonly notBefore?: number
  readonly history: readonly KeptAttempt[]
  /** Of the failure that ended the cycle, when the policy asks for it. */
  readonly stack?: string
}

type KeptAttempt = Omit<AttemptRecord, 'code'> & { readonly code?: string | undefined }

export function toDelivery(source: string, row: ClaimedRow): PostgresDelivery {
  const [id, token, , type, lane, key, contentType, headers, payload, past] = row
  const { foreign, problems } = producersHeaders(headers)
  let bytes: Uint8Array | undefined
  const delivery: PostgresDelivery = {
    id,
    token: token ?? '',
    source,
    lane: lane ?? undefined,
    key: key ?? id,
    type: type ?? undefined,
    // Read when first asked for: on the way to a retry or a dead letter nobody does.
    get bytes() {
      bytes ??= Buffer.from(payload, 'hex')
      return bytes
    },
    contentType: contentType ?? undefined,
    headers: foreign,
    cycle: past === null ? FIRST_CYCLE : cycleOf(past),
    deliveryCount: 1 + (past?.lapses ?? 0),
    replayId: past?.replayId ?? undefined,
    headerProblems: problems,
    generation: past?.generation ?? 0,
  }
  const replaces = past?.replaces ?? undefined
  return replaces === undefined ? delivery : Object.assign(delivery, { replaces })
}

const NO_PROBLEMS: readonly string[] = []

/** What we know of a row is in its columns; headers of ours on it were put there by someone else. */
function producersHeaders(headers: Readonly<Record<string, unknown>>) {
  for (const name in headers) {
    if (name.startsWith(HEADER_PREFIX)) return decodeHeaders(headers)
  }
  return { foreign: headers, problems: NO_PROBLEMS }
}

function cycleOf({ attempts, closedCycles, firstFailedAt, cycle }: Past): FailureCycle {
  return {
    number: closedCycles + 1,
    attempts,
    firstFailedAt: firstFailedAt ?? undefined,
    lastDelayMs: cycle?.lastDelayMs ?? 0,
    notBefore: cycle?.notBefore,
    history: (cycle?.history ?? []).map(({ code, ...rest }) => ({ ...rest, code })),
  }
}

/** The stack of the failure that ended the cycle, when the policy asks for it. */
export const stackIn = ([, , , , , , , , , past]: ClaimedRow): string | undefined =>
  past?.cycle?.stack

/** What was decided, as one row of the changes of `redrive.outbox_turn`. */
export interface Change {
  readonly id: string
  readonly token: string
  readonly place: 'retry' | 'returned' | 'failed' | 'dropped' | 'delivered'
  /** Of a replay that is done with: the control plane is told. */
  readonly outcome?: ReplayConfirmation['outcome']
  readonly delay_ms?: number
  readonly attempts?: number
  readonly first_failed_ms?: number | undefined
  readonly cycle?: KeptCycle
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

export const PLACED: Readonly<Record<Decision['kind'], Place>> = {
  settle: 'settled',
  retryAt: 'retry',
  pause: 'returned',
  deadLetter: 'dead_letter',
  quarantine: 'quarantine',
  drop: 'dropped',
}

/** Undefined: it is done, and there is nothing to be said about it. */
export function changeOf(
  { id, token, replayId }: PostgresDelivery,
  decision: Decision,
): Change | undefined {
  const place = PLACES[decision.kind]
  if (decision.kind === 'pause') return { id, token, place }
  if (decision.kind === 'settle') {
    return replayId === undefined ? undefined : { id, token, place, outcome: decision.reason }
  }
  const { cycle, reason, failure } = decision
  const { attempts, firstFailedAt, lastDelayMs, notBefore, history } = cycle
  return {
    id,
    token,
    place,
    ...(place === 'dropped' && replayId !== undefined ? { outcome: 'dropped' } : {}),
    ...(decision.kind === 'retryAt' ? { delay_ms: Math.max(0, decision.delayMs) } : {}),
    attempts,
    first_failed_ms: firstFailedAt === undefined ? undefined : Math.round(firstFailedAt),
    cycle: {
      lastDelayMs,
      ...(notBefore === undefined ? {} : { notBefore }),
      history,
      ...(failure?.stack === undefined || place === 'retry' ? {} : { stack: failure.stack }),
    },
    reason,
    error: failure?.message,
  }
}

/** As text that PostgreSQL can store: an error may quote anything, and must not be lost for it. */
export function encodeChanges(changes: readonly Change[]): string {
  const text = JSON.stringify(changes)
  if (!UNSTORABLE.test(text)) return text
  return JSON.stringify(changes, (_, value: unknown) =>
    typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '\ufffd') : value,
  )
}

/** As JSON writes NUL and half of a surrogate pair. */
const UNSTORABLE = /\\u(?:0000|d[89a-f])/
