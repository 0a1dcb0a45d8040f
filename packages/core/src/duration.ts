/** A span of time: `'250ms' | '5s' | '2m' | '1h' | '7d'`, or a plain number of milliseconds. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** Returns the milliseconds of a duration, or `undefined` for an invalid text. Never throws: the caller collects problems. */
export function parseDuration(value: unknown): number | undefined {
  if (typeof value === 'number') return wholeMs(value)
  if (typeof value !== 'string') return undefined
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value)
  const unit = UNIT_MS[match?.[2] ?? '']
  return unit === undefined ? undefined : wholeMs(Number(match?.[1]) * unit)
}

/** Rounds to whole milliseconds, because headers and clocks have no fractions. */
function wholeMs(value: number): number | undefined {
  return Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined
}

/** Returns the shortest exact spelling, for messages and tables: `formatDuration(90_000) === '90s'`. */
export function formatDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const size = UNIT_MS[unit] ?? 1
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`
  }
  return `${ms}ms`
}
