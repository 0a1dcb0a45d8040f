import { setTimeout as after } from 'node:timers/promises'
import { type Entry, trueNow } from './history.ts'

/** From one moment to another. */
export interface Span {
  readonly from: number
  readonly to: number
}

const LOOK_MS = 100
/** 200 ms late: whoever has something to do on a machine that runs it is never that late. */
const LATE_MS = 200

const nothing = () => Promise.resolve()

/**
 * Tells when this process was not run for a while, or waited that long for `beat`, something small
 * that a server is asked again and again. The answer ends it.
 */
export function watchStandstills(
  tell: (standstill: Span) => void,
  beat: () => Promise<unknown> = nothing,
): () => void {
  let isOver = false
  const watch = async () => {
    for (let since = performance.now(); !isOver; ) {
      await after(LOOK_MS, undefined, { ref: false })
      // A server that is down on purpose does not stand still.
      await beat().catch(() => undefined)
      const now = performance.now()
      const to = trueNow()
      if (now - since > LOOK_MS + LATE_MS) tell({ from: Math.floor(to - (now - since)), to })
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

/** Whether anybody stood still at any moment of a wait. */
export const isDisturbed = (wait: Span, standstills: readonly Span[]): boolean =>
  standstills.some(({ from, to }) => from < wait.to && to > wait.from)

/** How much of this time was stood still, as one watcher saw it. */
export function stoodMs({ from, to }: Span, standstills: readonly Span[]): number {
  const parts = standstills.map((one) => Math.min(to, one.to) - Math.max(from, one.from))
  return parts.reduce((sum, ms) => sum + Math.max(0, ms), 0)
}
