import { readFile, rename, stat, writeFile } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { FAILURE_CLASSES } from '@redrive/core'
import { FILE_MODE } from './folders.ts'
import { indexPath, type SegmentId, segmentPath } from './layout.ts'
import { ROW_BYTES, Rows } from './rows.ts'
import { Segment } from './segment.ts'

/**
 * What a segment has, so that opening a store does not read everything. A cache: whatever is wrong
 * with it, the segment is read instead and the index written anew.
 *
 * First line: how it was made, and the checksum of the rest. Second line: a header in JSON. Then the
 * columns of the rows.
 */
const FIRST_LINE = /^redrive-index 1 ([0-9a-f]{8})\n/
/** Changes of the columns or of the classes make other indexes unreadable, which is what they are. */
const SHAPE: string = `${ROW_BYTES} ${FAILURE_CLASSES.join(' ')}`

interface Header {
  readonly shape: string
  /** So many bytes of the segment are in it. */
  readonly covers: number
  /** Of the segment then. A file that did not grow and has another time was changed by somebody. */
  readonly size: number
  readonly mtimeMs: number
  readonly isFinal: boolean
  readonly count: number
  readonly sinks: string[]
  readonly gone: [SegmentId, number[]][]
}

export async function writeIndex(directory: string, segment: Segment): Promise<void> {
  const { id, rows, scanned, isFinal, sinks, gone } = segment
  const { size, mtimeMs } = await look(directory, id)
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
  // Never half an index under its name, whoever else writes the same one now.
  const draft = `${path}.${randomUUID()}.tmp`
  await writeFile(draft, Buffer.concat([Buffer.from(first), rest]), { mode: FILE_MODE })
  await rename(draft, path)
}

/** The segment as its index knows it; undefined when there is none that can be trusted. */
export async function readIndex(directory: string, id: SegmentId): Promise<Segment | undefined> {
  const [bytes, found] = await Promise.all([
    readFile(indexPath(directory, id)),
    look(directory, id),
  ])
  const read = split(bytes)
  if (read === undefined) return undefined
  const { header, columns } = read
  if (header.shape !== SHAPE || columns.length !== header.count * ROW_BYTES) return undefined
  if (header.size > found.size) return undefined
  const isGrown = found.size > header.size
  if (isGrown ? header.isFinal : header.mtimeMs !== found.mtimeMs) return undefined
  const { count, sinks, gone, covers, size } = header
  const rows = Rows.fromBuffer(count, new Uint8Array(columns).buffer)
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

/** Whole milliseconds: copies of a folder often keep no more. */
async function look(directory: string, id: SegmentId): Promise<Pick<Header, 'size' | 'mtimeMs'>> {
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
