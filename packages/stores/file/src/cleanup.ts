import { readdir, rm, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Entries } from './entries.ts'
import { isCode } from './errors.ts'
import { syncFolder } from './folders.ts'
import { dayOf, indexPath, SEGMENT_END, segmentPath } from './layout.ts'
import { writeGone } from './lines.ts'
import type { ResolvedOptions } from './options.ts'
import { DEAD, LIVE } from './rows.ts'
import { addGone, type Deletions, type Segment } from './segment.ts'
import type { Writer } from './writer.ts'

const DAY_MS = 86_400_000

interface Plan {
  /** Files without live dead letters, in the order of removal. */
  readonly files: readonly Segment[]
  /** Lines to mark as deleted, because their files have live ones or are still open. */
  readonly gone: Deletions
  /** Deletions that a removed file records about files that stay. */
  readonly carried: Deletions
}

/** Removes dead letters saved before that time: whole files when all their lines are old, otherwise line by line. */
export async function cleanUp(
  options: ResolvedOptions,
  entries: Entries,
  writer: Writer,
  savedBefore: number,
): Promise<number> {
  const ours = [...entries.segments.values()].find(({ isOurs }) => isOurs)
  if (ours !== undefined && ours.rows.count > 0 && !keepsAny(ours, savedBefore)) await writer.seal()
  const plan = planOf(entries, savedBefore)
  let count = await recordDeletions(entries, writer, plan)
  for (const segment of plan.files) {
    if (await hasGrown(options.directory, segment)) continue
    count += segment.live
    await removeSegment(options.directory, segment)
    entries.drop(segment)
  }
  await tidyFolders(options, plan.files)
  return count
}

function planOf(entries: Entries, savedBefore: number): Plan {
  const all = [...entries.segments.values()].sort((one, other) => (one.id < other.id ? -1 : 1))
  const files = all.filter((one) => one.isFinal && !keepsAny(one, savedBefore))
  const goes = new Set(files)
  const gone: Deletions = new Map()
  for (const segment of all) {
    if (!goes.has(segment)) addOld(segment, savedBefore, gone)
  }
  return { files, gone, carried: carriedBy(files, entries) }
}

function keepsAny(segment: Segment, savedBefore: number): boolean {
  const { rows } = segment
  if (segment.live === 0 || segment.newest < savedBefore) return false
  for (let row = 0; row < rows.count; row++) {
    if (rows.state[row] === LIVE && (rows.savedAt[row] ?? 0) >= savedBefore) return true
  }
  return false
}

/** Adds old lines, including shadowed ones: those would replace the deleted line otherwise. */
function addOld({ id, rows, oldest }: Segment, savedBefore: number, gone: Deletions): void {
  if (oldest >= savedBefore) return
  const offsets: number[] = []
  for (let row = 0; row < rows.count; row++) {
    const isOld = (rows.savedAt[row] ?? 0) < savedBefore
    if (isOld && rows.state[row] !== DEAD) offsets.push(rows.offset[row] ?? 0)
  }
  if (offsets.length > 0) gone.set(id, offsets)
}

/**
 * Returns the deletions that only these files record. If such a file were removed before the file it
 * refers to, a crash in between would restore the deleted dead letter.
 */
function carriedBy(files: readonly Segment[], entries: Entries): Deletions {
  const carried: Deletions = new Map()
  const before = new Set<string>()
  for (const segment of files) {
    before.add(segment.id)
    for (const [id, offsets] of segment.gone) {
      if (!before.has(id) && entries.segments.has(id)) addGone(carried, id, offsets)
    }
  }
  return carried
}

/** Records the deletions. Returns how many of them were live. */
async function recordDeletions(
  entries: Entries,
  writer: Writer,
  { gone, carried }: Plan,
): Promise<number> {
  const lines = Buffer.from(writeGone(gone) + writeGone(carried))
  if (lines.length === 0) return 0
  let count = 0
  await writer.append({
    name: 'cleanup',
    lines: () => lines,
    written: (segment) => {
      for (const [id, offsets] of [...gone, ...carried]) segment.recordDeletions(id, offsets)
      for (const [id, offsets] of gone) {
        const target = entries.segments.get(id)
        if (target === undefined) continue
        for (const offset of offsets) {
          const row = target.rows.rowAt(offset)
          if (row >= 0 && entries.kill({ segment: target, row })) count += 1
        }
      }
    },
  })
  return count
}

/**
 * Checks whether a file has grown. A process whose clock stopped (a machine that slept for days) may
 * write to a file that looked finished. Then it is not finished, and the next scan reads it.
 */
async function hasGrown(directory: string, segment: Segment): Promise<boolean> {
  try {
    const { size } = await stat(segmentPath(directory, segment.id))
    if (size === Math.max(segment.scanned, segment.seenSize)) return false
    segment.isFinal = false
    return true
  } catch (error) {
    if (isCode(error, 'ENOENT')) return false
    throw error
  }
}

async function removeSegment(directory: string, { id }: Segment): Promise<void> {
  for (const path of [segmentPath(directory, id), indexPath(directory, id)]) {
    await unlink(path).catch((error: unknown) => {
      // Another process cleans up at the same time.
      if (!isCode(error, 'ENOENT')) throw error
    })
  }
}

/** Removes empty folders of past days. Folders in which a process may start a file now stay. */
async function tidyFolders(options: ResolvedOptions, files: readonly Segment[]): Promise<void> {
  const { directory, fsync, clock } = options
  const yesterday = dayOf(clock.now() - DAY_MS)
  for (const day of new Set(files.map(({ id }) => id.split('/')[0] ?? ''))) {
    const path = join(directory, day)
    try {
      const isEmpty = (await readdir(path)).every((name) => !name.endsWith(SEGMENT_END))
      if (isEmpty && day < yesterday) await rm(path, { recursive: true, force: true })
      else if (fsync !== 'never') await syncFolder(path)
    } catch (error) {
      if (!isCode(error, 'ENOENT')) throw error
    }
  }
}
