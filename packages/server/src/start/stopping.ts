import { withTimeout } from '@redrive/runtime'
import type { Log } from './log.ts'

/** A step of ending: what is waited for, in words for people. */
export interface Ending {
  readonly what: string
  readonly end: () => Promise<unknown>
}

export interface StopResult {
  /** Everything was ended in time, and nothing failed. */
  readonly isClean: boolean
}

/**
 * Ends everything, step by step; the endings of one step go on together. What fails is told and does not keep
 * the rest from ending. When the time is over, what is left is left.
 */
export async function endAll(
  steps: readonly (readonly Ending[])[],
  { graceMs, log }: { readonly graceMs: number; readonly log: Log },
): Promise<StopResult> {
  const late = new AbortController()
  const open = new Set(steps.flat().map(({ what }) => what))
  let hasFailed = false
  const one = async ({ what, end }: Ending) => {
    try {
      await end()
    } catch (error) {
      hasFailed = true
      log.error({ err: error }, `Ending failed: ${what}.`)
    }
    open.delete(what)
  }
  const all = async () => {
    for (const step of steps) {
      if (late.signal.aborted) return
      await Promise.all(step.map(one))
    }
  }
  const how = await withTimeout(all(), graceMs, () => 'late' as const)
  if (how !== 'late') return { isClean: !hasFailed }
  late.abort()
  log.error(
    `Not ended within ${graceMs} ms: ${[...open].join(', ')}. Leases run out by themselves.`,
  )
  return { isClean: false }
}
