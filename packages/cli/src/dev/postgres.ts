import { type ChildProcess, spawn } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CommandError, EXIT } from '../exit.ts'
import { canUse, giveTo } from './account.ts'
import type { Binaries } from './binaries.ts'
import { type DevFolder, hasMessages } from './folder.ts'
import { dataFolderAt, HOST, urlAt, USER } from './probe.ts'
import { PROGRAM_ENV, runPostgresProgram } from './run-program.ts'

/** A running PostgreSQL. */
export interface DevDatabase {
  readonly url: string
  /** Stops PostgreSQL and waits for its end. */
  readonly stop: () => Promise<void>
}

/** Creates the database files, unless they exist. */
export async function createCluster(
  { path, marker: { password } }: DevFolder,
  { initdb, account }: Binaries,
): Promise<void> {
  const data = join(path, 'postgres')
  if (existsSync(data)) return
  if (!canUse(account, path)) {
    throw new CommandError(
      EXIT.failure,
      `PostgreSQL does not run as root, and its user (id ${account?.uid}) cannot enter "${path}". Run the command as another user, or choose a folder that all users can enter: --dir /var/tmp/redrive`,
    )
  }
  // Renamed when it is complete, so that an interrupted start leaves nothing that looks complete.
  const unfinished = join(path, 'postgres.new')
  const passwordFile = join(path, 'postgres.password')
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { mode: 0o700 })
  giveTo(account, unfinished)
  writeFileSync(passwordFile, password, { mode: 0o600 })
  giveTo(account, passwordFile)
  try {
    const args = ['-D', unfinished, '-U', USER, `--pwfile=${passwordFile}`, ...INITDB]
    const { code, output } = await runPostgresProgram(initdb, args, account)
    if (code !== 0) {
      const hint = NAMELESS.test(output) ? NAMELESS_HINT : ''
      throw new CommandError(EXIT.failure, `PostgreSQL cannot create its files:\n${output}${hint}`)
    }
    renameSync(unfinished, data)
  } finally {
    rmSync(passwordFile, { force: true })
    rmSync(unfinished, { recursive: true, force: true })
  }
}

/** The error of initdb for a user without a name, as in a container with another user id. */
const NAMELESS = /could not look up effective user ID/
const NAMELESS_HINT =
  '\nPostgreSQL needs a user with a name. Run the command as such a user, or pass a database that you already have: --database postgres://user:password@host/database'

/** The locale is part of PostgreSQL, so the files do not depend on the settings of the machine. */
const INITDB = [
  '--auth=scram-sha-256',
  '--encoding=UTF8',
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  '--no-sync',
]

/** Stops the PostgreSQL of a folder and waits for its end. */
export async function stopPostgres(path: string, { pgCtl, account }: Binaries): Promise<void> {
  const data = join(path, 'postgres')
  const args = ['stop', '-D', data, '-m', 'fast', '-w', '-s', '-t', STOP_SECONDS]
  const { code, output } = await runPostgresProgram(pgCtl, args, account)
  if (code !== 0) throw new CommandError(EXIT.failure, `PostgreSQL did not stop: ${output}`)
}

/** Starts PostgreSQL on a free port of 127.0.0.1. */
export async function startPostgres(
  { path, marker: { password } }: DevFolder,
  binaries: Binaries,
  signal: AbortSignal,
): Promise<DevDatabase> {
  const { postgres, account } = binaries
  const data = join(path, 'postgres')
  const port = await freePort()
  const log = join(path, 'postgres.log')
  const file = openSync(log, 'w', 0o600)
  const settings = ['-D', data, '-h', HOST, '-p', String(port), '-k', '']
  const child = spawn(postgres, settings, {
    ...account,
    env: PROGRAM_ENV,
    cwd: '/',
    // In a separate group: Ctrl-C must stop the server before its database.
    detached: true,
    stdio: ['ignore', file, file],
  })
  closeSync(file)
  // Also when a second Ctrl-C ends this process immediately.
  const stopAtExit = () => void child.kill('SIGINT')
  process.once('exit', stopAtExit)
  const url = urlAt(port, password)
  try {
    await whenReady(child, url, { log, signal })
  } catch (error) {
    process.off('exit', stopAtExit)
    await endChild(child)
    throw error
  }
  return {
    url,
    stop: async () => {
      await stopPostgres(path, binaries)
      process.off('exit', stopAtExit)
    },
  }
}

/** Ends PostgreSQL while it starts. It may have no pid file yet, so pg_ctl could not find it. */
async function endChild(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || hasEnded(child)) return
  const ended = once(child, 'exit')
  child.kill('SIGINT')
  await ended
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess) =>
  exitCode !== null || signalCode !== null

const STOP_SECONDS = '20'
/** 60 s: recovery after a crash takes seconds on a slow disk. */
const READY_MS = 60_000
const POLL_MS = 100

async function whenReady(
  child: ChildProcess,
  url: string,
  { log, signal }: { readonly log: string; readonly signal: AbortSignal },
): Promise<void> {
  let failure: Error | undefined
  child.on('error', (error) => (failure = error))
  const endsAt = performance.now() + READY_MS
  for (;;) {
    signal.throwIfAborted()
    if (failure !== undefined || hasEnded(child) || performance.now() > endsAt) {
      const lines = readFileSync(log, 'utf8').trim().split('\n').slice(-LOG_LINES).join('\n')
      const reason = failure?.message ?? lines
      throw new CommandError(
        EXIT.failure,
        `PostgreSQL did not start:\n${reason}\nThe whole log is in "${log}".${freshHint(log, reason)}`,
        { cause: failure },
      )
    }
    if ((await dataFolderAt(url)) !== undefined) return
    await sleep(POLL_MS)
  }
}

const LOG_LINES = 5

/** Messages of PostgreSQL about files that it cannot use. */
const UNUSABLE =
  /incompatible|not a (valid )?(data|database cluster) directory|checkpoint record|control file|PANIC|corrupt|invalid data/i

/** Returns the advice to delete the data, but only if that helps and deletes nothing of the user. */
const freshHint = (log: string, reason: string): string =>
  UNUSABLE.test(reason) && !hasMessages(dirname(log))
    ? ' The files of the database are damaged or of another release. To delete them and start with empty data: redrive dev --fresh'
    : ''

async function freePort(): Promise<number> {
  const server = createServer().listen(0, HOST)
  await once(server, 'listening')
  const { port } = server.address() as { readonly port: number }
  server.close()
  await once(server, 'close')
  return port
}
