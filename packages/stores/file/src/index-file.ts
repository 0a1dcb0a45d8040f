import { readFile, rename, stat, writeFile } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { FAILURE_CLASSES } from '@redrive/core'
import { FILE_MODE } from './folders.ts'
import { indexPath, type SegmentId, segmentPath } from './layout.ts'
import { ROW_BYTES, EntryColumns } from './rows.ts'
import { Segment } from './segment.ts'

/**
 * The index of a segment, so that opening a store does not read everything. It is a cache: with any
 * error, the segment is read instead and the index is written again.
 *
 * First line: how it was made, and the checksum of the rest. Second line: a header in JSON. Then the
 * columns of the rows.
 */
const FIRST_LINE = /^redrive-index 1 ([0-9a-f]{8})\n/
/** A change of the columns or of the classes makes older indexes unreadable, as intended. */
const SHAPE: string = `${ROW_BYTES} ${FAILURE_CLASSES.join(' ')}`

interface Header {
  readonly shape: string
  /** Number of bytes of the segment that it covers. */
  readonly covers: number
  /** Size of the segment at that time. A file with the same size and another time was changed by another program. */
  readonly size: number
  readonly mtimeMs: number
  readonly isFinal: boolean
  readonly count: number
  readonly sinks: string[]
  readonly gone: [SegmentId, number[]][]
}

export async function writeIndex(directory: string, segment: Segment): Promise<void> {
  const { id, rows, scanned, isFinal, sinks, gone } = segment
  const { size, mtimeMs } = await statSegment(directory, id)
  const header: Header = {
    shape: SHAPE,
    covers: scanned,
    size,
    mtimeMs,
    isFinal,
    count: rows.count,
    sinks,
    gone: [...gone],
  }
  const rest = Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), rows.toBuffer()])
  const first = `redrive-index 1 ${crc32(rest).toString(16).padStart(8, '0')}\n`
  const path = indexPath(directory, id)
  // Never half an index under its name, even when another process writes the same one now.
  const draft = `${path}.${randomUUID()}.tmp`
  await writeFile(draft, Buffer.concat([Buffer.from(first), rest]), { mode: FILE_MODE })
  await rename(draft, path)
}

/** Returns the segment from its index; undefined when no valid index exists. */
export async function readIndex(directory: string, id: SegmentId): Promise<Segment | undefined> {
  const [bytes, found] = await Promise.all([
    readFile(indexPath(directory, id)),
    statSegment(directory, id),
  ])
  const read = split(bytes)
  if (read === undefined) return undefined
  const { header, columns } = read
  if (header.shape !== SHAPE || columns.length !== header.count * ROW_BYTES) return undefined
  if (header.size > found.size) return undefined
  const isGrown = found.size > header.size
  if (isGrown ? header.isFinal : header.mtimeMs !== found.mtimeMs) return undefined
  const { count, sinks, gone, covers, size } = header
  const rows = EntryColumns.fromBuffer(count, new Uint8Array(columns).buffer)
  const segment = new Segment(id, {
    rows,
    sinks,
    gone: new Map(gone),
    scanned: covers,
    seenSize: size,
  })
  segment.isFinal = header.isFinal
  return segment
}

/** Reads size and time in whole milliseconds: copies of a folder often keep no more. */
async function statSegment(
  directory: string,
  id: SegmentId,
): Promise<Pick<Header, 'size' | 'mtimeMs'>> {
  const { size, mtimeMs } = await stat(segmentPath(directory, id))
  return { size, mtimeMs: Math.floor(mtimeMs) }
}

function split(bytes: Buffer): { readonly header: Header; readonly columns: Buffer } | undefined {
  const first = FIRST_LINE.exec(bytes.toString('latin1', 0, 64))
  if (first === null) return undefined
  const rest = bytes.subarray(first[0].length)
  if (crc32(rest) !== Number.parseInt(first[1] ?? '', 16)) return undefined
  const end = rest.indexOf('\n')
  const header = JSON.parse(rest.toString('utf8', 0, end)) as Header
  return { header, columns: rest.subarray(end + 1) }
}
