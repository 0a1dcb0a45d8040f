import type { Catalog, SourceReplays } from '@redrive/catalog'
import { FAILURE_CLASSES, isRedriveError } from '@redrive/core'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { allowsAll } from '../access/allow.ts'
import type { Identity } from '../identity/port.ts'
import type { BrokerState } from '../start/brokers.ts'
import { cached } from '../cached.ts'

export interface MetricsParts {
  readonly catalog: Pick<Catalog, 'counts' | 'replayed'>
  readonly version: string
  readonly roles: readonly string[]
  readonly brokers: () => readonly BrokerState[]
  /** Of the background work, by role. */
  readonly chores: () => readonly ChoreCounts[]
}

export interface ChoreCounts {
  readonly role: string
  readonly handled: number
  readonly failed: number
}

export interface ServerMetrics {
  /** `operation` is a name of the API, and never a path: paths have ids in them. */
  observe(operation: string, status: number, seconds: number): void
  /** In the format of Prometheus. */
  text(): Promise<string>
  readonly contentType: string
}

/** 5 s: Prometheus asks every 15 to 60 s, and several may ask. */
const KEEP_MS = 5_000
/** 500 sources with a series for each class; those beyond are counted as `other`. */
const SOURCES_MOST = 500
const OTHER = 'other'
/** Seconds; 100 ms and 1 s are what people notice. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Names of messages, keys and error texts are nowhere in here: how many series there are is known beforehand. */
export function createMetrics(parts: MetricsParts): ServerMetrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  addBuildInfo(registry, parts)
  addCatalog(registry, parts)
  addBrokers(registry, parts)
  addChores(registry, parts)
  const duration = new Histogram({
    name: 'redrive_http_request_duration_seconds',
    help: 'How long answers took, by operation of the API.',
    labelNames: ['operation', 'status'],
    buckets: BUCKETS,
    registers: [registry],
  })
  return {
    observe: (operation, status, seconds) => duration.observe({ operation, status }, seconds),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  }
}

function addBuildInfo(registry: Registry, { version, roles }: MetricsParts): void {
  const info = new Gauge({
    name: 'redrive_build_info',
    help: 'Always 1; what runs is in the labels.',
    labelNames: ['version', 'node', 'roles'],
    registers: [registry],
  })
  info.set({ version, node: process.version, roles: roles.join(',') }, 1)
}

interface Seen {
  readonly counts: Awaited<ReturnType<Catalog['counts']>>
  readonly replayed: readonly SourceReplays[]
}

const DATABASE_UP = {
  name: 'redrive_database_up',
  help: '1 when the catalog could be read just now. At 0 there are no numbers of it.',
} as const

/** What a run comes to; the rest of the states are on the way there. */
const ENDS = ['resolved', 'refailed', 'unknown', 'expired', 'skipped', 'cancelled'] as const

/** Each asks for itself, and all get the one answer. At 0 of the first there are no numbers of the others. */
function addCatalog(registry: Registry, { catalog }: MetricsParts): void {
  const ask = cached(KEEP_MS, async (): Promise<Seen> => {
    const [counts, replayed] = await Promise.all([catalog.counts(), catalog.replayed()])
    return { counts, replayed }
  })
  const read = () => ask().catch(() => undefined)
  const registers = [registry]
  new Gauge({
    ...DATABASE_UP,
    registers,
    async collect() {
      this.set((await read()) === undefined ? 0 : 1)
    },
  })
  new Gauge({
    name: 'redrive_dead_letters',
    help: 'Dead letters that nobody has dealt with.',
    labelNames: ['source', 'class'],
    registers,
    async collect() {
      const seen = await read()
      this.reset()
      for (const { source, openByClass } of bounded(seen?.counts.sources)) {
        for (const name of FAILURE_CLASSES) {
          this.inc({ source, class: name }, openByClass[name] ?? 0)
        }
      }
    },
  })
  new Gauge({
    name: 'redrive_oldest_dead_letter_age_seconds',
    help: 'Since the last failure of the open dead letter that waits longest; 0 when none is open.',
    labelNames: ['source'],
    registers,
    async collect() {
      const seen = await read()
      this.reset()
      for (const [source, oldestAt] of oldestOf(bounded(seen?.counts.sources))) {
        this.set({ source }, ageOf(seen?.counts.at, oldestAt))
      }
    },
  })
  new Counter({
    name: 'redrive_replay_items_total',
    help: 'What became of dead letters that were to be replayed.',
    labelNames: ['source', 'outcome'],
    registers,
    async collect() {
      const seen = await read()
      this.reset()
      for (const { source, items } of bounded(seen?.replayed)) {
        for (const outcome of ENDS) this.inc({ source, outcome }, items[outcome])
      }
    },
  })
}

