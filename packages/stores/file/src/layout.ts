import { randomBytes } from 'node:crypto'
import { join } from 'node:path'

/**
 * The files below the directory:
 *
 *     2026-11-15/001794700800000-4f9a1c22e07b.jsonl   a segment: only one process appends to it
 *     2026-11-15/001794700800000-4f9a1c22e07b.index   its index for quick opening; rebuilt when it is lost
 *     claims/5d41402abc4b2a76b9719d911017c592.0       a process is sending that dead letter
 */
export const CLAIMS = 'claims'
export const SEGMENT_END = '.jsonl'
export const INDEX_END = '.index'
export const DAY: RegExp = /^\d{4}-\d{2}-\d{2}$/
/** 15 digits: names sort by time until the year 33658. */
const TIME_DIGITS = 15
const RANDOM_BYTES = 6

/** The name of a segment in records of other segments. Names sort by start time. */
export type SegmentId = string

export const dayOf = (now: number): string => new Date(now).toISOString().slice(0, 10)

/** Returns a unique id, even when another process starts a segment in the same millisecond. */
export function newSegmentId(now: number): SegmentId {
  const time = String(now).padStart(TIME_DIGITS, '0')
  return `${dayOf(now)}/${time}-${randomBytes(RANDOM_BYTES).toString('hex')}`
}

export const segmentPath = (directory: string, id: SegmentId): string =>
  join(directory, `${id}${SEGMENT_END}`)

export const indexPath = (directory: string, id: SegmentId): string =>
  join(directory, `${id}${INDEX_END}`)
