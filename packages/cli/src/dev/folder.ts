import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError, EXIT } from '../exit.ts'
import { type Marker, MARKER, NEW_MARKER, readMarker, writeMarker } from './marker.ts'

/** A folder that only this process uses. */
export interface LockedFolder {
  readonly path: string
  /** Lets another process use the folder. */
  release(): void
}

/** The folder with all data of `redrive dev`. */
export interface DevFolder {
  readonly path: string
  /** Password of the database. */
  readonly password: string
  /** Whether this start has created the data. */
  readonly isNew: boolean
}

const LOCK = 'dev.pid'
/** Exists when the catalog may have messages of the user's broker, which are nowhere else. */
export const ATTACHED = 'attached.json'
/** All files of this folder, for git. */
const IGNORE = '*\n'

/** The names that `redrive dev` creates in its folder, except for the marker and the lock. */
const CREATED = [
  '.gitignore',
  ATTACHED,
  'postgres',
  'postgres.log',
  'postgres.new',
  'postgres.password',
  'redrive.config.json',
  'server.log',
  'shop.json',
]

/** Creates the folder, unless it exists, and reserves it for this process. */
export function lockFolder(path: string): LockedFolder {
  return explained(path, () => {
    // Root starts PostgreSQL as another user, who must be able to enter it. Secrets in it have their own mode.
    mkdirSync(path, { recursive: true, mode: process.getuid?.() === 0 ? 0o755 : 0o700 })
    const isMarked = readMarker(path) !== undefined
    if (!isMarked && readdirSync(path).some((name) => name !== LOCK && name !== NEW_MARKER)) {
      throw new CommandError(
        EXIT.conflict,
        `The folder "${path}" has other files, and nothing was changed. Choose an empty or new folder with --dir.`,
      )
    }
    const lock = join(path, LOCK)
    takeLock(lock, path)
    return { path, release: () => rmSync(lock, { force: true }) }
  })
}

/** Deletes the data that `redrive dev` created in the folder, and no other file. No PostgreSQL may use it. */
export function clearFolder({ path }: LockedFolder): void {
  if (readMarker(path) === undefined) return
  if (existsSync(join(path, ATTACHED))) {
    throw new CommandError(
      EXIT.conflict,
      `The folder "${path}" may have messages of your broker that are nowhere else, and nothing was deleted. Return them with redrive put-back, then delete the folder.`,
    )
  }
  explained(path, () => {
    // The marker is the last one, so that a later start continues an interrupted deletion.
    for (const name of [...CREATED, NEW_MARKER, MARKER])
      rmSync(join(path, name), { recursive: true, force: true })
  })
}

/** Reads the settings of the folder. The first start creates them. */
export function readFolder({ path }: LockedFolder): DevFolder {
  return explained(path, () => {
    const found = readMarker(path)
    const { password } = found ?? createMarker(path)
    return { path, password, isNew: found === undefined }
  })
}

function createMarker(path: string): Marker {
  const created: Marker = { redrive: 'dev', password: randomBytes(18).toString('hex') }
  writeMarker(path, created)
  writeFileSync(join(path, '.gitignore'), IGNORE)
  return created
}

/** Adds what to do to errors of the file system. */
function explained<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (error instanceof CommandError || code === undefined) throw error
    throw new CommandError(
      EXIT.failure,
      `Cannot use the folder "${path}": ${message}. Choose a folder that you may write to with --dir.`,
      { cause: error },
    )
  }
}

function takeLock(lock: string, path: string): void {
  const owner = existsSync(lock) ? Number(readFileSync(lock, 'utf8')) : 0
  if (owner > 0 && owner !== process.pid && isRunning(owner)) {
    throw new CommandError(
      EXIT.conflict,
      `Another redrive dev (process ${owner}) uses the folder "${path}". Stop it, or choose another folder with --dir. If process ${owner} is another program, delete "${lock}".`,
    )
  }
  writeFileSync(lock, String(process.pid))
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // The process exists, and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
