/** No-break space, so that a number and its unit stay on one line. */
export const NBSP = '\u00a0'

const GROUPS = new Intl.NumberFormat('en-US')

/** Returns a whole number with groups of three digits: 38,112. */
export const countText = (count: number): string => GROUPS.format(Math.round(count))

/** Returns a count that stops at a limit: `200+` when there are more. */
export const cappedText = (count: number, isCapped: boolean): string =>
  isCapped ? `${countText(count)}+` : countText(count)

/** Returns a count with its noun: 1 group, 3 groups. */
export const countOf = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)}${NBSP}${count === 1 ? one : many}`

/** Returns a share of 0 to 1 in percent. A small share is never 0, and a part is never 100. */
export function shareText(share: number): string {
  if (share > 0 && share < 0.01) return `<${NBSP}1${NBSP}%`
  const percent = Math.round(share * 100)
  return `${share < 1 && percent === 100 ? 99 : percent}${NBSP}%`
}

/** Returns a share of 0 to 1 in percent, with one digit after the point: 0.4 %. For limits, which must be exact. */
export const percentText = (share: number): string => `${Math.round(share * 1_000) / 10}${NBSP}%`

const KILO = 1_000
const BYTE_UNITS = ['B', 'kB', 'MB', 'GB'] as const

/** Returns a size: 412 B, 1.1 kB. */
export function bytesText(bytes: number): string {
  const power = bytes < KILO ? 0 : Math.min(3, Math.floor(Math.log10(bytes) / 3))
  const value = bytes / KILO ** power
  const digits = power === 0 || value >= 100 ? 0 : 1
  return `${value.toFixed(digits)}${NBSP}${BYTE_UNITS[power] ?? 'B'}`
}

/** Returns the highest value, at least `least`. A list of any length: `Math.max(...values)` fails for long ones. */
export const highestOf = (values: readonly number[], least = 0): number =>
  values.reduce((most, value) => Math.max(most, value), least)
