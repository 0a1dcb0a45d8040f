import type { Awaitable } from '../awaitable.ts'
import type { ConsumerSet, ConsumerSetHealth } from '../consumer-set.ts'
import type { Consumer } from '../consume.ts'
import { countOf } from '../log/text.ts'
import type { BreakerHealth, ConsumerHealth } from './consumer.ts'
import { countDeadLetters, type DeadLetterCount } from './dead-letters.ts'
import { FailureRate, type RecentRuns } from './failure-rate.ts'
import type { ResolvedHealth } from './options.ts'

/** 10 runs: one failure of two is no rate. */
const MIN_RUNS = 10

/** The consumers whose health is reported: a `consumerSet`, or what a framework package has instead. */
export type CheckedConsumers = Pick<ConsumerSet, 'running' | 'isRunning' | 'health'>

/** Status and body of a health route. */
export interface HealthResponse {
  readonly status: 200 | 503
  readonly body: object
}

/** The result of `/healthz/consumer`. */
export interface HealthReport {
  /** The worst status of all consumers. */
  readonly status: ConsumerHealth['status']
  /** Each consumer by its name. */
  readonly consumers: Readonly<Record<string, ConsumerReport>>
}

/** The health of a consumer for people and dashboards. What is not known is null. */
export interface ConsumerReport {
  readonly status: ConsumerHealth['status']
  /** One sentence for each reason. Empty when the status is `up`. */
  readonly reasons: readonly string[]
  readonly breaker: Pick<BreakerHealth, 'dependency' | 'phase'> | null
  /** Number of its dead letters. */
  readonly deadLetters: number | null
  /** Time of the last message that was handled, as ISO 8601. */
  readonly lastHandledAt: string | null
  /** Share of failed runs in the last five minutes; null without a run. */
  readonly failureRate: number | null
}

/** The health routes of a process, by path. */
export type HealthRoutes = ReadonlyMap<string, () => Awaitable<HealthResponse>>

/** Creates the health routes, for any HTTP server. */
export function healthRoutes(consumers: CheckedConsumers, options: ResolvedHealth): HealthRoutes {
  const { path, ready } = options
  const report = reporter(options)
  return new Map<string, () => Awaitable<HealthResponse>>([
    [`${path}/live`, () => ({ status: 200, body: { status: 'up' } })],
    [`${path}/ready`, () => readinessOf(consumers, ready)],
    [`${path}/consumer`, () => reportAll(consumers, report)],
  ])
}

/** Returns whether the process is ready, from its own state: a new version must not wait for old dead letters. */
export function readinessOf(
  consumers: CheckedConsumers,
  ready: ResolvedHealth['ready'],
): HealthResponse & { readonly body: ConsumerSetHealth } {
  const { isRunning } = consumers
  const body = consumers.health()
  const found = ready === 'up' ? body.status === 'up' : body.status !== 'down'
  const isReady = isRunning && (ready === 'started' || found)
  return { status: isReady ? 200 : 503, body }
}

async function reportAll(
  consumers: CheckedConsumers,
  report: ReturnType<typeof reporter>,
): Promise<HealthResponse & { readonly body: HealthReport }> {
  const reports = await Promise.all(
    Object.entries(consumers.health().consumers).map(async ([name, state]) => {
      const one = await report(name, state, consumers.running.get(name))
      return [name, one] as const
    }),
  )
  const states = reports.map(([, { status }]) => status)
  const status = worstOf([consumers.isRunning ? 'up' : 'down', ...states])
  const body = { status, consumers: Object.fromEntries(reports) }
  return { status: status === 'up' ? 200 : 503, body }
}

/** Returns the function that reports about one consumer. It keeps the last counts of each consumer. */
function reporter({ deadLetters, maxDeadLetters, maxFailureRate, clock }: ResolvedHealth) {
  const counts = new Map(
    Object.entries(deadLetters).map(([name, count]) => [name, countDeadLetters(count, clock)]),
  )
  const rates = new Map<string, FailureRate>()
  const startedAt = clock.now()
  const runsOf = (name: string, consumer: Consumer) => {
    const rate = rates.get(name) ?? new FailureRate(startedAt)
    rates.set(name, rate)
    return rate.read(consumer.stats(), clock.now())
  }
  return async (
    name: string,
    { status, reasons }: Pick<ConsumerHealth, 'status' | 'reasons'>,
    consumer: Consumer | undefined,
  ): Promise<ConsumerReport> => {
    const runs = consumer === undefined ? NO_RUNS : runsOf(name, consumer)
    const waiting = await counts.get(name)?.()
    const degraded = [
      ...reasonsOfDeadLetters(waiting, maxDeadLetters),
      ...reasonsOfFailures(runs, maxFailureRate),
    ]
    const health = consumer?.health()
    return {
      status: worstOf([status, degraded.length > 0 ? 'degraded' : 'up']),
      reasons: [...reasons, ...degraded],
      breaker: health === undefined ? null : breakerOf(health),
      deadLetters: waiting?.count ?? null,
      lastHandledAt: isoOf(health?.lastHandledAt),
      failureRate: rateOf(runs) ?? null,
    }
  }
}

const NO_RUNS: RecentRuns = { handled: 0, failed: 0 }

const breakerOf = ({ breaker: { dependency, phase } }: ConsumerHealth) => ({ dependency, phase })
const isoOf = (at: number | undefined) => (at === undefined ? null : new Date(at).toISOString())

function rateOf({ handled, failed }: RecentRuns): number | undefined {
  const runs = handled + failed
  return runs === 0 ? undefined : Math.round((failed / runs) * 1_000) / 1_000
}

function reasonsOfDeadLetters(
  waiting: DeadLetterCount | undefined,
  max: number,
): readonly string[] {
  if (waiting === undefined) return []
  if (waiting.count === undefined) return [waiting.problem]
  if (waiting.count <= max) return []
  return [`It has ${countOf(waiting.count, 'dead letter')}, more than ${max.toLocaleString('en')}.`]
}

function reasonsOfFailures(runs: RecentRuns, max: number): readonly string[] {
  const total = runs.handled + runs.failed
  if (total < MIN_RUNS || runs.failed / total <= max) return []
  return [`${runs.failed} of its last ${total} runs failed.`]
}

const WORST = ['down', 'degraded', 'up'] as const

const worstOf = (states: readonly ConsumerHealth['status'][]): ConsumerHealth['status'] =>
  WORST.find((one) => states.includes(one)) ?? 'up'
