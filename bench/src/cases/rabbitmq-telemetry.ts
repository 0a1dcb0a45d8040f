// Measures the cost of telemetry on RabbitMQ: one consumer without it, with Prometheus and with OpenTelemetry.
// Every message has 1 KB and every queue is a quorum queue; connecting and filling are not timed.
import type { BenchCase, Comparison } from '../comparison.ts'
import { type Entrant, openAll } from '../rabbitmq/contender.ts'
import { redrive } from '../rabbitmq/redrive.ts'
import {
  observedBy,
  openTelemetryMetrics,
  openTelemetryTraces,
  prometheusRead,
} from '../rabbitmq/telemetry.ts'
import { GATE_3_PERCENT, type Goal, slowerBy } from '../verdict.ts'

const OFF = 'redrive, telemetry off'
const PROMETHEUS = 'Prometheus'
const METRICS = 'OpenTelemetry, metrics'
const SPANS = 'OpenTelemetry, metrics and all spans'
const PREFETCH = 50

// The number in flight is the same for all candidates from the first message on.
const consumer = redrive({ adaptiveConcurrency: 'off' })

const entrants: readonly Entrant[] = [
  { name: OFF, open: consumer },
  { name: PROMETHEUS, open: observedBy(prometheusRead, consumer) },
  { name: METRICS, open: observedBy(openTelemetryMetrics, consumer) },
  { name: SPANS, open: observedBy(openTelemetryTraces, consumer) },
]

const throughput = (name: string, candidate: string): Goal => ({
  name,
  candidate,
  against: OFF,
  metric: 'wallNs',
  atMost: slowerBy(0.97),
})

const goals: readonly Goal[] = [
  throughput('prometheus/off', PROMETHEUS),
  throughput('metrics/off', METRICS),
  // A span is the work of the SDK, and samplers exist for high rates. It is reported only.
  { ...throughput('spans/off', SPANS), aim: true },
]

async function success(): Promise<Comparison> {
  return {
    name: 'rabbitmq-telemetry.success-50',
    summary: `handler returns, prefetch ${PREFETCH}`,
    candidates: await openAll(entrants, {
      prefetch: PREFETCH,
      attempts: 1,
      isDeadLettered: false,
    }),
    baseline: OFF,
    options: {
      rounds: 60,
      sampleMs: 750,
      warmupRounds: 2,
      seed: 1,
      // 50 MB in the queue: more would measure the broker's paging.
      maxCount: 50_000,
      twinOf: OFF,
    },
    selfCheck: GATE_3_PERCENT,
    goals,
  }
}

export const bench: BenchCase = {
  summary: 'Telemetry of a consumer on RabbitMQ, off and on',
  comparisons: [success],
}
