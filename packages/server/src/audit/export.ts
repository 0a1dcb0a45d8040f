import { createHash, randomUUID } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import type { Pool } from 'pg'
import { runOn, type RunSql } from '../database.ts'
import {
  BATCH_ENTRIES,
  eachLine,
  type ExportLine,
  firstBatch,
  lineOf,
  oneBatch,
} from './export-line.ts'
import {
  ADD_TARGET,
  CLAIM_TARGET,
  EXPORT_LAG,
  RELEASE_TARGET,
  SET_EXPORTED,
} from './export-statements.ts'
import type { EntryRow } from './read.ts'
import { HEAD, NEXT_ENTRIES } from './statements.ts'

export type ExportKind = 'file' | 'webhook'

/** A place outside of the database that receives every entry of the audit log. */
export interface ExportTarget {
  readonly kind: ExportKind
  /** Path or URL. Only its hash is stored. */
  readonly address: string
  /** Opens a new sink for each export, so that a broken connection is not used again. */
  open(): Sink
}

/** The entries that a target has not accepted yet. */
export interface ExportLag {
  readonly kind: ExportKind
  readonly entries: number
  /** Age of the oldest of these entries; 0 if there is none. */
  readonly ageMs: number
}

/** 10 s for a delivery, including the DNS lookup. */
const SEND_MS = 10_000

/** A file gets one line for each entry, a webhook one request for many lines. */
const EVENTS: Readonly<
  Record<ExportKind, (lines: readonly ExportLine[]) => readonly OutboundEvent[]>
> = { file: eachLine, webhook: oneBatch }

/**
 * Sends all entries that the target has not accepted, in their order. Each entry is sent at least once: the position
 * is stored after the target has accepted it. Does nothing while another process exports to the target.
 */
export async function exportAudit(
  pool: Pool,
  target: ExportTarget,
  signal: AbortSignal,
): Promise<void> {
  const run = runOn(pool)
  const [key, claim] = [keyOf(target), randomUUID()]
  await run(ADD_TARGET, [key])
  // Opened before the claim: a target that cannot be opened must not keep it.
  const sink = target.open()
  try {
    const [claimed] = await run<{ sequence: string }>(CLAIM_TARGET, [key, claim])
    if (claimed === undefined) return
    await requireWithinLog(run, Number(claimed.sequence))
    let last: number | undefined = Number(claimed.sequence)
    while (last !== undefined && !signal.aborted) {
      const rows = await run<EntryRow>(NEXT_ENTRIES, [last, BATCH_ENTRIES])
      const lines = firstBatch(rows.map(lineOf))
      const sent = lines.at(-1)
      if (sent === undefined) return
      await sink.send(EVENTS[target.kind](lines), { signal: AbortSignal.timeout(SEND_MS) })
      const [stored] = await run<{ sequence: string }>(SET_EXPORTED, [key, claim, sent.sequence])
      last = stored === undefined ? undefined : Number(stored.sequence)
    }
  } finally {
    try {
      await sink.close()
    } finally {
      // Without a claim of this call, it changes nothing.
      await run(RELEASE_TARGET, [key, claim])
    }
  }
}

/** Rejects a position after the end of the log. The export would skip all entries up to it. */
async function requireWithinLog(run: RunSql, exported: number): Promise<void> {
  const [head] = await run<{ sequence: string }>(HEAD)
  const newest = Number(head?.sequence ?? 0)
  if (exported <= newest) return
  throw new RedriveError(
    'CONFLICT',
    `The table redrive_server.audit_export contains the entry ${exported}, but the newest entry of the audit log is ${newest}. Find out who changed it. Then set its sequence to the last entry that the target has received.`,
  )
}

/** Returns how far each target is behind. */
export async function exportLag(
  pool: Pool,
  targets: readonly ExportTarget[],
): Promise<readonly ExportLag[]> {
  const keys = targets.map(keyOf)
  const rows = await runOn(pool)<LagRow>(EXPORT_LAG, [keys])
  const byKey = new Map(rows.map((row) => [row.target, row]))
  return targets.map((target) => {
    const row = byKey.get(keyOf(target))
    return {
      kind: target.kind,
      entries: Number(row?.entries ?? 0),
      ageMs: Number(row?.age_ms ?? 0),
    }
  })
}

interface LagRow {
  readonly target: string
  readonly entries: string
  readonly age_ms: string
}

const keyOf = ({ kind, address }: ExportTarget): string =>
  createHash('sha256').update(`${kind} ${address}`).digest('hex').slice(0, 32)
