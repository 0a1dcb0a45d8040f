import type { Trouble } from '@redrive/catalog'
import type { Log } from './log.ts'

/** A minute: what goes on failing is said again so often. */
const AGAIN_MS = 60_000

/** Writes down which chores fail and why: at once, and not every few seconds. */
export function tellingTroubles(log: Log): (trouble: Trouble) => void {
  const told = new Map<string, { readonly why: string; readonly at: number }>()
  return ({ chore, source, error }) => {
    const what = source === undefined ? chore : `${chore} of ${source}`
    const why = whyOf(error)
    const last = told.get(what)
    const now = performance.now()
    if (last?.why === why && now - last.at < AGAIN_MS) return
    told.set(what, { why, at: now })
    log.warn({ chore, source }, `The chore ${what} failed: ${why} It is tried again.`)
  }
}

function whyOf(error: unknown): string {
  if (error instanceof AggregateError) {
    return [error.message, ...error.errors.map(whyOf)].join(' ')
  }
  const text = error instanceof Error ? error.message : String(error)
  return /[.!?]$/.test(text) ? text : `${text}.`
}
