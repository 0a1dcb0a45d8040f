import type { FastifyInstance, FastifyReply } from 'fastify'
import type { BrokerKind } from '../config/source.ts'
import type { BrokerState } from '../start/brokers.ts'

export interface HealthParts {
  /** What the process does. */
  readonly roles: readonly string[]
  readonly isStopping: () => boolean
  /** Resolves when the database answers. */
  readonly database: () => Promise<void>
  /** Names of migrations that are missing. */
  readonly missing: () => Promise<readonly string[]>
  /** Reported, and never a reason to be taken out of service: what waits in a broker waits there. */
  readonly brokers: () => readonly BrokerState[]
}

/** A word for programs; why is in the log, which has more readers that may know it. */
export type CheckState = 'ok' | 'stopping' | 'not_answering' | 'migrations_missing'

export interface Readiness {
  readonly isReady: boolean
  readonly roles: readonly string[]
  readonly checks: Readonly<Record<'process' | 'database' | 'migrations', CheckState>>
  /** By kind and not by name: whoever can connect sees this, and names are for those who may view them. */
  readonly brokers: Readonly<Partial<Record<BrokerKind, BrokerCounts>>>
}

export interface BrokerCounts {
  readonly answering: number
  readonly silent: number
  readonly unknown: number
}

export async function readinessOf(parts: HealthParts): Promise<Readiness> {
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

/** Asked by machines, often, and by nobody in particular. */
const OPEN = {
  config: { rateLimit: false },
  logLevel: 'silent',
} as const

/**
 * `/livez`: the process runs; never asks anybody else, so that a database that is away restarts nobody.
 * `/readyz`: it can be asked something. `/healthz` is the same for those who only know that name.
 */
export function registerHealth(app: FastifyInstance, parts: HealthParts): void {
  app.get('/livez', OPEN, (_, reply) => plain(reply, 200, 'ok'))
  for (const path of ['/readyz', '/healthz']) {
    app.get<{ Querystring: Record<string, unknown> }>(path, OPEN, async (request, reply) => {
      const readiness = await readinessOf(parts)
      const status = readiness.isReady ? 200 : 503
      if (request.query['verbose'] === undefined) return plain(reply, status, wordOf(readiness))
      return reply.code(status).header('cache-control', 'no-store').send(readiness)
    })
  }
}

const wordOf = ({ isReady, checks }: Readiness) =>
  isReady ? 'ok' : `not ready: ${Object.values(checks).find((state) => state !== 'ok') ?? ''}`

const plain = (reply: FastifyReply, status: number, text: string) =>
  reply
    .code(status)
    .header('cache-control', 'no-store')
    .type('text/plain; charset=utf-8')
    .send(`${text}\n`)
