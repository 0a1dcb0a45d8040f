import type { FailureClass, FailureRecord } from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { RunSql } from '../database.ts'
import type { PayloadKeys } from '../encryption.ts'
import type { StoredPreview } from '../ingest/preview.ts'
import { isId, PAGE } from './check.ts'
import { compileDeadLetter, compileDeadLetters, isIndexed } from './compile.ts'
import { readPayload, readPreview } from './payload.ts'
import { checkDeadLetterQuery, type DeadLetterQuery, type Status } from './query.ts'
import { searchPage } from './search.ts'
import { ask, cursorText, type Reader, reading } from './sql.ts'

/** A dead letter in a list. Long texts are shortened; `deadLetter(id)` returns the full texts. */
export interface DeadLetterSummary {
  readonly id: string
  readonly group: string
  readonly source: string
  readonly handler: string | undefined
  readonly status: Status
  readonly quarantined: boolean
  readonly class: FailureClass
  readonly reason: string
  readonly code: string | undefined
  readonly message: string
  readonly type: string | undefined
  readonly messageId: string
  readonly key: string
  readonly lane: string | undefined
  readonly origin: string
  readonly contentType: string | undefined
  readonly attempts: number
  /** Failed runs of the cycle, counted as attempts or not. */
  readonly runs: number
  readonly cycle: number
  /** Increases with every change of status. */
  readonly version: number
  readonly payloadBytes: number
  readonly isTombstone: boolean
  /** Headers for display, bounded and masked. */
  readonly headers: Readonly<Record<string, unknown>>
  /** The last failures of the cycle, oldest first. */
  readonly history: readonly FailureRecord[]
  readonly firstFailedAt: number
  readonly lastFailedAt: number
  readonly ingestedAt: number
  /** Time and author of the current status; undefined until the first change. */
  readonly settledAt: number | undefined
  readonly settledBy: string | undefined
}

export interface DeadLetterPage {
  readonly deadLetters: readonly DeadLetterSummary[]
  /** Cursor of the next page; undefined on the last page. */
  readonly nextCursor: string | undefined
  /**
   * Set if a search ended before the page was full, because it used up its time. It contains all matching dead letters
   * whose last failure is after this time, in epoch ms. The search continues with `nextCursor`.
   */
  readonly searchedTo: number | undefined
}

/** A dead letter with the preview of its body. */
export interface DeadLetterPreview extends DeadLetterSummary, StoredPreview {}

/** A dead letter with everything that a replay needs. */
export interface DeadLetterDetail extends DeadLetterPreview {
  /** The message as received from the broker: bytes, headers and envelope unchanged. */
  readonly drained: DrainedDeadLetter
}

/** Returns a page of dead letters, newest last failure first. */
export async function readDeadLetters(
  reader: Reader,
  query: DeadLetterQuery,
): Promise<DeadLetterPage> {
  checkDeadLetterQuery(query)
  if (!isIndexed(query)) {
    const { rows, ...page } = await searchPage<SummaryRow>(reader, query)
    return { deadLetters: rows.map(summaryOf), ...page }
  }
  const rows = await ask<SummaryRow>(reader, compileDeadLetters(query))
  const most = query.limit ?? PAGE
  const deadLetters = rows.slice(0, most).map(summaryOf)
  const last = deadLetters.at(-1)
  const isMore = rows.length > most && last !== undefined
  return {
    deadLetters,
    nextCursor: isMore ? cursorText({ at: last.lastFailedAt, id: last.id }) : undefined,
    searchedTo: undefined,
  }
}

export async function readDeadLetter(
  reader: Reader,
  keys: PayloadKeys | undefined,
  id: string,
): Promise<DeadLetterDetail | undefined> {
  if (!isId(id)) return undefined
  return reading(reader, async (run) => {
    const found = await previewed(run, id)
    if (found === undefined) return undefined
    const drained = await readPayload(run, keys, { id, bytes: found.payloadBytes })
    return { ...found, drained }
  })
}

/** Returns a dead letter with its preview. Reads no body and needs no key. */
export async function readDeadLetterPreview(
  reader: Reader,
  id: string,
): Promise<DeadLetterPreview | undefined> {
  if (!isId(id)) return undefined
  return reading(reader, (run) => previewed(run, id))
}

async function previewed(run: RunSql, id: string): Promise<DeadLetterPreview | undefined> {
  const { text, values } = compileDeadLetter(id)
  const [row] = await run<SummaryRow>(text, values)
  return row === undefined ? undefined : { ...summaryOf(row), ...(await readPreview(run, id)) }
}

interface SummaryRow {
  readonly id: string
  /** The visible group: the group of the dead letter, or the group that it is merged into. */
  readonly root_id: string
  readonly source: string
  readonly handler: string | null
  readonly status: Status
  readonly is_quarantined: boolean
  readonly class: FailureClass
  readonly reason: string
  readonly code: string | null
  readonly message: string
  readonly type: string | null
  readonly message_id: string
  readonly key: string
  readonly lane: string | null
  readonly origin: string
  readonly content_type: string | null
  readonly attempts: number
  readonly runs: number
  readonly cycle: number
  readonly version: number
  readonly payload_bytes: number
  readonly is_tombstone: boolean
  readonly headers: Readonly<Record<string, unknown>>
  readonly history: readonly HistoryEntry[]
  readonly first_ms: number
  readonly last_ms: number
  readonly ingested_ms: number
  readonly settled_ms: number | null
  readonly settled_by: string | null
}

/** A failure as it is stored. The optional fields are absent in rows of older releases, which stored only attempts. */
export type HistoryEntry = Omit<FailureRecord, 'code' | 'type' | 'waitedMs' | 'counted'> &
  Partial<Pick<FailureRecord, 'waitedMs' | 'counted'>> & {
    readonly code: string | null
    readonly type?: string | null
  }

export const recordOf = ({
  code,
  type,
  waitedMs = 0,
  counted = true,
  ...rest
}: HistoryEntry): FailureRecord => ({
  ...rest,
  code: code ?? undefined,
  type: type ?? undefined,
  waitedMs,
  counted,
})

function summaryOf(row: SummaryRow): DeadLetterSummary {
  return {
    id: row.id,
    group: row.root_id,
    source: row.source,
    handler: row.handler ?? undefined,
    status: row.status,
    quarantined: row.is_quarantined,
    class: row.class,
    reason: row.reason,
    code: row.code ?? undefined,
    message: row.message,
    type: row.type ?? undefined,
    messageId: row.message_id,
    key: row.key,
    lane: row.lane ?? undefined,
    origin: row.origin,
    contentType: row.content_type ?? undefined,
    attempts: row.attempts,
    runs: row.runs,
    cycle: row.cycle,
    version: row.version,
    payloadBytes: row.payload_bytes,
    isTombstone: row.is_tombstone,
    headers: row.headers,
    history: row.history.map(recordOf),
    firstFailedAt: row.first_ms,
    lastFailedAt: row.last_ms,
    ingestedAt: row.ingested_ms,
    settledAt: row.settled_ms ?? undefined,
    settledBy: row.settled_by ?? undefined,
  }
}
