import { isRedriveError } from '@redrive/core'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { allowsAll } from '../access/allow.ts'
import type { ExportLag } from '../audit/export.ts'
import { cached } from '../cached.ts'
import type { Identity } from '../identity/port.ts'
import type { BrokerState } from '../start/brokers.ts'
import {
  addCatalog,
  CACHE_MS,
  type CatalogDeps,
  DATABASE_UP,
  MAX_SOURCES,
} from './catalog-metrics.ts'

export interface MetricsDeps extends CatalogDeps {
  readonly version: string
  readonly roles: readonly string[]
  readonly brokers: () => readonly BrokerState[]
  /** Returns counts of background jobs by role. */
  readonly chores: () => readonly ChoreCounts[]
  /** Returns how far each target of the audit log is behind. Default: there is none. */
  readonly auditExport?: () => Promise<readonly ExportLag[]>
}

export interface ChoreCounts {
  readonly role: string
  readonly handled: number
  readonly failed: number
}

export interface ServerMetrics {
  /** Records a response. `operation` is a name of the API and not a path, because paths contain ids. */
  observe(operation: string, status: number, seconds: number): void
  /** Counts an invalid token or session. */
  refusedCredential(kind: 'token' | 'session'): void
  /** Returns the metrics in the Prometheus format. */
  text(): Promise<string>
  readonly contentType: string
}

/** Seconds. Users notice 100 ms and 1 s. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Creates the metrics. Labels contain no message types, keys or error texts, so the number of series is bounded. */
export function createMetrics(parts: MetricsDeps): ServerMetrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  addBuildInfo(registry, parts)
  addCatalog(registry, parts)
  addBrokers(registry, parts)
  addSourceStates(registry, parts)
  addChores(registry, parts)
  addAuditExport(registry, parts)
  const duration = new Histogram({
    name: 'redrive_http_request_duration_seconds',
    help: 'Duration of requests, by operation of the API.',
    labelNames: ['operation', 'status'],
    buckets: BUCKETS,
    registers: [registry],
  })
  const refused = new Counter({
    name: 'redrive_refused_credentials_total',
    help: 'Requests with an invalid, expired or revoked token or session.',
    labelNames: ['kind'],
    registers: [registry],
  })
  return {
    refusedCredential: (kind) => refused.inc({ kind }),
    observe: (operation, status, seconds) => duration.observe({ operation, status }, seconds),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  }
}

function addBuildInfo(registry: Registry, { version, roles }: MetricsDeps): void {
  const info = new Gauge({
    name: 'redrive_build_info',
    help: 'Always 1. The labels contain the version and the roles.',
    labelNames: ['version', 'node', 'roles'],
    registers: [registry],
  })
  info.set({ version, node: process.version, roles: roles.join(',') }, 1)
}

function addBrokers(registry: Registry, { brokers }: MetricsDeps): void {
  new Gauge({
    name: 'redrive_broker_up',
    help: '1 if the broker of a source was reachable at the last check.',
    labelNames: ['source', 'broker'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { name, kind, isAnswering } of brokers().slice(0, MAX_SOURCES)) {
        if (isAnswering !== undefined) this.set({ source: name, broker: kind }, isAnswering ? 1 : 0)
      }
    },
  })
}

/** Adds what this process found at the brokers. A series is absent while its value is unknown. */
function addSourceStates(registry: Registry, { brokers }: MetricsDeps): void {
  const add = (name: string, help: string, of: (state: BrokerState) => number | undefined) =>
    new Gauge({
      name,
      help,
      labelNames: ['source'],
      registers: [registry],
      collect() {
        this.reset()
        for (const state of brokers().slice(0, MAX_SOURCES)) {
          const value = of(state)
          if (value !== undefined) this.set({ source: state.name }, value)
        }
      },
    })
  add(
    'redrive_broker_dead_letters',
    'Dead letters that wait in the broker for the ingest, at the last check.',
    ({ depth }) => depth,
  )
  add(
    'redrive_broker_lag',
    'Messages of the source that wait for its consumers, at the last check.',
    ({ lag }) => lag,
  )
  add(
    'redrive_broker_missing_queues',
    'Queues or topics of the source that do not exist, at the last check.',
    ({ isAnswering, missing }) => (isAnswering === true ? missing.length : undefined),
  )
}

