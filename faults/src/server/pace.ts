import type { Span } from '../standstill.ts'

export interface Pace {
  /** Each second while it went on. */
  readonly perSecond: number
  /** Each second, the gaps included. */
  readonly overall: number
  /** Between each and the next. */
  readonly gaps: readonly Span[]
}

/** A second without anything: it stood still, because who had it died. */
const GAP_MS = 1_000

export const lengthOf = ({ from, to }: Span): number => to - from

/** Of what came at these moments and should have come at this rate. */
export function paceOf(moments: readonly number[], ratePerSecond: number): Pace {
  const gaps = moments.slice(1).map((to, at): Span => ({ from: moments[at] ?? to, to }))
  const stoodMs = gaps.map((gap, at) =>
    lengthOf(gap) > GAP_MS ? missedMs(gap, moments.slice(at + 1), ratePerSecond) : 0,
  )
  const lastedMs = (moments.at(-1) ?? 0) - (moments[0] ?? 0)
  return {
    perSecond: (gaps.length * 1_000) / (lastedMs - stoodMs.reduce((sum, ms) => sum + ms, 0)),
    overall: (gaps.length * 1_000) / lastedMs,
    gaps,
  }
}

/** What comes all at once after a gap was sent in it: only the rest of the gap was missed. */
function missedMs(gap: Span, after: readonly number[], ratePerSecond: number): number {
  const length = lengthOf(gap)
  const near = after.filter((at) => at <= gap.to + length)
  const early = near.map((at, index) => (index * 1_000) / ratePerSecond - (at - gap.to))
  return Math.max(0, length - Math.max(0, ...early))
}
