import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { CommandError, EXIT } from './exit.ts'
import type { Environment } from './io.ts'

/** Returns a folder for downloads. All projects of a user share it. Root has none that other users can read. */
export function downloadsFolder(env: Environment, name: string): string {
  const { XDG_CACHE_HOME } = env
  const { LOCALAPPDATA } = env as Readonly<Record<string, string | undefined>>
  const caches =
    XDG_CACHE_HOME ||
    (process.getuid?.() === 0
      ? '/var/cache'
      : LOCALAPPDATA || join(env.HOME || homedir(), '.cache'))
  return join(caches, 'redrive', name)
}

interface Download {
  /** For errors. */
  readonly what: string
  /** The place of the complete download. */
  readonly folder: string
  /** Returns whether the folder is complete. A program that deletes old files can damage it. */
  readonly isReady: () => boolean
}

/** Downloads into a temporary folder, and moves it to its place when it is complete. */
export async function storeDownload(
  download: Download,
  work: (unfinished: string) => Promise<void>,
): Promise<void> {
  const { what, folder } = download
  try {
    mkdirSync(dirname(folder), { recursive: true })
    const unfinished = mkdtempSync(`${folder}-`)
    try {
      await work(unfinished)
      moveInto(download, unfinished)
    } finally {
      rmSync(unfinished, { recursive: true, force: true })
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === undefined || !UNWRITABLE.has(code)) throw error
    throw new CommandError(
      EXIT.failure,
      `Cannot store ${what} in "${folder}": ${message}. Set XDG_CACHE_HOME to a folder that you may write to.`,
      { cause: error },
    )
  }
}

/** Error codes of a folder that the user cannot write to. `ENOTDIR`: the home folder of some system users is a file. */
const UNWRITABLE: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'ENOTDIR'])

/** Moves a complete download to its place. Keeps the one of another process, which may already run it. */
function moveInto({ folder, isReady }: Download, downloaded: string): void {
  if (isReady()) return
  // A damaged one is moved away first, because a rename does not replace a folder with files.
  const damaged = `${downloaded}-damaged`
  if (existsSync(folder)) renameSync(folder, damaged)
  try {
    renameSync(downloaded, folder)
  } catch (error) {
    // Another process was faster.
    if (!isReady()) throw error
  } finally {
    rmSync(damaged, { recursive: true, force: true })
  }
}
