import type { StoredDeadLetter } from '@redrive/runtime'
import type { Entries } from './entries.ts'
import { hashOfId, hexOf } from './hashing.ts'
import { entryOf, writeGone } from './lines.ts'
import { addGone, type Deletions, type Ref, type Segment } from './segment.ts'
import type { Job } from './writer.ts'

/** Writes a dead letter, and which lines it replaces. The new line comes first: after a torn write both exist, not none. */
export function saveJob(entries: Entries, deadLetter: StoredDeadLetter, line: Buffer): Job {
  const hash = hashOfId(deadLetter.id)
  let replaced: readonly Ref[] = []
  return {
    name: hexOf(hash),
    lines: () => {
      replaced = entries.all(hash)
      if (replaced.length === 0) return line
      return Buffer.concat([line, Buffer.from(writeGone(goneOf(replaced)))])
    },
    written: (segment, offset) => {
      markDeleted(entries, segment, replaced)
      const place = { offset, length: line.length - 1 }
      entries.add(segment, entryOf(deadLetter, place, hash), deadLetter.sink)
    },
  }
}

/** Records that those lines are deleted. */
export function deleteJob(entries: Entries, refs: readonly Ref[]): Job & { wasLive(): boolean } {
  let wasLive = false
  const [first] = refs
  return {
    name: first === undefined ? '' : hexOf(first.segment.rows.hashAt(first.row)),
    lines: () => Buffer.from(writeGone(goneOf(refs))),
    written: (segment) => {
      wasLive = markDeleted(entries, segment, refs)
    },
    wasLive: () => wasLive,
  }
}

function goneOf(refs: readonly Ref[]): Deletions {
  const gone: Deletions = new Map()
  for (const { segment, row } of refs) addGone(gone, segment.id, [segment.rows.offset[row] ?? 0])
  return gone
}

function markDeleted(entries: Entries, segment: Segment, refs: readonly Ref[]): boolean {
  for (const [id, offsets] of goneOf(refs)) segment.recordDeletions(id, offsets)
  return refs.map((ref) => entries.kill(ref)).includes(true)
}
