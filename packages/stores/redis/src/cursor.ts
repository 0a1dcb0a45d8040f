import { RedriveError } from '@redrive/core'
import type { StoreFilter } from '@redrive/runtime'

/** Digits of the largest safe integer: with that many, text and numbers sort the same way. */
const DIGITS = 16

// A position is a time, a colon and an id. It marks a dead letter in the list, also after it was deleted.

/** Writes a time as text that sorts like the number. */
export function timeText(savedAt: number): string {
  if (!Number.isSafeInteger(savedAt) || savedAt < 0) {
    throw new RedriveError(
      'PAYLOAD_INVALID',
      `savedAt: expected whole milliseconds since 1970, got ${savedAt}`,
    )
  }
  return String(savedAt).padStart(DIGITS, '0')
}

export const savedAtOf = (position: string): number => Number(position.slice(0, DIGITS))
export const idOf = (position: string): string => position.slice(DIGITS + 1)

/** Bounds for ZRANGEBYLEX. */
export interface Range {
  readonly from: string
  readonly to: string
}

/** Returns the range of positions that the times of a filter allow, after the cursor. */
export function rangeOf(filter: StoreFilter, after: string | undefined): Range {
  const { savedAfter, savedBefore } = filter
  const start = savedAfter === undefined ? '' : startAfter(savedAfter)
  const cursor = after === undefined ? '' : readCursor(after)
  const from = cursor > start ? `(${cursor}` : `[${start}`
  return { from, to: savedBefore === undefined ? '+' : endBefore(savedBefore) }
}

/** Returns the end of all positions before a time; no position when it is before 1970. */
export const endBefore = (time: number): string =>
  time <= 0 ? '(' : `(${timeText(atMostSafe(Math.ceil(time)))}`

/** Returns the start after a time. ';' follows ':', so it is after every id of that time. */
const startAfter = (time: number): string =>
  time < 0 ? '' : `${timeText(atMostSafe(Math.floor(time)))};`

/** Limits a time, because a caller may pass `Infinity` for no end. */
const atMostSafe = (time: number): number => Math.min(time, Number.MAX_SAFE_INTEGER)

export const writeCursor = (position: string): string => Buffer.from(position).toString('base64url')

function readCursor(after: string): string {
  const position = Buffer.from(after, 'base64url').toString()
  if (!/^\d{16}:/.test(position))
    throw new TypeError(
      `list: cursor "${after}" is not a cursor of this store. Pass "nextCursor" of a page.`,
    )
  return position
}
