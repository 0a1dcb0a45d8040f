import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
} from 'node:fs'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { diskError, isCode } from './errors.ts'
import { type SegmentId, segmentPath } from './layout.ts'

/** Dead letters contain bodies and headers of events: only the owner may read them. */
export const FILE_MODE = 0o600
const FOLDER_MODE = 0o700

/**
 * Creates the folder and its missing parents, for the owner only. Syncs them, so that they survive a power
 * cut. An existing folder keeps its permissions: its owner chose them.
 */
export async function makeFolder(path: string, isSynced: boolean): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: FOLDER_MODE })
  if (first === undefined || !isSynced) return
  for (let folder = path; folder !== dirname(first); folder = dirname(folder)) {
    await syncFolder(dirname(folder))
  }
}

/**
 * Creates the directory of a store like `makeFolder`. Throws when this process cannot use it, so that a wrong path
 * stops the start of a program, not its first failure.
 */
export function openDirectory(path: string, isSynced: boolean): void {
  try {
    const made = makeMissing(path)
    readdirSync(path)
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
    if (!isSynced || process.platform === 'win32') return
    for (const folder of made) syncNow(dirname(folder))
  } catch (cause) {
    throw diskError(path, cause)
  }
}

/** Creates the missing folders and returns them. `mkdirSync` with `recursive` never returns below /proc. */
function makeMissing(path: string): readonly string[] {
  if (existsSync(path)) return []
  const parents = makeMissing(dirname(path))
  try {
    mkdirSync(path, { mode: FOLDER_MODE })
  } catch (error) {
    // Another process may have created it in the meantime.
    if (!isCode(error, 'EEXIST')) throw error
  }
  return [...parents, path]
}

function syncNow(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Syncs a folder. A new file name is safe only then: fsync of a file does not include its name. */
export async function syncFolder(path: string): Promise<void> {
  // Windows cannot open folders; there the name is written with the file.
  if (process.platform === 'win32') return
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Opens a segment for reading; returns undefined when another process has removed it. */
export async function openSegment(
  directory: string,
  id: SegmentId,
): Promise<FileHandle | undefined> {
  try {
    return await open(segmentPath(directory, id), 'r')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
}
