import { setTimeout as after } from 'node:timers/promises'
import { type Entry, trueNow } from './history.ts'

/** A time range. */
export interface Span {
  readonly from: number
  readonly to: number
}

const LOOK_MS = 100
/** 200 ms: a process with work to do is never that late on a machine that is not stalled. */
const LATE_MS = 200

const nothing = () => Promise.resolve()

/**
 * Reports when this process did not run for a while, or waited that long for `beat`. `beat` is a
 * small request to a server, repeated all the time. The returned function stops the watch.
 */
export function watchStandstills(
  report: (standstill: Span) => void,
  beat: () => Promise<unknown> = nothing,
): () => void {
  let isOver = false
  const watch = async () => {
    for (let since = performance.now(); !isOver; ) {
      await after(LOOK_MS, undefined, { ref: false })
      // A server that is down on purpose is not a stall.
      await beat().catch(() => undefined)
      const now = performance.now()
      const to = trueNow()
      if (now - since > LOOK_MS + LATE_MS) report({ from: Math.floor(to - (now - since)), to })
      since = now
    }
  }
  void watch()
  return () => {
    isOver = true
  }
}

export const standstillsIn = (entries: readonly Entry[]): readonly Span[] =>
  entries.flatMap((entry) => (entry.what === 'stood_still' ? [entry] : []))

/** Returns whether a stall overlaps a wait. */
export const isDisturbed = (wait: Span, standstills: readonly Span[]): boolean =>
  standstills.some(({ from, to }) => from < wait.to && to > wait.from)

/** Returns how much of this time one watcher reported as stalled. */
export function stoodMs({ from, to }: Span, standstills: readonly Span[]): number {
  const parts = standstills.map((one) => Math.min(to, one.to) - Math.max(from, one.from))
  return parts.reduce((sum, ms) => sum + Math.max(0, ms), 0)
}
