import type { BreakerPhase } from '@redrive/core'
import type { ConsumerHealth, ConsumerStats, EmitterStats } from '@redrive/runtime'
import { openEmitters, runningConsumers } from '@redrive/runtime/internal'
import type { Labels, Measurement, MetricName } from './metrics.ts'

const PHASES: Readonly<Record<BreakerPhase, number>> = {
  closed: 0,
  halfOpen: 1,
  open: 2,
  isolated: 3,
}

const HEALTH: Readonly<Record<ConsumerHealth['status'], number>> = { down: 0, degraded: 1, up: 2 }

/** What one consumer, dependency or emitter of this process reports. */
export interface OwnedState {
  readonly owner: object
  readonly measurements: readonly Measurement[]
}

/** Returns the current state of all consumers, their dependencies, and emitters of this process. */
export function readState(now: number): readonly OwnedState[] {
  const dependencies = new Map<object, OwnedState>()
  const all: OwnedState[] = []
  for (const { handler, consumer } of runningConsumers()) {
    const labels = { source: consumer.source, handler }
    const health = consumer.health()
    const measurements = [...ofStats(consumer.stats(), labels), ...ofHealth(health, labels, now)]
    all.push({ owner: consumer, measurements })
    const owner = consumer.dependency
    dependencies.set(owner, { owner, measurements: ofBreaker(health.breaker) })
  }
  for (const emitter of openEmitters()) {
    all.push({ owner: emitter, measurements: ofEmitter(emitter.stats()) })
  }
  return [...all, ...dependencies.values()]
}

const ofStats = (stats: ConsumerStats, labels: Labels): readonly Measurement[] => [
  value('redrive.consumer.running', stats.running, labels),
  value('redrive.consumer.waiting', stats.waiting, labels),
  value('redrive.consumer.settling', stats.settling, labels),
  value('redrive.consumer.concurrency_limit', stats.concurrencyLimit, labels),
  value('redrive.consumer.hung', stats.hung, labels),
]

function ofHealth(health: ConsumerHealth, labels: Labels, now: number): readonly Measurement[] {
  const { assigned, lag, oldestUnproven } = health
  const unprovenMs = oldestUnproven === undefined ? 0 : Math.max(0, now - oldestUnproven.since)
  return [
    value('redrive.consumer.connected', health.isConnected ? 1 : 0, labels),
    value('redrive.consumer.health', HEALTH[health.status], labels),
    value('redrive.consumer.unproven_age', unprovenMs / 1_000, labels),
    ...(assigned === undefined ? [] : [value('redrive.consumer.assigned', assigned, labels)]),
    ...(lag === undefined ? [] : [value('redrive.consumer.lag', lag, labels)]),
  ]
}

function ofBreaker(breaker: ConsumerHealth['breaker']): readonly Measurement[] {
  const labels = { dependency: breaker.dependency }
  return [
    value('redrive.circuit_breaker.state', PHASES[breaker.phase], labels),
    value('redrive.circuit_breaker.call', breaker.calls, labels),
    value('redrive.circuit_breaker.failure', breaker.failures, labels),
    value('redrive.circuit_breaker.rejected', breaker.rejections, labels),
  ]
}

function ofEmitter({ sinks, jobs, limited }: EmitterStats): readonly Measurement[] {
  return [
    ...Object.entries(sinks).flatMap(([sink, stats]) => [
      ...results('redrive.emitter.event', { sink }, stats, [
        'delivered',
        'stored',
        'dropped',
        'lost',
      ] as const),
      value('redrive.emitter.in_flight', stats.inFlight, { sink }),
      value('redrive.emitter.breaker_state', PHASES[stats.breaker], { sink }),
    ]),
    ...Object.entries(jobs).flatMap(([job, stats]) =>
      results('redrive.emitter.job_event', { job }, stats, ['stored', 'dropped', 'lost'] as const),
    ),
    value('redrive.emitter.rate_limited', limited, {}),
  ]
}

const results = <Name extends string>(
  metric: MetricName,
  labels: Labels,
  stats: Readonly<Record<Name, number>>,
  names: readonly Name[],
): readonly Measurement[] =>
  names.map((result) => value(metric, stats[result], { ...labels, result }))

const value = (metric: MetricName, number: number, labels: Labels): Measurement => ({
  metric,
  value: number,
  labels,
})
