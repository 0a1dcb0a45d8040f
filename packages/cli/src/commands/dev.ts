import { once } from 'node:events'
import { createServer } from 'node:net'
import { relative, resolve } from 'node:path'
import type { Group } from '@redrive/api'
import { type Address, addressOf } from '../dev/address.ts'
import { attach, type Broker, brokerOf } from '../dev/attach.ts'
import { openBrowser } from '../dev/browser.ts'
import { claimDatabase } from '../dev/claim-database.ts'
import { writeConfig } from '../dev/config.ts'
import { prepareFolder, startDatabase } from '../dev/database.ts'
import { type DevFolder, lockFolder } from '../dev/folder.ts'
import { openLog } from '../dev/log.ts'
import { claimMode } from '../dev/mode.ts'
import { runShop, SHOP_SOURCES } from '../dev/run-shop.ts'
import type { Started } from '../dev/started.ts'
import { step } from '../dev/step.ts'
import { runTour } from '../dev/tour.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { reasonOf } from '../failure.ts'
import type { CommonOptions, Io } from '../io.ts'
import { isForPeople, print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { groupTable } from './groups.ts'

export interface DevOptions extends CommonOptions {
  /** Folder with all data. Default: `.redrive` in the working directory. */
  readonly dir?: string
  /** Deletes the data of the folder first. */
  readonly fresh?: boolean
  /** Port of the server on 127.0.0.1. */
  readonly port: number
  /** URL of a database to use. Default: a PostgreSQL in the folder. */
  readonly database?: string
  /** Whether to open the browser. */
  readonly open: boolean
  /** Address of a broker to use instead of the shop. Default: none. */
  readonly attach?: string
  /** Queue at that broker. */
  readonly queue?: string
  /** Queues with dead letters at that broker. Default: the ones of Redrive for the queue. */
  readonly deadLetterQueue?: readonly string[]
}

/** Runs PostgreSQL, the server and a shop with failures, until Ctrl-C. Needs no other installed program. */
export async function devCommand(io: Io, options: DevOptions): Promise<ExitCode> {
  // After the terminal has closed, everything must still stop in order.
  io.outliveReader()
  const started: Started = []
  let isClean = true
  try {
    await expectFreePort(options.port)
    const stays = await start(io, options, started)
    if (stays && !io.signal.aborted) await once(io.signal, 'abort')
  } catch (error) {
    // A start that Ctrl-C ends is not a failure.
    if (!io.signal.aborted) throw error
  } finally {
    isClean = await stopAll(io, started)
  }
  return isClean ? EXIT.ok : EXIT.failure
}

/** Starts everything. Returns false when the user leaves with Ctrl-C in a question. */
async function start(io: Io, options: DevOptions, started: Started): Promise<boolean> {
  // First, because the caller downloads it if it is missing, and starts again.
  const { createLog, serve, SERVE_ROLES } = await import('@redrive/server')
  const path = resolve(io.cwd, options.dir ?? (options.attach ? '.redrive-attached' : '.redrive'))
  const broker = await brokerIn(io, options)
  const mode = broker?.mode ?? 'shop'
  const given = options.database && (await addressOf(io, '--database', options.database))
  const locked = lockFolder(path)
  started.push({ what: 'folder', stop: async () => locked.release() })
  const folder = await prepareFolder(io, locked, { isFresh: options.fresh === true, mode })
  const attached = broker === undefined ? undefined : await attach(io, path, broker)
  if (broker !== undefined && attached === undefined) return false
  claimMode(path, mode)
  const database = given || (await ownDatabase(io, folder, started))
  if (given) await claimDatabase(folder, given.url)
  const { sources } = attached ?? { sources: SHOP_SOURCES }
  const settings = { database: database.text, port: options.port, sources }
  const { config, file } = await writeConfig(io, path, settings)
  const logFile = openLog(io, path)
  started.push({ what: 'log', stop: async () => logFile.close() })
  const log = createLog({ to: logFile })
  const roles = attached?.mayTake === false ? READ_ONLY : SERVE_ROLES
  const server = await step(io, 'Server and console', () =>
    serve(config, { log, roles, signal: io.signal }),
  )
  started.push({ what: 'server', stop: () => server.stop() })
  const atServer: Io = { ...io, env: { REDRIVE_URL: server.url } }
  if (attached === undefined)
    await runShop(atServer, { database: database.url, path, log }, started)
  const ready = { url: server.url, folder: path, config: file, log: logFile.path }
  const groups = await showReady(atServer, options, ready)
  if (options.open) openBrowser(io, server.url)
  return attached !== undefined || !isForPeople(options) || runTour(atServer, groups)
}

async function ownDatabase(io: Io, folder: DevFolder, started: Started): Promise<Address> {
  const { url, stop } = await startDatabase(io, folder)
  started.push({ what: 'PostgreSQL', stop })
  return { url, text: url }
}

/** Roles that take nothing from a broker. The role `replay` would take confirmations. */
const READ_ONLY = ['api', 'watch'] as const

async function brokerIn(io: Io, options: DevOptions): Promise<Broker | undefined> {
  const { attach: address, queue, deadLetterQueue, yes } = options
  if (address === undefined && queue === undefined) return undefined
  if (address === undefined || queue === undefined) {
    throw new CommandError(
      EXIT.usage,
      'Expected an address and a queue: redrive dev --attach amqp://user:password@host orders',
    )
  }
  const optional = {
    ...(deadLetterQueue === undefined ? {} : { deadLetterQueue }),
    ...(yes === undefined ? {} : { yes }),
  }
  return brokerOf(io, { attach: address, queue, ...optional })
}

interface Ready {
  readonly url: string
  readonly folder: string
  readonly config: string
  readonly log: string
}

async function showReady(io: Io, options: DevOptions, ready: Ready): Promise<readonly Group[]> {
  const { url, folder, config, log } = ready
  const query = { hasOpen: true }
  const { groups } = await connect(io, {}).call('listGroups', { query }, { signal: io.signal })
  const near = (file: string) => relative(io.cwd, file) || '.'
  print(io, options, {
    json: ready,
    human: (page) => {
      page.line``
      if (groups.length > 0) groupTable(io, page, groups, undefined)
      page.line``
      page.line`Console:  ${url}`
      page.line`Commands: export REDRIVE_URL=${url}, then redrive groups list`
      page.line`Data:     ${near(folder)} (config: ${near(config)}, log: ${near(log)})`
      page.line`Ctrl-C stops everything and keeps the data.`
    },
  })
  return groups
}

/** Rejects a port that another process uses, before anything else starts. */
async function expectFreePort(port: number): Promise<void> {
  if (port > MAX_PORT) {
    throw new CommandError(
      EXIT.usage,
      `--port: expected a number up to ${MAX_PORT}, got "${port}", for example: redrive dev --port ${DEFAULT_PORT}`,
    )
  }
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const why = code === 'EADDRINUSE' ? 'another process uses it' : reasonOf(cause)
    throw new CommandError(
      EXIT.failure,
      `Cannot listen on port ${port}: ${why}. Choose another port: redrive dev --port ${otherPort(port)}`,
      { cause },
    )
  }
  server.close()
  await once(server, 'close')
}

const MAX_PORT = 65_535
const DEFAULT_PORT = 8080
/** Users without rights may not listen on smaller ports. */
const FIRST_PORT = 1_024

/** Returns a port to try next. */
const otherPort = (port: number): number =>
  port >= FIRST_PORT && port < MAX_PORT ? port + 1 : DEFAULT_PORT

/** Stops everything, the last start first. A failure does not keep the others running. */
async function stopAll(io: Io, started: Started): Promise<boolean> {
  let isClean = true
  if (started.length > 1) say(io)`Stopping.`
  for (const { what, stop } of started.toReversed()) {
    try {
      await stop()
    } catch (error) {
      isClean = false
      say(io)`Cannot stop the ${what}: ${reasonOf(error)}`
    }
  }
  return isClean
}
