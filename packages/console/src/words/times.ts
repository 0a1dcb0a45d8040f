import { NBSP } from './numbers.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Returns a duration with at most two units: 20 s, 6 min, 1 h 52 min, 12 d. */
export function durationText(ms: number): string {
  const safe = Math.max(0, ms)
  if (safe < MINUTE_MS) return `${Math.floor(safe / SECOND_MS)}${NBSP}s`
  if (safe < HOUR_MS) return `${Math.floor(safe / MINUTE_MS)}${NBSP}min`
  if (safe < DAY_MS) {
    const minutes = Math.floor((safe % HOUR_MS) / MINUTE_MS)
    const hours = `${Math.floor(safe / HOUR_MS)}${NBSP}h`
    return minutes === 0 ? hours : `${hours}${NBSP}${minutes}${NBSP}min`
  }
  return `${Math.floor(safe / DAY_MS)}${NBSP}d`
}

/** How times are shown. */
export const TIME_MODES = ['relative', 'local', 'utc'] as const
export type TimeMode = (typeof TIME_MODES)[number]

/** A place where a reader is: the time zone, or that of the browser. */
export interface Zone {
  readonly timeZone?: string
}

const clock = (mode: TimeMode, { timeZone }: Zone): Intl.DateTimeFormatOptions => {
  const zone = mode === 'utc' ? 'UTC' : timeZone
  return { hourCycle: 'h23', ...(zone === undefined ? {} : { timeZone: zone }) }
}

/** A format takes 50 times as long to create as to use, and a page has hundreds of times. There are about ten. */
const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = JSON.stringify(options)
  const found = formats.get(key) ?? new Intl.DateTimeFormat('en-GB', options)
  formats.set(key, found)
  return found
}

const format = (at: number, options: Intl.DateTimeFormatOptions) => formatOf(options).format(at)

/** Returns the time of day, and the date if it is another day than `now`: 03:04, 16 Nov 03:04. */
export function clockText(at: number, now: number, mode: TimeMode, zone: Zone = {}): string {
  const base = clock(mode, zone)
  const time = format(at, { ...base, hour: '2-digit', minute: '2-digit' })
  const day = (one: number) => format(one, { ...base, day: 'numeric', month: 'short' })
  const year = (one: number) => format(one, { ...base, year: 'numeric' })
  if (year(at) !== year(now)) return `${day(at)} ${year(at)}`.replaceAll(' ', NBSP)
  return day(at) === day(now) ? time : `${day(at)} ${time}`.replaceAll(' ', NBSP)
}

/** Returns a time for a list: its age, or the time in the chosen zone. Ages end after a day, then it is the date. */
export function timeText(at: number, now: number, mode: TimeMode, zone: Zone = {}): string {
  return mode === 'relative' ? durationText(now - at) : clockText(at, now, mode, zone)
}

/** Returns the complete time for a tooltip: local, UTC and epoch milliseconds. */
export function fullTime(at: number, zone: Zone = {}): string {
  const local = format(at, { ...clock('local', zone), dateStyle: 'medium', timeStyle: 'long' })
  return `${local}\n${new Date(at).toISOString()}\n${at} ms`
}

/** Returns the name of the mode for a button: Relative, Local, CET or UTC. */
export function modeName(mode: TimeMode, now: number, zone: Zone = {}): string {
  if (mode !== 'local') return mode === 'utc' ? 'UTC' : 'Relative'
  const parts = formatOf({ ...clock('local', zone), timeZoneName: 'short' }).formatToParts(now)
  const name = parts.find(({ type }) => type === 'timeZoneName')?.value ?? 'local'
  return `Local, ${name}`
}
