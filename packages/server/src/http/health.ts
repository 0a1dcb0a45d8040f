import type { FastifyInstance, FastifyReply } from 'fastify'
import type { BrokerKind } from '../config/source.ts'
import type { BrokerState } from '../start/brokers.ts'

export interface HealthDeps {
  /** Roles of the process. */
  readonly roles: readonly string[]
  readonly isStopping: () => boolean
  /** Resolves when the database is reachable. */
  readonly database: () => Promise<void>
  /** Returns the names of missing migrations. */
  readonly missing: () => Promise<readonly string[]>
  /** States of the brokers. They do not affect readiness, because dead letters are safe in the broker. */
  readonly brokers: () => readonly BrokerState[]
}

/** The result of one check. The reason is only in the log, because health checks need no authentication. */
export type CheckState = 'ok' | 'stopping' | 'not_answering' | 'migrations_missing'

export interface Readiness {
  readonly isReady: boolean
  readonly roles: readonly string[]
  readonly checks: Readonly<Record<'process' | 'database' | 'migrations', CheckState>>
  /** Counts by kind of broker. Names of sources are not included, because this needs no authentication. */
  readonly brokers: Readonly<Partial<Record<BrokerKind, BrokerCounts>>>
}

export interface BrokerCounts {
  readonly answering: number
  readonly silent: number
  readonly unknown: number
}

export async function readinessOf(parts: HealthDeps): Promise<Readiness> {
  const isAnswering = await parts.database().then(
    () => true,
    () => false,
  )
  const missing = isAnswering ? await parts.missing().catch(() => undefined) : undefined
  const checks = {
    process: parts.isStopping() ? 'stopping' : 'ok',
    database: isAnswering ? 'ok' : 'not_answering',
    migrations: migrationState(missing),
  } as const
  return {
    isReady: Object.values(checks).every((state) => state === 'ok'),
    roles: parts.roles,
    checks,
    brokers: countsOf(parts.brokers()),
  }
}

function migrationState(missing: readonly string[] | undefined): CheckState {
  if (missing === undefined) return 'not_answering'
  return missing.length === 0 ? 'ok' : 'migrations_missing'
}

function countsOf(states: readonly BrokerState[]): Readiness['brokers'] {
  const counts: Partial<Record<BrokerKind, BrokerCounts>> = {}
  for (const { kind, isAnswering } of states) {
    const { answering, silent, unknown } = counts[kind] ?? { answering: 0, silent: 0, unknown: 0 }
    counts[kind] = {
      answering: answering + (isAnswering === true ? 1 : 0),
      silent: silent + (isAnswering === false ? 1 : 0),
      unknown: unknown + (isAnswering === undefined ? 1 : 0),
    }
  }
  return counts
}

/** Route options: probes call health checks often, so they are not logged or limited. */
const OPEN = {
  config: { rateLimit: false },
  logLevel: 'silent',
} as const

/**
 * Registers the health checks. `/livez` checks only the process, so that an unreachable database does not cause
 * restarts. `/readyz` checks whether the server can handle requests; `/healthz` is an alias of it.
 */
export function registerHealth(app: FastifyInstance, parts: HealthDeps): void {
  app.get('/livez', OPEN, (_, reply) => plain(reply, 200, 'ok'))
  for (const path of ['/readyz', '/healthz']) {
    app.get<{ Querystring: Record<string, unknown> }>(path, OPEN, async (request, reply) => {
      const readiness = await readinessOf(parts)
      const status = readiness.isReady ? 200 : 503
      if (request.query['verbose'] === undefined) return plain(reply, status, textOf(readiness))
      return reply.code(status).header('cache-control', 'no-store').send(readiness)
    })
  }
}

const textOf = ({ isReady, checks }: Readiness) =>
  isReady ? 'ok' : `not ready: ${Object.values(checks).find((state) => state !== 'ok') ?? ''}`

const plain = (reply: FastifyReply, status: number, text: string) =>
  reply
    .code(status)
    .header('cache-control', 'no-store')
    .type('text/plain; charset=utf-8')
    .send(`${text}\n`)
