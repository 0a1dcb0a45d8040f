import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError, EXIT } from '../exit.ts'
import { LOCK, takeLock, TAKEOVER } from './lock.ts'
import { type Marker, NEW_MARKER, readMarker, writeMarker } from './marker.ts'
import { putBackCommandLine } from './quoted.ts'

/** A folder that only this process uses. */
export interface LockedFolder {
  readonly path: string
  /** Lets another process use the folder. */
  readonly release: () => void
}

/** The folder with all data of `redrive dev`. */
export interface DevFolder {
  readonly path: string
  readonly marker: Marker
  /** Whether this start creates the database files. */
  readonly isNew: boolean
}

/** Exists when the catalog may have messages of the user's broker, which are nowhere else. */
export const ATTACHED = 'attached.json'
/** All files of this folder, for git. */
const IGNORE = '*\n'

/** The names that an interrupted first start can leave without a marker. */
const BEFORE_MARKER = [LOCK, TAKEOVER, NEW_MARKER]
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
    if (!isMarked && readdirSync(path).some((name) => !BEFORE_MARKER.includes(name))) {
      throw new CommandError(
        EXIT.conflict,
        `The folder "${path}" has other files, and nothing was changed. Choose an empty or new folder with --dir.`,
      )
    }
    return { path, release: takeLock(path) }
  })
}

/** Returns whether the folder may have messages that are nowhere else. */
export const hasMessages = (path: string): boolean => existsSync(join(path, ATTACHED))

/** Deletes the data that `redrive dev` created in the folder, and no other file. No PostgreSQL may use it. */
export function clearFolder({ path }: LockedFolder): void {
  const marker = readMarker(path)
  if (marker === undefined) return
  if (hasMessages(path)) {
    const queue = typeof marker.mode === 'object' ? marker.mode.queue : 'QUEUE'
    const command = putBackCommandLine(queue, join(path, 'redrive.config.json'))
    throw new CommandError(
      EXIT.conflict,
      `The folder "${path}" may have messages of your broker that are nowhere else, and nothing was deleted. To return them, start redrive dev --attach without --fresh, and run in another terminal: ${command}. Then stop it and delete the folder.`,
    )
  }
  explained(path, () => {
    for (const name of CREATED) rmSync(join(path, name), { recursive: true, force: true })
    // The marker is replaced last, so that a later start continues an interrupted deletion. The databases of the
    // user keep their tables.
    createMarker(path, marker.databases)
  })
}

/** Reads the settings of the folder. The first start creates them. */
export function readFolder({ path }: LockedFolder): DevFolder {
  return explained(path, () => {
    const marker = readMarker(path) ?? createMarker(path)
    return { path, marker, isNew: !existsSync(join(path, 'postgres')) }
  })
}

function createMarker(path: string, databases: readonly string[] = []): Marker {
  const password = randomBytes(18).toString('hex')
  const created: Marker = { redrive: 'dev', password, databases }
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
