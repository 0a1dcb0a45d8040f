import type { JobFailure } from '@redrive/catalog'
import type { Log } from './log.ts'

/** 1 min: the interval at which a repeated failure is logged again. */
const REPEAT_MS = 60_000

/** Returns a function that logs failed background jobs: each new failure immediately, a repeated one per minute. */
export function logJobFailures(log: Log): (failure: JobFailure) => void {
  const logged = new Map<string, { readonly reason: string; readonly at: number }>()
  return ({ job, source, error }) => {
    const subject = source === undefined ? `"${job}"` : `"${job}" of source "${source}"`
    const reason = reasonOf(error)
    const last = logged.get(subject)
    const now = performance.now()
    if (last?.reason === reason && now - last.at < REPEAT_MS) return
    logged.set(subject, { reason, at: now })
    log.warn({ job, source }, `Background job ${subject} failed: ${reason} It will be retried.`)
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) {
    return [error.message, ...error.errors.map(reasonOf)].join(' ')
  }
  const text = error instanceof Error ? error.message : String(error)
  return /[.!?]$/.test(text) ? text : `${text}.`
}
