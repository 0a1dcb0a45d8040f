import { RedriveError } from '@redrive/core'
import type { StoreFilter } from '@redrive/runtime'

/** Digits of the largest whole number: with so many, text and numbers sort alike. */
const DIGITS = 16

// A place is a moment, a colon and an id: where a dead letter stands in the list, also when it is gone.

/** A moment as text that sorts like the number. */
export function momentOf(savedAt: number): string {
  if (!Number.isSafeInteger(savedAt) || savedAt < 0) {
    throw new RedriveError(
      'PAYLOAD_INVALID',
      `savedAt: expected whole milliseconds since 1970, got ${savedAt}`,
    )
  }
  return String(savedAt).padStart(DIGITS, '0')
}

export const savedAtOf = (place: string): number => Number(place.slice(0, DIGITS))
export const idOf = (place: string): string => place.slice(DIGITS + 1)

/** Bounds for ZRANGEBYLEX. */
export interface Range {
  readonly from: string
  readonly to: string
}

/** The places of all that the times of a filter let through, behind the cursor. */
export function rangeOf(filter: StoreFilter, after: string | undefined): Range {
  const { savedAfter, savedBefore } = filter
  const start = savedAfter === undefined ? '' : startAfter(savedAfter)
  const cursor = after === undefined ? '' : readCursor(after)
  const from = cursor > start ? `(${cursor}` : `[${start}`
  return { from, to: savedBefore === undefined ? '+' : endBefore(savedBefore) }
}

/** All places before a moment; none of them when it is before 1970. */
export const endBefore = (moment: number): string =>
  moment <= 0 ? '(' : `(${momentOf(atMostSafe(Math.ceil(moment)))}`

/** ';' comes next after ':', so this is behind every id of that moment. */
const startAfter = (moment: number): string =>
  moment < 0 ? '' : `${momentOf(atMostSafe(Math.floor(moment)))};`

/** Somebody may say `Infinity` for no end. */
const atMostSafe = (moment: number): number => Math.min(moment, Number.MAX_SAFE_INTEGER)

export const writeCursor = (place: string): string => Buffer.from(place).toString('base64url')

function readCursor(after: string): string {
  const place = Buffer.from(after, 'base64url').toString()
  if (!/^\d{16}:/.test(place)) throw new TypeError(`list: ${after} is not a cursor of this store`)
  return place
}
