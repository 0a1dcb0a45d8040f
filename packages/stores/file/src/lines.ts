import { FAILURE_CLASSES } from '@redrive/core'
import { parseStoredDeadLetter, type StoredDeadLetter } from '@redrive/runtime'
import { hashOfId, hashOfText, type IdHash } from './hashing.ts'
import type { SegmentId } from './layout.ts'
import type { Entry } from './rows.ts'
import type { Deletions } from './segment.ts'

/** The start of a line that records deletions. Dead letters start differently. */
const GONE_START = '{"v":1,"gone":'
/** 10,000 in a line: about 100 KB, so that a cleanup never writes longer lines. */
const MAX_OFFSETS = 10_000

/** Writes complete lines that list the deleted lines by segment. */
export function writeGone(gone: Deletions): string {
  let text = ''
  for (const [segment, offsets] of gone) {
    for (let from = 0; from < offsets.length; from += MAX_OFFSETS) {
      const at = offsets.slice(from, from + MAX_OFFSETS)
      text += `${GONE_START}${JSON.stringify(segment)},"at":${JSON.stringify(at)}}\n`
    }
  }
  return text
}

export type Line =
  | { readonly kind: 'saved'; readonly deadLetter: StoredDeadLetter }
  | { readonly kind: 'gone'; readonly segment: SegmentId; readonly offsets: readonly number[] }
  /** Torn, damaged, or written by a later version. */
  | { readonly kind: 'unreadable' }

export function readLine(text: string): Line {
  try {
    if (text.startsWith(GONE_START)) return readGone(text)
    return readSaved(text)
  } catch {
    // One unreadable line must not hide the others.
    return { kind: 'unreadable' }
  }
}

function readSaved(text: string): Line {
  const deadLetter = parseStoredDeadLetter(text)
  const { id, sink, savedAt } = deadLetter
  const isWhole = typeof id === 'string' && typeof sink === 'string' && Number.isFinite(savedAt)
  return isWhole ? { kind: 'saved', deadLetter } : { kind: 'unreadable' }
}

function readGone(text: string): Line {
  const { gone, at } = JSON.parse(text) as { readonly gone: unknown; readonly at: unknown }
  if (typeof gone !== 'string' || !Array.isArray(at)) return { kind: 'unreadable' }
  return { kind: 'gone', segment: gone, offsets: at.filter((one) => Number.isSafeInteger(one)) }
}

export function entryOf(
  deadLetter: StoredDeadLetter,
  place: Pick<Entry, 'offset' | 'length'>,
  hash: IdHash = hashOfId(deadLetter.id),
): Omit<Entry, 'sink'> {
  const { savedAt, event, job, failure } = deadLetter
  return {
    ...place,
    hash,
    savedAt,
    type: hashOfText(event.type),
    job: hashOfText(job),
    class: FAILURE_CLASSES.indexOf(failure.class),
  }
}
