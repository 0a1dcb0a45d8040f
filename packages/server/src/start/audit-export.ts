import { setTimeout as after } from 'node:timers/promises'
import type { Pool } from 'pg'
import { exportAudit, exportLag, type ExportTarget } from '../audit/export.ts'
import type { Log } from './log.ts'

/** 5 s: a new entry leaves the database soon, and an idle server reads one row. */
const INTERVAL_MS = 5_000
/** 1 min: the longest wait after failures, and the interval at which a delay is logged again. */
const LONGEST_WAIT_MS = 60_000
/** 5 min: longer than a restart of a receiver. */
const BEHIND_MS = 300_000

export interface AuditExports {
  /** Ends after the delivery in progress. The next start continues there. */
  stop(): Promise<void>
}

export interface AuditExportOptions {
  readonly pool: Pool
  readonly targets: readonly ExportTarget[]
  readonly log: Log
  /** Wait between two exports. Default: 5 s. */
  readonly everyMs?: number
}

/** Exports the audit log to each target until it is stopped. Targets do not wait for each other. */
export function startAuditExport(options: AuditExportOptions): AuditExports {
  const stopping = new AbortController()
  const loops = options.targets.map((target) => repeat(options, target, stopping.signal))
  return {
    async stop() {
      stopping.abort()
      await Promise.all(loops)
    },
  }
}

async function repeat(
  { pool, log, everyMs = INTERVAL_MS }: AuditExportOptions,
  target: ExportTarget,
  signal: AbortSignal,
): Promise<void> {
  const report = reporter(log, target)
  let failures = 0
  while (!signal.aborted) {
    try {
      await exportAudit(pool, target, signal)
      failures = 0
    } catch (error) {
      failures += 1
      report(failedText(target, error))
    }
    await reportDelay(pool, target, report).catch((error: unknown) =>
      log.debug({ err: error }, 'Cannot read the position of the audit export.'),
    )
    const waitMs = Math.min(everyMs * 2 ** failures, LONGEST_WAIT_MS)
    // It rejects when the signal fires. The condition of the loop checks the signal.
    await after(waitMs, undefined, { signal }).catch(() => undefined)
  }
}

async function reportDelay(
  pool: Pool,
  target: ExportTarget,
  report: (text: string) => void,
): Promise<void> {
  const [lag] = await exportLag(pool, [target])
  if (lag === undefined || lag.ageMs < BEHIND_MS) return
  const minutes = Math.floor(lag.ageMs / 60_000)
  report(
    `The export of the audit log to the ${target.kind} is ${minutes} min behind. ${lag.entries} entries wait in the database. Check that the ${target.kind} accepts them.`,
  )
}

function failedText({ kind }: ExportTarget, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error)
  return `Cannot export the audit log to the ${kind}: ${reason.replace(/\.$/, '')}. The entries stay in the database, and the server tries again.`
}

/** Returns a function that logs a new text immediately, and a repeated one at most once a minute. */
function reporter(log: Log, { kind }: ExportTarget): (text: string) => void {
  const logged = new Map<string, number>()
  return (text) => {
    const now = performance.now()
    for (const [known, at] of logged) if (now - at >= LONGEST_WAIT_MS) logged.delete(known)
    if (logged.has(text)) return
    logged.set(text, now)
    log.warn({ auditExport: kind }, text)
  }
}
