import { setTimeout as after } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { SourceCheck } from '@redrive/catalog'
import { exportTargetsOf, missingInAll, type OpenSource, openSources } from './composition.ts'
import type { Config } from './config/schema.ts'
import { kindOf } from './config/source.ts'
import { msOf } from './config/values.ts'
import { createOperations } from './operations/operations.ts'
import { omitUndefined } from './omit-undefined.ts'
import { createApp } from './http/app.ts'
import { registerConsole } from './http/console.ts'
import { createMetrics, type ServerMetrics } from './http/metrics.ts'
import { registerLogin } from './identity/routes.ts'
import { createRetryingWriter } from './retry-write.ts'
import { SERVE_ROLES, type ServeRole } from './serve-role.ts'
import { type BrokerWatch, watchBrokers } from './start/brokers.ts'
import { cached } from './cached.ts'
import { exportLag } from './audit/export.ts'
import { startAuditExport } from './start/audit-export.ts'
import { whenDatabaseAnswers } from './start/database.ts'
import { type Listeners, listen } from './start/listeners.ts'
import { startRunApprovals } from './start/run-approvals.ts'
import { createLog, type Log } from './start/log.ts'
import {
  admitAutoReplay,
  alertingOf,
  createParts,
  publicUrlIn,
  readingOf,
  type ServerComponents,
  startAuditCheckpoints,
  warnOfDevelopment,
} from './start/components.ts'
import { createPools, type Pools } from './start/pools.ts'
import { prepareSchemas } from './start/schemas.ts'
import { type KeyPair, readKeyPair } from './start/tls.ts'
import { onSignals, type Signalled } from './start/signals.ts'
import { type ShutdownTask, endAll, type StopResult } from './start/shutdown.ts'
import { serverVersion } from './start/version.ts'
import { alertLimitsOf, startWork, type Work } from './start/background.ts'

export interface ServeOptions {
  /** Roles of this process. Default: all. */
  readonly roles?: readonly ServeRole[]
  /** Log. Default: JSON lines on the standard output. */
  readonly log?: Log
  /** Cancels a start that is still waiting for the database. */
  readonly signal?: AbortSignal
}

/** A running server. */
export interface RunningServer {
  /** URL of the listener. */
  readonly url: string
  /** URL of the metrics, if they have a separate listener. */
  readonly metricsUrl: string | undefined
  /**
   * Stops the server within the grace period. First it reports not ready and ends background jobs. After
   * `shutdown.readinessDelay` it stops accepting connections and completes open requests. Safe to call twice.
   */
  stop(): Promise<StopResult>
}

/** Starts a server. Rejects with the problems that prevent the start. */
export async function serve(config: Config, options: ServeOptions = {}): Promise<RunningServer> {
  const { roles = SERVE_ROLES, log = createLog(), signal = NEVER } = options
  const pools = createPools(config, log)
  const started: ShutdownTask[][] = [[{ what: 'database connections', end: () => pools.close() }]]
  try {
    return await start({ config, roles, log, signal, pools, started })
  } catch (error) {
    await endAll(started.toReversed(), { graceMs: msOf(config.shutdown.grace), log })
    throw error
  }
}

const NEVER: AbortSignal = new AbortController().signal

interface StartContext {
  readonly config: Config
  readonly roles: readonly ServeRole[]
  readonly log: Log
  readonly signal: AbortSignal
  readonly pools: Pools
  /** Shutdown steps in start order; shutdown runs them in reverse. Tasks of one step run concurrently. */
  readonly started: ShutdownTask[][]
}

async function start(context: StartContext): Promise<RunningServer> {
  const { config, roles, log, signal, pools } = context
  warnOfDevelopment(config, log)
  const waitMs = msOf(config.database.startupTimeout)
  await whenDatabaseAnswers(pools.own, { waitMs, log, signal })
  await prepareSchemas(pools.own, { mayMigrate: config.migrate, log })
  const parts = createParts(config, pools.own)
  const { work, brokers } = await startRoles(context, parts)
  let isStopping = false
  const health = {
    roles,
    isStopping: () => isStopping,
    database: cached(HEALTH_MS, async () => void (await pools.health.query('select 1'))),
    missing: cached(MIGRATIONS_MS, () => missingInAll(pools.health)),
    brokers: () => brokers.states(),
  }
  const counts = { brokers: () => brokers.states(), chores: () => work.counts() }
  const targets = exportTargetsOf(config)
  const metrics = createMetrics({
    catalog: parts.catalog,
    alertLimits: alertLimitsOf(config),
    auditExport: async () => (targets.length === 0 ? [] : exportLag(pools.own, targets)),
    version: serverVersion(),
    roles,
    ...counts,
  })
  const keyPair = config.tls === undefined ? undefined : readKeyPair(config.tls)
  const app = roles.includes('api') ? await apiOf(context, parts, metrics, keyPair) : undefined
  const { identity } = parts
  const listeners = await listen({ config, health, metrics, identity, log, app, keyPair })
  log.info(`Serving ${roles.join(', ')}.`)
  const stop = once(() => {
    isStopping = true
    return stopAll(context, listeners)
  })
  return { url: listeners.url, metricsUrl: listeners.metricsUrl, stop }
}

/** 1 s: several probes may call the health check every few seconds. */
const HEALTH_MS = 1_000
/** 10 s: a schema changes only with a release. */
const MIGRATIONS_MS = 10_000

