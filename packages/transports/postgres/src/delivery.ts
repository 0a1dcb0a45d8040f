import {
  type FailureRecord,
  decodeHeaders,
  type Delivery,
  type FailureCycle,
  FIRST_CYCLE,
  HEADER_PREFIX,
  type UnprovenRuns,
} from '@redrive/core'
import { decodePayload } from './payload.ts'

/** A delivery with the token that settles it. */
export interface PostgresDelivery extends Delivery {
  readonly token: string
  /** The generation that the last replay set; 0 when it was never replayed. */
  readonly generation: number
  /** Milliseconds that the clock of the database was ahead of this process. Its times are converted by it. */
  readonly clockAheadMs: number
}

/** A row as the transport and the source select it. */
export type ClaimedRow = [
  id: string,
  token: string | null,
  /** Milliseconds since 1970, as text. */
  dueAt: string,
  type: string | null,
  lane: string | null,
  key: string | null,
  contentType: string | null,
  headers: Readonly<Record<string, unknown>>,
  /** See `PAYLOAD`. */
  payload: string,
  past: RowHistory | null,
]

/** The history of a row; absent when it never failed and was never replayed. */
interface RowHistory {
  readonly attempts: number
  readonly lapses: number
  readonly generation: number
  readonly replayId: string | null
  readonly replaces?: string | null
  readonly closedCycles: number
  readonly cycle: StoredCycle | null
  readonly firstFailedAt: number | null
}

/** The column `cycle`. Fields are only added, so that values of older releases stay readable. */
export interface StoredCycle {
  readonly lastDelayMs: number
  /** Absent: 0. */
  readonly remainingMs?: number
  /** Absent: as many as counted attempts. */
  readonly runs?: number
  readonly unproven?: UnprovenRuns
  readonly history: readonly StoredFailure[]
  /** Name of the handler that ended the cycle. */
  readonly handler?: string
  /** Stack trace of the failure that ended the cycle, if the policy includes it. */
  readonly stack?: string
}

/** Undefined fields are not stored. Messages of older releases have only attempts, without wait and type. */
type StoredFailure = Partial<FailureRecord> &
  Pick<FailureRecord, 'number' | 'at' | 'class' | 'signature' | 'message'>

export function toDelivery(source: string, row: ClaimedRow, clockAheadMs = 0): PostgresDelivery {
  return new ClaimedDelivery(source, row, clockAheadMs)
}

/** A class, because an object with a getter takes ten times as much memory. There is one object per message. */
class ClaimedDelivery implements PostgresDelivery {
  readonly id: string
  readonly token: string
  readonly source: string
  readonly lane: string | undefined
  readonly key: string
  readonly type: string | undefined
  readonly contentType: string | undefined
  readonly headers: Delivery['headers']
  readonly cycle: FailureCycle
  readonly deliveryCount: number
  readonly replayId: string | undefined
  declare readonly replaces?: string
  readonly headerProblems: readonly string[]
  readonly generation: number
  readonly clockAheadMs: number
  #payload: string | Uint8Array

  constructor(source: string, row: ClaimedRow, clockAheadMs: number) {
    const [id, token, , type, lane, key, contentType, headers, payload, past] = row
    const { foreign, problems } = producersHeaders(headers)
    this.id = id
    this.token = token ?? ''
    this.source = source
    this.lane = lane ?? undefined
    this.key = key ?? id
    this.type = type ?? undefined
    this.contentType = contentType ?? undefined
    this.headers = foreign
    this.cycle = past === null ? FIRST_CYCLE : cycleOf(past, clockAheadMs)
    this.deliveryCount = 1 + (past?.lapses ?? 0)
    this.replayId = past?.replayId ?? undefined
    this.headerProblems = problems
    this.generation = past?.generation ?? 0
    this.clockAheadMs = clockAheadMs
    this.#payload = payload
    const replaces = past?.replaces ?? undefined
    if (replaces !== undefined) this.replaces = replaces
  }

  /** Decoded on first access: a retry or a dead letter does not need it. */
  get bytes(): Uint8Array {
    if (typeof this.#payload === 'string') this.#payload = decodePayload(this.#payload)
    return this.#payload
  }
}

const NO_PROBLEMS: readonly string[] = []

/** Removes Redrive headers. Redrive stores its state in columns, so such headers come from the producer. */
function producersHeaders(headers: Readonly<Record<string, unknown>>) {
  for (const name in headers) {
    if (name.startsWith(HEADER_PREFIX)) return decodeHeaders(headers)
  }
  return { foreign: headers, problems: NO_PROBLEMS }
}

function cycleOf(
  { attempts, closedCycles, firstFailedAt, cycle }: RowHistory,
  clockAheadMs: number,
): FailureCycle {
  return {
    number: closedCycles + 1,
    attempts,
    runs: cycle?.runs ?? attempts,
    unproven: cycle?.unproven ?? FIRST_CYCLE.unproven,
    firstFailedAt: firstFailedAt === null ? undefined : firstFailedAt - clockAheadMs,
    lastDelayMs: cycle?.lastDelayMs ?? 0,
    remainingMs: cycle?.remainingMs ?? 0,
    history: (cycle?.history ?? []).map((stored) => recordOf(stored, clockAheadMs)),
  }
}

const recordOf = (
  { code, type, waitedMs = 0, counted = true, ...rest }: StoredFailure,
  clockAheadMs: number,
) => ({
  ...rest,
  at: rest.at - clockAheadMs,
  code,
  type,
  waitedMs,
  counted,
})

/** Returns the handler that ended the cycle, and the stack trace if the policy includes it. */
export function endIn([, , , , , , , , , past]: ClaimedRow): Pick<
  StoredCycle,
  'handler' | 'stack'
> {
  const { handler, stack } = past?.cycle ?? {}
  return {
    ...(handler === undefined ? {} : { handler }),
    ...(stack === undefined ? {} : { stack }),
  }
}
