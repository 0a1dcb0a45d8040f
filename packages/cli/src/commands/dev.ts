import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, relative, resolve } from 'node:path'
import type { Log } from '@redrive/server'
import { openBrowser } from '../dev/browser.ts'
import { writeConfig } from '../dev/config.ts'
import { prepareFolder, startDatabase } from '../dev/database.ts'
import { lockFolder } from '../dev/folder.ts'
import { openLog } from '../dev/log.ts'
import { SEEDS, SHOP_QUEUE, type Shop, startShop } from '../dev/shop.ts'
import { step } from '../dev/step.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { reasonOf } from '../failure.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print, say } from '../print.ts'
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
}

/** What was started and how it stops, in the order of the starts. */
type Started = { readonly what: string; readonly stop: () => Promise<unknown> }[]

/** Runs PostgreSQL, the server and a shop with failures, until Ctrl-C. Needs no other installed program. */
export async function devCommand(io: Io, options: DevOptions): Promise<ExitCode> {
  const started: Started = []
  let failure: unknown
  try {
    await expectFreePort(options.port)
    await start(io, options, started)
    if (!io.signal.aborted) await once(io.signal, 'abort')
  } catch (error) {
    failure = error
  }
  const isClean = await stopAll(io, started)
  // A start that Ctrl-C ends is not a failure.
  if (failure !== undefined && !io.signal.aborted) throw failure
  return isClean ? EXIT.ok : EXIT.failure
}

async function start(io: Io, options: DevOptions, started: Started): Promise<void> {
  const path = resolve(io.cwd, options.dir ?? '.redrive')
  const locked = lockFolder(path)
  started.push({ what: 'folder', stop: async () => locked.release() })
  const folder = await prepareFolder(io, locked, { isFresh: options.fresh === true })
  const own = options.database === undefined ? await startDatabase(io, folder) : undefined
  if (own !== undefined) started.push({ what: 'PostgreSQL', stop: () => own.stop() })
  const database = options.database ?? own?.url ?? ''
  const sources = { [SHOP_QUEUE]: { postgres: { queue: SHOP_QUEUE }, extract: EXTRACT } }
  const { config, file } = await writeConfig(io, path, { database, port: options.port, sources })
  const logFile = openLog(io, path)
  started.push({ what: 'log', stop: async () => logFile.close() })
  const { createLog, serve } = await import('@redrive/server')
  const log = createLog({ to: logFile })
  const server = await step(io, 'Server and console', () =>
    serve(config, { log, signal: io.signal }),
  )
  started.push({ what: 'server', stop: () => server.stop() })
  const atServer: Io = { ...io, env: { REDRIVE_URL: server.url } }
  await runShop(atServer, { database, path, log }, started)
  await showReady(atServer, options, { url: server.url, path, config: file, log: logFile.path })
  if (options.open) openBrowser(io, server.url)
}

/** Values to search dead letters of the shop by. */
const EXTRACT = { order: '/order', customer: '/customer' }

interface ShopDeps {
  readonly database: string
  readonly path: string
  readonly log: Log
}

/** The transport needs 4: to claim, to listen, for maintenance and for handlers. */
const SHOP_CONNECTIONS = 6

async function runShop(io: Io, { database, path, log }: ShopDeps, started: Started): Promise<void> {
  const { Pool } = await import('pg')
  const pool = new Pool({ connectionString: database, max: SHOP_CONNECTIONS })
  pool.on('error', ({ message }) => log.warn(`Lost a connection of the shop: ${message}`))
  started.push({ what: 'connections of the shop', stop: () => pool.end() })
  // Its failures are intended, so they are not warnings on the terminal.
  const toFile = (line: string) => log.info(line)
  const shop = await startShop(pool, { warn: toFile, error: toFile })
  started.push({ what: 'shop', stop: () => shop.stop() })
  const marker = join(path, 'shop.json')
  if (!existsSync(marker)) {
    await step(io, 'Shop with an outage, wrong orders and a poison message', () => seed(io, shop))
    writeFileSync(marker, JSON.stringify(SEEDS))
  }
  shop.open()
}

const SEED_TIMEOUT_MS = 120_000
const POLL_MS = 250

/** Lets the shop fail, waits until the catalog has the dead letters, and ends the outage. */
async function seed(io: Io, shop: Shop): Promise<void> {
  const client = connect(io, {})
  const expected = Object.values(SEEDS).reduce((sum, count) => sum + count, 0)
  const timeout = AbortSignal.timeout(SEED_TIMEOUT_MS)
  await shop.sendFailures()
  for (;;) {
    const { groups } = await client.call('listGroups', { query: {} }, { signal: io.signal })
    const open = groups.reduce((sum, { openCount }) => sum + openCount, 0)
    if (open >= expected) break
    if (timeout.aborted) throw new Error(`Only ${open} of ${expected} dead letters arrived.`)
    await io.sleep(POLL_MS, io.signal)
    io.signal.throwIfAborted()
  }
  await shop.endOutage()
}

interface Ready {
  readonly url: string
  readonly path: string
  readonly config: string
  readonly log: string
}

async function showReady(io: Io, options: DevOptions, ready: Ready): Promise<void> {
  const { url, path, config, log } = ready
  const query = { hasOpen: true }
  const { groups } = await connect(io, {}).call('listGroups', { query }, { signal: io.signal })
  const near = (file: string) => relative(io.cwd, file) || '.'
  print(io, options, {
    json: { url, folder: path, config, log },
    human: (page) => {
      page.line``
      groupTable(io, page, groups, undefined)
      page.line``
      page.line`Console:  ${url}`
      page.line`Commands: export REDRIVE_URL=${url}, then redrive groups list`
      page.line`Data:     ${near(path)} (log: ${near(log)})`
      page.line``
      page.line`The payment service of the shop responds again, so the transient group can be replayed:`
      const outage = groups.find((group) => group.class === 'transient')
      if (outage !== undefined) page.line`  redrive replay plan group:${outage.id.slice(0, 8)}`
      page.line`Ctrl-C stops everything and keeps the data. Start without it: redrive dev --fresh`
    },
  })
}

/** Rejects a port that another process uses, before anything else starts. */
async function expectFreePort(port: number): Promise<void> {
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const why = code === 'EADDRINUSE' ? 'another process uses it' : reasonOf(cause)
    throw new CommandError(
      EXIT.failure,
      `Cannot listen on port ${port}: ${why}. Choose another port: redrive dev --port ${port + 1}`,
      { cause },
    )
  }
  server.close()
  await once(server, 'close')
}

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