function addChores(registry: Registry, { chores }: MetricsDeps): void {
  new Counter({
    name: 'redrive_background_jobs_total',
    help: 'Background jobs of this process, by role and outcome.',
    labelNames: ['role', 'outcome'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { role, handled, failed } of chores()) {
        this.inc({ role, outcome: 'handled' }, handled)
        this.inc({ role, outcome: 'failed' }, failed)
      }
    },
  })
}

const AUDIT_EXPORT = [
  {
    name: 'redrive_audit_export_waiting_entries',
    help: 'Entries of the audit log that the target has not accepted yet.',
    of: ({ entries }: ExportLag) => entries,
  },
  {
    name: 'redrive_audit_export_delay_seconds',
    help: 'Age of the oldest entry of the audit log that the target has not accepted; 0 if there is none.',
    of: ({ ageMs }: ExportLag) => ageMs / 1_000,
  },
] as const

/** Adds how far the export of the audit log is behind. The series are absent while the database cannot be read. */
function addAuditExport(registry: Registry, { auditExport }: MetricsDeps): void {
  if (auditExport === undefined) return
  const load = cached(CACHE_MS, auditExport)
  for (const { name, help, of } of AUDIT_EXPORT) {
    new Gauge({
      name,
      help,
      labelNames: ['target'],
      registers: [registry],
      async collect() {
        const lags = await load().catch(() => [])
        this.reset()
        for (const lag of lags) this.set({ target: lag.kind }, of(lag))
      },
    })
  }
}

/**
 * Registers `/metrics`. Metrics contain source names and counts, so with an `identity` they require permission
 * "view" on all sources. Without one they need no authentication; use that only for a separate listener.
 */
export function registerMetrics(
  app: FastifyInstance,
  metrics: ServerMetrics,
  identity: Pick<Identity, 'identify'> | undefined,
): void {
  const quiet = { logLevel: 'error' } as const
  app.get('/metrics', quiet, async (request, reply) => {
    reply.header('cache-control', 'no-store')
    const status = await statusFor(request, identity)
    if (status === 401 && request.headers.authorization !== undefined) {
      metrics.refusedCredential('token')
      // The log of the request leaves out warnings.
      app.log.warn({ address: request.ip, kind: 'token' }, REFUSED_CREDENTIAL)
    }
    if (status === 'unknown') return reply.type(metrics.contentType).send(DATABASE_DOWN)
    if (status !== 200) return reply.code(status).type('text/plain').send(REFUSED[status])
    return reply.type(metrics.contentType).send(await metrics.text())
  })
}

/** The log line of a wrong, expired or revoked credential. */
export const REFUSED_CREDENTIAL = 'Refused an invalid credential'

const REFUSED = {
  401: 'Send a token: `Authorization: Bearer rdv_…`, or set metrics.listen in the config.\n',
  403: 'Metrics require permission "view" on all sources.\n',
}

/** The response when a token cannot be checked. `/readyz` reports the same without authentication. */
const DATABASE_DOWN = `# HELP ${DATABASE_UP.name} ${DATABASE_UP.help}
# TYPE ${DATABASE_UP.name} gauge
${DATABASE_UP.name} 0
`

/** Returns the status for a request, or `unknown` if the database cannot be reached to check the token. */
async function statusFor(
  { headers }: FastifyRequest,
  identity: Pick<Identity, 'identify'> | undefined,
): Promise<200 | 401 | 403 | 'unknown'> {
  if (identity === undefined) return 200
  try {
    // Cookies are ignored: metrics are for programs, which use tokens.
    const caller = await identity.identify({ headers, cookies: {} })
    if (caller === undefined) return 401
    return allowsAll(caller, 'view') ? 200 : 403
  } catch (error) {
    if (isRedriveError(error, 'UNREACHABLE')) return 'unknown'
    throw error
  }
}
