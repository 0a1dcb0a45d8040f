import { randomUUID } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { CommandError, EXIT } from '../exit.ts'

/** The file that reserves a folder for one process. */
export const LOCK = 'redrive-dev.lock'
/** Reserves the right to delete the lock of a process that has ended. */
export const TAKEOVER: string = `${LOCK}.takeover`

/** The owner of a lock. */
const ownerSchema = z.object({
  /** Differs for each lock. Process ids repeat. */
  token: z.string(),
  pid: z.int().positive(),
  /** Process ids of other hosts mean nothing here. */
  host: z.string(),
})
type Owner = z.output<typeof ownerSchema>

/** The tokens of the locks that this process holds. */
const held = new Set<string>()

/** Reserves a folder for this process. Throws if another process uses it. Returns how to release it. */
export function takeLock(folder: string): () => void {
  const file = join(folder, LOCK)
  const own: Owner = { token: randomUUID(), pid: process.pid, host: hostname() }
  if (!createFile(file, own)) {
    deleteEnded(folder, file)
    // Another process may have been faster.
    if (!createFile(file, own)) throw inUse(folder, file)
  }
  held.add(own.token)
  return () => {
    held.delete(own.token)
    // A user may have deleted the lock, and another process may have its own there.
    if (readOwner(file)?.token === own.token) rmSync(file, { force: true })
  }
}

/** Deletes the lock of a process that has ended. Only one process at a time checks and deletes it. */
function deleteEnded(folder: string, file: string): void {
  const takeover = join(folder, TAKEOVER)
  if (!createFile(takeover, {})) {
    throw new CommandError(
      EXIT.conflict,
      `Another redrive dev starts in the folder "${folder}". Wait, and start again. If no other one runs, delete "${takeover}".`,
    )
  }
  try {
    const owner = readOwner(file)
    if (owner === undefined || !hasEnded(owner)) throw inUse(folder, file, owner)
    rmSync(file, { force: true })
  } finally {
    rmSync(takeover, { force: true })
  }
}

/** Creates a file. Returns false if it exists. */
function createFile(file: string, content: unknown): boolean {
  try {
    writeFileSync(file, JSON.stringify(content), { flag: 'wx', mode: 0o644 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Returns the owner of a lock, or undefined if the file is missing, damaged or not yet complete. */
function readOwner(file: string): Owner | undefined {
  try {
    return ownerSchema.safeParse(JSON.parse(readFileSync(file, 'utf8'))).data
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function hasEnded({ token, pid, host }: Owner): boolean {
  if (host !== hostname()) return false
  // After a restart of a container, this process may have the id of the earlier one.
  return pid === process.pid ? !held.has(token) : !isRunning(pid)
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

function inUse(folder: string, file: string, owner?: Owner): CommandError {
  const process = owner === undefined ? '' : ` (process ${owner.pid} on the host "${owner.host}")`
  return new CommandError(
    EXIT.conflict,
    `Another redrive dev${process} uses the folder "${folder}". Stop it, or choose another folder with --dir. If it does not run any more, delete "${file}".`,
  )
}
