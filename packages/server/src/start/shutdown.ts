import { withTimeout } from '@redrive/runtime/internal'
import type { Log } from './log.ts'

/** One task of the shutdown. */
export interface ShutdownTask {
  /** Name of the task, for the log. */
  readonly what: string
  readonly end: () => Promise<unknown>
}

export interface StopResult {
  /** Every shutdown task ended in time and without an error. */
  readonly isClean: boolean
}

/**
 * Runs the shutdown steps in order; the tasks of one step run concurrently. A failure is logged and does not
 * stop the other tasks. After `graceMs` the rest is skipped.
 */
export async function endAll(
  steps: readonly (readonly ShutdownTask[])[],
  { graceMs, log }: { readonly graceMs: number; readonly log: Log },
): Promise<StopResult> {
  const late = new AbortController()
  const open = new Set(steps.flat().map(({ what }) => what))
  let hasFailed = false
  const runTask = async ({ what, end }: ShutdownTask) => {
    try {
      await end()
    } catch (error) {
      hasFailed = true
      log.error({ err: error }, `Shutdown failed for: ${what}.`)
    }
    open.delete(what)
  }
  const runSteps = async () => {
    for (const step of steps) {
      if (late.signal.aborted) return
      await Promise.all(step.map(runTask))
    }
  }
  const result = await withTimeout(runSteps(), graceMs, () => 'late' as const)
  if (result !== 'late') return { isClean: !hasFailed }
  late.abort()
  log.error(
    `Shutdown did not finish within ${graceMs} ms: ${[...open].join(', ')}. Their leases expire automatically.`,
  )
  return { isClean: false }
}
