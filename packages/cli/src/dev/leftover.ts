import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CommandError, EXIT } from '../exit.ts'
import type { Binaries } from './binaries.ts'
import type { DevFolder } from './folder.ts'
import { stopPostgres } from './postgres.ts'
import { dataFolderAt, urlAt } from './probe.ts'
import { runPostgresProgram } from './run-program.ts'

const pidFileOf = (path: string) => join(path, 'postgres', 'postmaster.pid')

/** Returns whether a PostgreSQL may still run in the folder: it outlives a process that was killed. */
export const hasLeftover = (path: string): boolean => existsSync(pidFileOf(path))

/** 10 s: a PostgreSQL that stops or starts accepts no connection until it has finished. */
const WAIT_MS = 10_000
const POLL_MS = 200

/**
 * Stops a PostgreSQL that a killed process has left. The lock of the folder shows that no other process uses it.
 * After a crash of the machine, another program may have the id in the pid file. It gets no signal.
 */
export async function stopLeftover(
  folder: DevFolder,
  binaries: Binaries,
  waitMs: number = WAIT_MS,
): Promise<void> {
  const endsAt = performance.now() + waitMs
  while (await isProcessRunning(folder.path, binaries)) {
    if (await isOwn(folder)) return stopPostgres(folder.path, binaries)
    if (performance.now() > endsAt) throw notOwn(folder.path)
    await sleep(POLL_MS)
  }
}

/** Exit codes of `pg_ctl status`. With any other code, a PostgreSQL may run. */
const STATUS: Readonly<Record<number, boolean>> = { 0: true, 3: false }

async function isProcessRunning(path: string, { pgCtl, account }: Binaries): Promise<boolean> {
  const data = join(path, 'postgres')
  const { code, output } = await runPostgresProgram(pgCtl, ['status', '-D', data], account)
  const isRunning = STATUS[code]
  if (isRunning !== undefined) return isRunning
  throw new CommandError(
    EXIT.failure,
    `Cannot check whether a PostgreSQL uses "${data}", and nothing was changed: ${output}\nCheck the access to this folder. If no PostgreSQL uses it, delete "${pidFileOf(path)}".`,
  )
}

/** Lines of the pid file, from 0. */
const PORT_LINE = 3

/** Returns whether the PostgreSQL in the pid file has the password and the data of this folder. */
async function isOwn({ path, marker }: DevFolder): Promise<boolean> {
  const port = Number(readPidFile(path)[PORT_LINE])
  if (!Number.isInteger(port) || port <= 0) return false
  const data = await dataFolderAt(urlAt(port, marker.password))
  // A copy of a folder has the same password.
  return (
    data !== undefined &&
    existsSync(data) &&
    realpathSync(data) === realpathSync(join(path, 'postgres'))
  )
}

/** Returns the lines of the pid file. PostgreSQL deletes it when it ends. */
function readPidFile(path: string): readonly string[] {
  return hasLeftover(path) ? readFileSync(pidFileOf(path), 'utf8').split('\n') : []
}

function notOwn(path: string): CommandError {
  const [pid = '?'] = readPidFile(path)
  return new CommandError(
    EXIT.conflict,
    `The process ${pid} runs, and it is not clear whether it is the PostgreSQL of "${path}". It got no signal, and nothing was changed. If it is a PostgreSQL of this folder, stop it. If it is another program, delete "${pidFileOf(path)}". Then start again.`,
  )
}
