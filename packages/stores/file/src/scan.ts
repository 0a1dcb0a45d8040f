import type { FileHandle } from 'node:fs/promises'
import { openSegment } from './folders.ts'
import type { Segment } from './segment.ts'

/** 1 MB at a time: some milliseconds of reading lines, then other tasks can run. */
const CHUNK_BYTES = 2 ** 20
const LINE_END = 0x0a

export type OnLine = (
  text: string,
  place: { readonly offset: number; readonly length: number },
) => void

/**
 * Reads the lines of a segment from the end of the last scan. A last line without its end is being
 * written, or its writer crashed: it is left for the next scan. Returns false when the file is gone.
 */
export async function scan(directory: string, segment: Segment, onLine: OnLine): Promise<boolean> {
  const file = await openSegment(directory, segment.id)
  if (file === undefined) return false
  try {
    for (;;) {
      const chunk = await readLines(file, segment.scanned)
      if (chunk === undefined) return true
      splitLines(chunk, segment.scanned, onLine)
      segment.scanned += chunk.length
    }
  } finally {
    await file.close()
  }
}

/** Reads complete lines from there on; more than a chunk only when the first line is longer. */
async function readLines(file: FileHandle, from: number): Promise<Buffer | undefined> {
  for (let size = CHUNK_BYTES; ; size *= 2) {
    const buffer = Buffer.allocUnsafe(size)
    const { bytesRead } = await file.read(buffer, 0, size, from)
    const end = buffer.subarray(0, bytesRead).lastIndexOf(LINE_END) + 1
    if (end > 0) return buffer.subarray(0, end)
    if (bytesRead < size) return undefined
  }
}

function splitLines(chunk: Buffer, start: number, onLine: OnLine): void {
  for (let from = 0; from < chunk.length; ) {
    const end = chunk.indexOf(LINE_END, from)
    const length = end - from
    onLine(chunk.toString('utf8', from, end), { offset: start + from, length })
    from = end + 1
  }
}
