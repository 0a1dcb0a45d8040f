import type { Bar } from '../components/bar-chart.tsx'

const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000

/** A range of time and the width of one bar in it. */
export interface Range {
  readonly per: 'minute' | 'hour'
  readonly count: number
}

// biome-ignore format: one row per range
export const RANGES = {
  '2h': { per: 'minute', count: 120 },
  '24h': { per: 'hour', count: 24 },
  '7d': { per: 'hour', count: 168 },
} as const satisfies Readonly<Record<string, Range>>
export type RangeName = keyof typeof RANGES

const SPAN_MS = { minute: MINUTE_MS, hour: HOUR_MS } as const

/** Returns the start and the end of a range that ends with the current minute or hour. */
export function boundsOf({ per, count }: Range, now: number): { after: number; before: number } {
  const span = SPAN_MS[per]
  const before = (Math.floor(now / span) + 1) * span
  return { after: before - count * span, before }
}

/** Returns one bar for each minute or hour. The API leaves out those without failures. */
export function barsOf(points: readonly Bar[], range: Range, now: number): readonly Bar[] {
  const span = SPAN_MS[range.per]
  const { after } = boundsOf(range, now)
  const counts = new Map(points.map(({ at, count }) => [Math.floor(at / span), count]))
  return Array.from({ length: range.count }, (_, index) => {
    const at = after + index * span
    return { at, count: counts.get(at / span) ?? 0 }
  })
}

export const peakOf = (bars: readonly Bar[]): number => Math.max(0, ...bars.map((bar) => bar.count))

/** Returns the count of the last complete minute or hour. The current one is not complete. */
export const latestOf = (bars: readonly Bar[]): number => bars.at(-2)?.count ?? 0
