const WHOLE = new Intl.NumberFormat('en-US')

/** Formats a number: `38,112`. */
export const number = (value: number): string => WHOLE.format(value)

/** Formats a count: `1 message`, `38,112 messages`. */
export const counted = (count: number, one: string, many: string = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`

const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000]

/** Formats a duration in its two largest units: `3 min 10 s`. */
export function duration(ms: number): string {
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`
  const whole = Math.round(ms / SECOND) * SECOND
  const parts = UNITS.map(([size, name], at) => {
    const within = UNITS[at - 1]?.[0] ?? Number.POSITIVE_INFINITY
    return { count: Math.floor((whole % within) / size), name }
  })
  const first = parts.findIndex(({ count }) => count > 0)
  return parts
    .slice(first, first + 2)
    .filter(({ count }) => count > 0)
    .map(({ count, name }) => `${number(count)} ${name}`)
    .join(' ')
}
const UNITS = [
  [DAY, 'd'],
  [HOUR, 'h'],
  [MINUTE, 'min'],
  [SECOND, 's'],
] as const

/** Formats an age in one unit, for a column: `now`, `24 s`, `17 min`, `3 h`, `12 d`. */
export function age(ms: number): string {
  const [size, name] = UNITS.find(([least]) => ms >= least) ?? [SECOND, 's']
  return ms < SECOND ? 'now' : `${number(Math.floor(ms / size))} ${name}`
}

/** Formats a time relative to now: `17 min ago`, `in 3 h`. */
export function relative(now: number, at: number): string {
  if (Math.abs(at - now) < SECOND) return 'now'
  return at > now ? `in ${age(at - now)}` : `${age(now - at)} ago`
}

/** Formats an exact time. A number that is not a valid date is returned unchanged. */
export function isoTime(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString()
}

const BARS = '▁▂▃▄▅▆▇█'

/** Returns one bar per value; the highest value gets a full bar. Only zeros give a flat line. */
export function spark(values: readonly number[]): string {
  const highest = Math.max(1, ...values)
  return values
    .map((value) => {
      const level = value <= 0 ? 0 : Math.max(1, Math.round((value / highest) * (BARS.length - 1)))
      return BARS[level]
    })
    .join('')
}

/** Formats a size: `1.5 KiB`. */
export function bytes(count: number): string {
  if (count < 1_024) return `${count} B`
  const power = Math.min(3, Math.floor(Math.log2(count) / 10))
  return `${(count / 1_024 ** power).toFixed(1)} ${['B', 'KiB', 'MiB', 'GiB'][power]}`
}
