import { setTimeout as after } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { listenersOf, missingInAll, openSources } from './composition.ts'
import type { Config } from './config/schema.ts'
import { msOf } from './config/values.ts'
import { createDesk } from './desk/desk.ts'
import { given } from './given.ts'
import { createApp } from './http/app.ts'
import { createMetrics, type ServerMetrics } from './http/metrics.ts'
import { registerLogin } from './identity/routes.ts'
import { insisting } from './insist.ts'
import { SERVE_ROLES, type ServeRole } from './serve-role.ts'
import { type BrokerWatch, watchBrokers } from './start/brokers.ts'
import { cached } from './cached.ts'
import { whenDatabaseAnswers } from './start/database.ts'
import { type Listeners, listen } from './start/listeners.ts'
import { createLog, type Log } from './start/log.ts'
import {
  alertingOf,
  createParts,
  publicUrlIn,
  type ServerParts,
  startAuditCheckpoints,
} from './start/parts.ts'
import { createPools, type Pools } from './start/pools.ts'
import { prepareSchemas } from './start/schemas.ts'
import { onSignals, type Signalled } from './start/signals.ts'
import { type Ending, endAll, type StopResult } from './start/stopping.ts'
import { serverVersion } from './start/version.ts'
import { alertLimitsOf, startWork, type Work } from './start/work.ts'

export interface ServeOptions {
  /** What this process does. Default: everything. */
  readonly roles?: readonly ServeRole[]
  /** Default: JSON lines on the standard output. */
  readonly log?: Log
  /** Ends a start that still waits for the database. */
  readonly signal?: AbortSignal
}

/** A server that runs. */
export interface Serving {
  /** Where it listens. */
  readonly url: string
  /** Where metrics are, when they have a listener of their own. */
  readonly metricsUrl: string | undefined
  /**
   * Readiness goes off at once and chores end; a moment later nobody is taken in any more, and whoever is in
   * gets an answer. All within the grace period. Safe to call twice.
   */
  stop(): Promise<StopResult>
}

/** Starts a server, or refuses with everything that has to be changed. */
export async function serve(config: Config, options: ServeOptions = {}): Promise<Serving> {
  const { roles = SERVE_ROLES, log = createLog(), signal = NEVER } = options
  const pools = createPools(config, log)
  const started: Ending[][] = [[{ what: 'the database', end: () => pools.close() }]]
  try {
    return await start({ config, roles, log, signal, pools, started })
  } catch (error) {
    await endAll(started.toReversed(), { graceMs: msOf(config.shutdown.grace), log })
    throw error
  }
}

const NEVER: AbortSignal = new AbortController().signal

interface Starting {
  readonly config: Config
  readonly roles: readonly ServeRole[]
  readonly log: Log
  readonly signal: AbortSignal
  readonly pools: Pools
  /** What has to be ended, last first; together what can be. */
  readonly started: Ending[][]
}

async function start(starting: Starting): Promise<Serving> {
  const { config, roles, log, signal, pools } = starting
  const waitMs = msOf(config.database.waitFor)
  await whenDatabaseAnswers(pools.own, { waitMs, log, signal })
  await prepareSchemas(pools.own, { mayMigrate: config.migrate, log })
  const parts = createParts(config, pools.own)
  const { work, brokers } = await startRoles(starting, parts)
  let isStopping = false
  const health = {
    roles,
    isStopping: () => isStopping,
    database: cached(HEALTH_MS, async () => void (await pools.health.query('select 1'))),
    missing: cached(MIGRATIONS_MS, () => missingInAll(pools.health)),
    brokers: () => brokers.states(),
  }
  const counts = { brokers: () => brokers.states(), chores: () => work.counts() }
  const metrics = createMetrics({
    catalog: parts.catalog,
    version: serverVersion(),
    roles,
    ...counts,
  })
  const app = roles.includes('api') ? await apiOf(starting, parts, metrics) : undefined
  const { identity } = parts
  const listeners = await listen({ config, health, metrics, identity, log, app })
  log.info(`Serving ${roles.join(', ')}.`)
  const stop = once(() => {
    isStopping = true
    return stopAll(starting, listeners)
  })
  return { url: listeners.url, metricsUrl: listeners.metricsUrl, stop }
}