/** Starts the background jobs. Only `ingest` and `replay` connect to brokers. */
async function startRoles(
  { config, roles, log, pools, started }: StartContext,
  { catalog, audit, identity }: ServerComponents,
): Promise<{ readonly work: Work; readonly brokers: BrokerWatch }> {
  const needsBrokers = roles.includes('ingest') || roles.includes('replay')
  const sources = needsBrokers ? openSources(config, pools, (text) => log.warn(text)) : []
  started.push(
    sources.map(({ name, source }) => ({ what: `source "${name}"`, end: () => source.close() })),
  )
  const store = (check: SourceCheck) => catalog.storeSourceCheck(check)
  const brokers = watchBrokers(sources, { log, store })
  started.push([{ what: 'broker checks', end: async () => brokers.stop() }])
  const checkpoints = roles.includes('watch')
    ? await startAuditCheckpoints(config, pools.own, log)
    : undefined
  started.push([{ what: 'audit checkpoints', end: async () => checkpoints?.stop() }])
  const targets = roles.includes('watch') ? exportTargetsOf(config) : []
  const exports = startAuditExport({ pool: pools.own, targets, log })
  started.push([{ what: 'audit export', end: () => exports.stop() }])
  const approvals = roles.includes('watch')
    ? startRunApprovals({ catalog, identity, audit, log })
    : undefined
  started.push([{ what: 'checks of approvals', end: async () => approvals?.stop() }])
  const onAlerts = alertingOf(config, pools.own, catalog, log)
  if (roles.includes('ingest')) await reportIngest(sources, brokers, log)
  const onAutoReplay = admitAutoReplay({ audit, identity })
  const deps = { config, catalog, pool: pools.own, sources, roles, onAlerts, onAutoReplay, log }
  const work = await startWork(deps)
  started.push([...work.endings(msOf(config.shutdown.grace) * JOBS_SHARE)])
  return { work, brokers }
}

/** 3 s: a broker that needs longer does not delay the start. */
const FIRST_CHECK_MS = 3_000

/** Logs what the ingest takes from each broker, before it begins. */
async function reportIngest(
  sources: readonly OpenSource[],
  brokers: BrokerWatch,
  log: Log,
): Promise<void> {
  const timer = new AbortController()
  const timeout = after(FIRST_CHECK_MS, undefined, { signal: timer.signal }).catch(() => undefined)
  await Promise.race([brokers.firstCheck, timeout])
  timer.abort()
  const states = new Map(brokers.states().map((state) => [state.name, state]))
  for (const { name, kind, source } of sources) {
    const depth = states.get(name)?.depth
    const waiting = depth === undefined ? 'Their number is not known yet.' : `${depth} wait now.`
    log.info(
      { source: name },
      `Source "${name}": moves the dead letters of "${source.source}" from ${kind} into the catalog, and removes them from the broker. ${waiting}`,
    )
  }
}

const brokersOf = ({ sources }: Config) =>
  new Map(Object.entries(sources).map(([name, source]) => [name, kindOf(source)]))

async function apiOf(
  { config, pools, log }: StartContext,
  { catalog, audit, identity }: ServerComponents,
  metrics: ServerMetrics,
  keyPair: KeyPair | undefined,
): Promise<FastifyInstance> {
  const alertLimits = alertLimitsOf(config)
  const desk = createOperations({
    catalog,
    audit,
    identity,
    insist: createRetryingWriter(log),
    alertLimits,
    reading: readingOf(config),
    brokers: brokersOf(config),
    approval: config.approval,
    unmaskedPerHour: config.masking.unmaskedPerHour,
  })
  const { requestsPerMinute, bodyBytes } = config.limits
  const app = await createApp({
    desk,
    identity,
    pool: pools.own,
    logger: log,
    publicUrl: publicUrlIn(config),
    limits: { requestsPerMinute, bodyBytes },
    onAnswered: (operation, status, seconds) => metrics.observe(operation, status, seconds),
    onRefusedCredential: (kind) => metrics.refusedCredential(kind),
    ...omitUndefined({ trustProxy: config.trustProxy, keyPair }),
  })
  await registerLogin(app, identity)
  const { issuer } = config.auth.oidc ?? {}
  registerConsole(app, {
    base: identity.login.publicUrl.base,
    version: serverVersion(),
    signIn: issuer === undefined ? undefined : new URL(issuer).host,
  })
  return app
}

/** Share of the grace period for background jobs. The rest is for the later shutdown steps. */
const JOBS_SHARE = 0.8
/** Maximum share of the grace period before the listeners close. Open requests need the rest. */
const READINESS_DELAY_SHARE = 0.5

async function stopAll(
  { config, log, started }: StartContext,
  listeners: Listeners,
): Promise<StopResult> {
  const graceMs = msOf(config.shutdown.grace)
  const readinessDelayMs = Math.min(
    msOf(config.shutdown.readinessDelay),
    graceMs * READINESS_DELAY_SHARE,
  )
  log.info(`Stopping within ${graceMs} ms.`)
  const end = async () => {
    await after(readinessDelayMs)
    await listeners.close()
  }
  // Background jobs started last. They end while requests complete; the other components end afterwards.
  const [jobs = [], ...rest] = started.toReversed()
  const result = await endAll([[{ what: 'requests', end }, ...jobs], ...rest], { graceMs, log })
  log.info(result.isClean ? 'Stopped.' : 'Stopped with errors. See the log lines above.')
  return result
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => {
    result ??= work()
    return result
  }
}

/** Runs a server until the signal fires, then stops it. */
export async function serveUntil(
  config: Config,
  options: ServeOptions & { readonly signal: AbortSignal },
): Promise<StopResult> {
  const { signal } = options
  const server = await serve(config, options)
  if (!signal.aborted) {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  }
  return server.stop()
}

/** Runs a server until SIGTERM or SIGINT and returns the exit code. A second signal exits immediately. */
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
