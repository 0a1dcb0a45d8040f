import { randomUUID } from 'node:crypto'
import { type Catalog, catalog } from '@redrive/catalog'
import { encodeHeaders, type FailureClass, FIRST_CYCLE } from '@redrive/core'
import { emptyDatabase, freePort, poolOn } from '@redrive/dev-support'
import { deadLetterQueue, MemoryBroker, memorySource, send } from '@redrive/memory'
import { createLog, loadConfig, migrateAll, serve, type ServeOptions } from '@redrive/server'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Stage {
  readonly url: string
  readonly catalog: Catalog
  readonly pool: ReturnType<typeof poolOn>
  /** Stops the server; the address stays reserved for `start`. */
  stop(): Promise<void>
  start(): Promise<void>
  end(): Promise<void>
}

export interface StageOptions {
  /** Path of the public URL. Default: none. */
  readonly path?: string
  readonly auth?: object
  /** More settings of the config. Default: none. */
  readonly config?: object
  /** Runs after the migration and before the server starts. Returns more settings of the config. Default: nothing. */
  readonly prepare?: (databaseUrl: string) => Promise<object>
  /** Roles of the server. Default: `api`, which does not connect to brokers. */
  readonly roles?: ServeOptions['roles']
}

/** Starts a real server with the built console on a new database. */
export async function openStage(name: string, options: StageOptions = {}): Promise<Stage> {
  const database = await emptyDatabase(name)
  const pool = poolOn(database)
  await migrateAll(pool)
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'redrive-console-'))
  const file = join(folder, 'redrive.config.json')
  const origin = `http://127.0.0.1:${port}`
  const { roles = ['api'] } = options
  const config = {
    database: { url: database },
    listen: `127.0.0.1:${port}`,
    publicUrl: origin + (options.path ?? ''),
    auth: options.auth ?? { development: { name: 'Ada Moreno' } },
    sources: {},
    shutdown: { grace: '5s', readinessDelay: '0ms' },
    ...options.config,
    ...(await options.prepare?.(database)),
  }
  writeFileSync(file, JSON.stringify(config))
  const loaded = await loadConfig({ file })
  const log = createLog({ level: 'fatal' })
  const begin = () => serve(loaded.config, { roles, log })
  let server = await begin()
  let isRunning = true
  const stop = async () => {
    if (isRunning) await server.stop()
    isRunning = false
  }
  return {
    url: origin + (options.path ?? ''),
    catalog: catalog({ pool }),
    pool,
    stop,
    async start() {
      server = await begin()
      isRunning = true
    },
    async end() {
      await stop()
      await pool.end()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface Cause {
  readonly source: string
  readonly class: FailureClass
  readonly message: string
  readonly code?: string
  /** When each dead letter failed last, epoch ms. */
  readonly times: readonly number[]
  /** Body of each message. Default: its number. */
  readonly body?: unknown
  /** Signature of the failure; equal for dead letters of one group. Default: a new one. */
  readonly signature?: string
}

/** Ingests the dead letters of one cause through the memory transport. Returns the id of their group. */
export async function seed(made: Catalog, cause: Cause): Promise<string> {
  const { source: queue, class: failureClass, message, code, times, body } = cause
  const broker = new MemoryBroker()
  const { signature = `1-${randomUUID().replaceAll('-', '').slice(0, 16)}` } = cause
  for (const [index, at] of times.entries()) {
    const id = randomUUID()
    const failure = { class: failureClass, signature, code, type: 'Error', message }
    const history = [{ number: 1, at, waitedMs: 0, ...failure, counted: true }]
    const cycle = { ...FIRST_CYCLE, attempts: 8, firstFailedAt: at, history }
    const fields = { id, key: `order-${index}`, source: queue, replayId: undefined, cycle }
    const { headers } = encodeHeaders({ ...fields, reason: 'not_retryable' })
    send(broker, deadLetterQueue(queue), body ?? { order: index }, { id, headers })
  }
  const source = memorySource({ broker, queue })
  await made.ingest(source, {})
  await source.close()
  const { groups } = await made.groups({ sources: [queue], limit: 200 })
  return groups.find((one) => one.signature === signature)?.id ?? ''
}

/** Sets a message aside, because its body is too large. Returns its id. */
export async function setOneAside(
  made: Catalog,
  queue: string,
  { body = { order: 4711 }, headers = {} }: { body?: unknown; headers?: object } = {},
): Promise<string> {
  const broker = new MemoryBroker()
  const id = randomUUID()
  send(broker, deadLetterQueue(queue), body, { id, headers: { ...headers } })
  const source = memorySource({ broker, queue })
  await made.ingest(source, { maxPayloadBytes: 1 })
  await source.close()
  const { messages } = await made.setAside.list({ sources: [queue], limit: 200 })
  return messages.find(({ messageId }) => messageId === id)?.id ?? ''
}

/** Stores that a process reached the broker of a source. A check counts for one minute. */
export const checkSource = (
  made: Catalog,
  source: string,
  found: { unreachable?: string; missing?: readonly string[]; depth?: number; lag?: number } = {},
): Promise<boolean> =>
  made.storeSourceCheck({
    ...{ source, process: 'ingest-1:4711', unreachable: found.unreachable },
    ...{ missing: found.missing ?? [], depth: found.depth, lag: found.lag },
  })
