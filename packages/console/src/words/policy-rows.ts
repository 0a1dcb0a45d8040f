import type { Backoff, Policy, PolicyOptions } from '@redrive/core'
import type { PolicyRow } from '../simulation/protocol.ts'
import { countOf, percentText } from './numbers.ts'
import { spanText } from './scenario.ts'

interface Row {
  readonly name: string
  /** The option that sets it. */
  readonly option: (options: PolicyOptions) => unknown
  readonly value: (policy: Policy) => string
  /** What sets it otherwise. Default: 'default'. */
  readonly otherwise?: 'simulator'
}

const OFF = 'off'

// biome-ignore format: one row per value
const ROWS: readonly Row[] = [
  { name: 'Timeout', option: ({ timeout }) => timeout, value: ({ timeoutMs }) => spanText(timeoutMs), otherwise: 'simulator' },
  { name: 'Attempts', option: ({ retry }) => retry?.classes?.transient?.attempts ?? retry?.attempts, value: ({ retry }) => countOf(retry.classes.transient.attempts, 'attempt') },
  { name: 'Backoff', option: ({ retry }) => retry?.classes?.transient?.backoff ?? retry?.backoff, value: ({ retry }) => backoffText(retry.classes.transient.backoff) },
  { name: 'Maximum age', option: ({ retry }) => retry?.maxAge, value: ({ retry }) => spanText(retry.maxAgeMs) },
  { name: 'Breaker', option: ({ breaker, onBreakerOpen }) => breaker ?? onBreakerOpen, value: ({ breaker, onBreakerOpen }) => breaker === undefined ? OFF : `${tripText(breaker.trip)}, then ${onBreakerOpen === 'pause' ? 'pause' : 'dead letters'}` },
  { name: 'Outage rule', option: ({ outage }) => outage, value: ({ outage }) => outage === undefined ? OFF : `${percentText(outage.ratio)} of outcomes in ${spanText(outage.windowMs)}` },
  { name: 'Adaptive limit', option: ({ adaptiveConcurrency }) => adaptiveConcurrency, value: ({ adaptiveConcurrency: limit }) => limit === undefined ? OFF : `starts at ${limit.start}, × ${limit.decrease}` },
  { name: 'Retry budget', option: ({ retryBudget }) => retryBudget, value: ({ retryBudget: budget }) => budget === undefined ? OFF : `${percentText(budget.ratio)} + ${budget.floorPerSecond} per s` },
  { name: 'Poison', option: ({ poison }) => poison, value: ({ poison }) => poison === undefined ? OFF : `${poison.repeats} equal failures in ${spanText(poison.windowMs)}` },
  { name: 'Flood', option: ({ flood }) => flood, value: ({ flood }) => flood === undefined ? OFF : 'on' },
  { name: 'Retention', option: ({ deadLetter }) => deadLetter?.retention, value: ({ deadLetter }) => spanText(deadLetter.retentionMs) },
]

/** Returns the values of a simulated policy for a reader, and what sets each of them. */
export const policyRows = (policy: Policy, options: PolicyOptions): readonly PolicyRow[] => [
  ...ROWS.map(({ name, option, value, otherwise = 'default' as const }) => ({
    name,
    value: value(policy),
    setBy: option(options) === undefined ? otherwise : ('options' as const),
  })),
  ...(options.concurrency === undefined ? [] : [IGNORED_CONCURRENCY]),
]

const IGNORED_CONCURRENCY: PolicyRow = {
  name: 'Concurrency',
  value: 'ignored, see In flight',
  setBy: 'simulator',
}

type Trip = NonNullable<Policy['breaker']>['trip']

const tripText = (trip: Trip): string =>
  trip.kind === 'consecutive'
    ? `${countOf(trip.failures, 'failure')} in a row`
    : `${percentText(trip.ratio)} in ${spanText(trip.windowMs)}`

function backoffText(backoff: Backoff): string {
  switch (backoff.kind) {
    case 'exponential':
    case 'linear':
      return `${spanText(backoff.baseMs)}–${spanText(backoff.capMs)}, ${jitterText(backoff.jitter)}`
    case 'decorrelated':
      return `${spanText(backoff.baseMs)}–${spanText(backoff.capMs)}, decorrelated`
    case 'fixed':
      return `${spanText(backoff.delayMs)}, ${jitterText(backoff.jitter)}`
    case 'progressive':
      return `by class, otherwise ${backoff.otherwiseMs.map(spanText).join(', ')}`
  }
}

type JitterValue = Extract<Backoff, { kind: 'fixed' }>['jitter']

const jitterText = (jitter: JitterValue): string => {
  if (typeof jitter === 'object') return `± ${percentText(jitter.proportional)}`
  return jitter === 'none' ? 'no jitter' : `${jitter} jitter`
}
