import { readdir, rm, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Entries } from './entries.ts'
import { isCode } from './errors.ts'
import { syncFolder } from './folders.ts'
import { dayOf, indexPath, SEGMENT_END, segmentPath } from './layout.ts'
import { writeGone } from './lines.ts'
import type { ResolvedOptions } from './options.ts'
import { DEAD, LIVE } from './rows.ts'
import { addGone, type Gone, type Segment } from './segment.ts'
import type { Writer } from './writer.ts'

const DAY_MS = 86_400_000

interface Plan {
  /** Files without anything to keep, in the order in which they go. */
  readonly files: readonly Segment[]
  /** Lines to be told of, because their files have others to keep or are still written to. */
  readonly gone: Gone
  /** What a file says that goes, about files that stay. */
  readonly carried: Gone
}

/** Removes what was saved before the moment: whole files where nothing else is in them, else line by line. */
export async function cleanUp(
  options: ResolvedOptions,
  entries: Entries,
  writer: Writer,
  savedBefore: number,
): Promise<number> {
  const ours = [...entries.segments.values()].find(({ isOurs }) => isOurs)
  if (ours !== undefined && ours.rows.count > 0 && !keepsAny(ours, savedBefore)) await writer.seal()
  const plan = planOf(entries, savedBefore)
  let count = await tell(entries, writer, plan)
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
  const gone: Gone = new Map()
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

/** Shadowed ones too: they would come back in place of the one that is gone. */
function addOld({ id, rows, oldest }: Segment, savedBefore: number, gone: Gone): void {
  if (oldest >= savedBefore) return
  const offsets: number[] = []
  for (let row = 0; row < rows.count; row++) {
    const isOld = (rows.savedAt[row] ?? 0) < savedBefore
    if (isOld && rows.state[row] !== DEAD) offsets.push(rows.offset[row] ?? 0)
  }
  if (offsets.length > 0) gone.set(id, offsets)
}

/**
 * Deletions that only these files tell of. When a file goes before the one it speaks of, a crash in
 * between would bring the deleted back.
 */
function carriedBy(files: readonly Segment[], entries: Entries): Gone {
  const carried: Gone = new Map()
  const before = new Set<string>()
  for (const segment of files) {
    before.add(segment.id)
    for (const [id, offsets] of segment.gone) {
      if (!before.has(id) && entries.segments.has(id)) addGone(carried, id, offsets)
    }
  }
  return carried
}

/** How many of those were there for people to see. */
async function tell(entries: Entries, writer: Writer, { gone, carried }: Plan): Promise<number> {
  const lines = Buffer.from(writeGone(gone) + writeGone(carried))
  if (lines.length === 0) return 0
  let count = 0
  await writer.append({
    name: 'cleanup',
    lines: () => lines,
    written: (segment) => {
      for (const [id, offsets] of [...gone, ...carried]) segment.tells(id, offsets)
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
 * A process whose clock stood still (a machine that slept for days) may write to what looked
 * finished. Then it is not, and the next look reads it.
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
      // Another process cleans up as well.
      if (!isCode(error, 'ENOENT')) throw error
    })
  }
}

/** Folders of past days without files go too; those in which someone may begin one now stay. */
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
