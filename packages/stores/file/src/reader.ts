import { parseStoredDeadLetter, type StoredDeadLetter } from '@redrive/runtime'
import { openSegment } from './folders.ts'
import { hashOfId } from './hashing.ts'
import type { Ref, Segment } from './segment.ts'

/** 1 MB in one read, or one longer line: a page of large dead letters must not fill the memory twice. */
const MAX_SPAN_BYTES = 2 ** 20
/** 16 KB: reading that many unneeded bytes costs less than a second read. */
const MAX_GAP_BYTES = 2 ** 14

/** Adjacent lines of a file, read together. */
interface Span {
  readonly segment: Segment
  readonly from: number
  end: number
  readonly rows: number[]
}

/**
 * Reads the dead letters at those positions, in that order. Undefined where none exists any more: another
 * process has removed the file, or the line is damaged.
 */
export async function readAll(
  directory: string,
  refs: readonly Ref[],
): Promise<readonly (StoredDeadLetter | undefined)[]> {
  const found: (StoredDeadLetter | undefined)[] = []
  for (const span of spansOf(refs)) {
    const bytes = await readSpan(directory, span)
    for (const row of span.rows) found.push(bytes && pick(bytes, span, row))
  }
  return found
}

function spansOf(refs: readonly Ref[]): readonly Span[] {
  const spans: Span[] = []
  for (const { segment, row } of refs) {
    const from = segment.rows.offset[row] ?? 0
    const end = from + (segment.rows.length[row] ?? 0)
    const last = spans.at(-1)
    if (last !== undefined && last.segment === segment && isNear(last, from, end)) {
      last.end = end
      last.rows.push(row)
    } else {
      spans.push({ segment, from, end, rows: [row] })
    }
  }
  return spans
}

const isNear = (span: Span, from: number, end: number) =>
  from >= span.end && from - span.end <= MAX_GAP_BYTES && end - span.from <= MAX_SPAN_BYTES

async function readSpan(
  directory: string,
  { segment, from, end }: Span,
): Promise<Buffer | undefined> {
  const file = await openSegment(directory, segment.id)
  if (file === undefined) return undefined
  try {
    const buffer = Buffer.allocUnsafe(end - from)
    const { bytesRead } = await file.read(buffer, 0, buffer.length, from)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

function pick(bytes: Buffer, { segment, from }: Span, row: number): StoredDeadLetter | undefined {
  const { rows } = segment
  const start = (rows.offset[row] ?? 0) - from
  try {
    const text = bytes.toString('utf8', start, start + (rows.length[row] ?? 0))
    const deadLetter = parseStoredDeadLetter(text)
    return rows.isOf(row, hashOfId(deadLetter.id)) ? deadLetter : undefined
  } catch {
    // Damaged on disk. It must not hide the other lines.
    return undefined
  }
}