/** 1 s: probes come every few seconds, from several places. */
const HEALTH_MS = 1_000
/** 10 s: a schema changes with a release, not with a request. */
const MIGRATIONS_MS = 10_000

/** Brokers are only known to who works with them: an API alone connects to none. */
async function startRoles(
  { config, roles, log, pools, started }: Starting,
  { catalog }: ServerParts,
): Promise<{ readonly work: Work; readonly brokers: BrokerWatch }> {
  const isWorking = roles.includes('ingest') || roles.includes('replay')
  const sources = isWorking ? openSources(config, pools) : []
  started.push(
    sources.map(({ name, source }) => ({ what: `source ${name}`, end: () => source.close() })),
  )
  const brokers = watchBrokers(sources, log)
  started.push([{ what: 'the watch of brokers', end: async () => brokers.stop() }])
  const checkpoints = roles.includes('watch')
    ? await startAuditCheckpoints(config, pools.own, log)
    : undefined
  started.push([{ what: 'the checkpoints of the audit', end: async () => checkpoints?.stop() }])
  const onAlerts = alertingOf(config, pools.own, listenersOf(config))
  const work = await startWork({ config, catalog, pool: pools.own, sources, roles, onAlerts, log })
  started.push([...work.endings(msOf(config.shutdown.grace) * CHORES_SHARE)])
  return { work, brokers }
}

async function apiOf(
  { config, pools, log }: Starting,
  { catalog, audit, identity }: ServerParts,
  metrics: ServerMetrics,
): Promise<FastifyInstance> {
  const alertLimits = alertLimitsOf(config)
  const desk = createDesk({ catalog, audit, identity, insist: insisting(log), alertLimits })
  const { requestsPerMinute, bodyBytes } = config.limits
  const app = await createApp({
    desk,
    identity,
    pool: pools.own,
    logger: log,
    publicUrl: publicUrlIn(config),
    limits: { requestsPerMinute, bodyBytes },
    onAnswered: (operation, status, seconds) => metrics.observe(operation, status, seconds),
    ...given({ trustProxy: config.trustProxy }),
  })
  await registerLogin(app, identity)
  return app
}

/** A fifth of the time is kept for what comes after the chores. */
const CHORES_SHARE = 0.8
/** At most half of the time goes by before listeners close: those who are in need the other half. */
const NOTICE_SHARE = 0.5

async function stopAll(
  { config, log, started }: Starting,
  listeners: Listeners,
): Promise<StopResult> {
  const graceMs = msOf(config.shutdown.grace)
  const noticeMs = Math.min(msOf(config.shutdown.notice), graceMs * NOTICE_SHARE)
  log.info(`Stopping, within ${graceMs} ms.`)
  const end = async () => {
    await after(noticeMs)
    await listeners.close()
  }
  // Chores were started last. They end while requests are answered; the rest, when nobody needs it.
  const [chores = [], ...rest] = started.toReversed()
  const result = await endAll([[{ what: 'requests', end }, ...chores], ...rest], { graceMs, log })
  log.info(result.isClean ? 'Stopped.' : 'Stopped, but not everything ended well.')
  return result
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let begun: Promise<T> | undefined
  return () => {
    begun ??= work()
    return begun
  }
}

/** Serves until the signal fires, then stops. */
export async function serveUntil(
  config: Config,
  options: ServeOptions & { readonly signal: AbortSignal },
): Promise<StopResult> {
  const { signal } = options
  const serving = await serve(config, options)
  if (!signal.aborted) {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  }
  return serving.stop()
}

/** The same for a whole process: until SIGTERM or SIGINT. Answers its exit code; a second signal ends it at once. */
export async function serveUntilSignal(
  config: Config,
  options: Omit<ServeOptions, 'signal'> & { readonly target?: Signalled } = {},
): Promise<number> {
  const { target = process, ...rest } = options
  const { signal, forget } = onSignals(target)
  try {
    const { isClean } = await serveUntil(config, { ...rest, signal })
    return isClean ? 0 : 1
  } finally {
    forget()
  }
}
