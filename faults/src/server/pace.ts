import type { Span } from '../evidence/stalls.ts'

export interface Pace {
  /** Rate per second while it was active. */
  readonly perSecond: number
  /** Rate per second, with the gaps. */
  readonly overall: number
  /** The time between each and the next. */
  readonly gaps: readonly Span[]
}

/** One second without a message is a gap: the process that held the work died. */
const GAP_MS = 1_000

export const lengthOf = ({ from, to }: Span): number => to - from

/** Computes the pace of messages that arrived at these times and were expected at this rate. */
export function paceOf(times: readonly number[], ratePerSecond: number): Pace {
  const gaps = times.slice(1).map((to, at): Span => ({ from: times[at] ?? to, to }))
  const stoodMs = gaps.map((gap, at) =>
    lengthOf(gap) > GAP_MS ? missedMs(gap, times.slice(at + 1), ratePerSecond) : 0,
  )
  const lastedMs = (times.at(-1) ?? 0) - (times[0] ?? 0)
  return {
    perSecond: (gaps.length * 1_000) / (lastedMs - stoodMs.reduce((sum, ms) => sum + ms, 0)),
    overall: (gaps.length * 1_000) / lastedMs,
    gaps,
  }
}

/** Returns the missed part of a gap. Messages that arrive together after a gap were sent during it. */
function missedMs(gap: Span, after: readonly number[], ratePerSecond: number): number {
  const length = lengthOf(gap)
  const near = after.filter((at) => at <= gap.to + length)
  const early = near.map((at, index) => (index * 1_000) / ratePerSecond - (at - gap.to))
  return Math.max(0, length - Math.max(0, ...early))
}