/** Sources by name; those beyond the bound have one name together. */
const bounded = <T extends { readonly source: string }>(sources: readonly T[] = []): readonly T[] =>
  sources.map((one, at) => (at < SOURCES_MOST ? one : { ...one, source: OTHER }))

function oldestOf(
  sources: readonly { readonly source: string; readonly oldestAt: number | undefined }[],
): ReadonlyMap<string, number> {
  const oldest = new Map<string, number>()
  for (const { source, oldestAt = Number.POSITIVE_INFINITY } of sources) {
    oldest.set(source, Math.min(oldest.get(source) ?? Number.POSITIVE_INFINITY, oldestAt))
  }
  return oldest
}

const ageOf = (at = 0, oldestAt: number) =>
  Number.isFinite(oldestAt) ? Math.max(0, at - oldestAt) / 1_000 : 0

function addBrokers(registry: Registry, { brokers }: MetricsParts): void {
  new Gauge({
    name: 'redrive_broker_up',
    help: '1 when the broker of a source answered when it was last asked.',
    labelNames: ['source', 'broker'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { name, kind, isAnswering } of brokers().slice(0, SOURCES_MOST)) {
        if (isAnswering !== undefined) this.set({ source: name, broker: kind }, isAnswering ? 1 : 0)
      }
    },
  })
}

function addChores(registry: Registry, { chores }: MetricsParts): void {
  new Counter({
    name: 'redrive_chores_total',
    help: 'Background work of this process, by role and how it ended.',
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

/**
 * `/metrics`. They name sources and say how many wait, so with an `identity` they are for callers that may
 * view all sources. Without one they are for everybody who can connect: for a listener of their own.
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
    if (status === 'unknown') return reply.type(metrics.contentType).send(AWAY)
    if (status !== 200) return reply.code(status).type('text/plain').send(REFUSED[status])
    return reply.type(metrics.contentType).send(await metrics.text())
  })
}

const REFUSED = {
  401: 'Show a token: `Authorization: Bearer rdv_…`, or say metrics.listen in the config.\n',
  403: 'Metrics are for callers that may view all sources.\n',
}

/** All that is for somebody whose token cannot be looked up; `/readyz` says it to everybody. */
const AWAY = `# HELP ${DATABASE_UP.name} ${DATABASE_UP.help}
# TYPE ${DATABASE_UP.name} gauge
${DATABASE_UP.name} 0
`

/** `unknown`: the database that knows who it is does not answer. */
async function statusFor(
  { headers }: FastifyRequest,
  identity: Pick<Identity, 'identify'> | undefined,
): Promise<200 | 401 | 403 | 'unknown'> {
  if (identity === undefined) return 200
  try {
    // Programs ask, with a token: sessions are for pages.
    const caller = await identity.identify({ headers, cookies: {} })
    if (caller === undefined) return 401
    return allowsAll(caller, 'view') ? 200 : 403
  } catch (error) {
    if (isRedriveError(error, 'UNREACHABLE')) return 'unknown'
    throw error
  }
}
