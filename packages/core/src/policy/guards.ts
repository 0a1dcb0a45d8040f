import type { BreakerPolicy } from '../breaker.ts'
import type { BudgetPolicy } from '../budget.ts'
import * as defaults from '../defaults.ts'
import { FAILURE_CLASSES, type FailureClass } from '../failure.ts'
import type { FloodPolicy } from '../flood.ts'
import type { LimitPolicy } from '../limit.ts'
import type { OutagePolicy } from '../outage.ts'
import type { PoisonPolicy } from '../poison.ts'
import type { PolicyRole } from '../policy.ts'
import { shown } from '../text.ts'
import type { Section } from './section.ts'

export function readBreaker(
  section: Section | undefined,
  role: PolicyRole,
): BreakerPolicy | undefined {
  if (section === undefined) return undefined
  const longest = role === 'sink' ? defaults.SINK_BREAKER_MAX_OPEN_MS : defaults.BREAKER_MAX_OPEN_MS
  const policy: BreakerPolicy = {
    trip: readTrip(section.section('trip')),
    minOpenMs: section.duration('minOpen', defaults.BREAKER_MIN_OPEN_MS, {
      min: 1,
      max: 3_600_000,
    }),
    maxOpenMs: section.duration('maxOpen', longest, { min: 1, max: 3_600_000 }),
    openShare: section.number('openShare', defaults.BREAKER_OPEN_SHARE, { min: 0, max: 1 }),
    probes: section.integer('probes', defaults.BREAKER_PROBES, { min: 1, max: 100 }),
    successes: section.integer('successes', defaults.BREAKER_SUCCESSES, { min: 1, max: 1_000 }),
  }
  section.end()
  return policy
}

function readTrip(section: Section): BreakerPolicy['trip'] {
  const kind = section.choice('kind', 'consecutive', ['consecutive', 'ratio'])
  const trip: BreakerPolicy['trip'] =
    kind === 'consecutive'
      ? {
          kind,
          failures: section.integer('failures', defaults.BREAKER_FAILURES, { min: 1, max: 10_000 }),
        }
      : {
          kind,
          ratio: section.number('ratio', 0.5, { min: 0.01, max: 1 }),
          windowMs: section.duration('window', defaults.SICK_WINDOW_MS, {
            min: 100,
            max: 3_600_000,
          }),
          minimum: section.integer('minimum', 20, { min: 1, max: 100_000 }),
        }
  section.end()
  return trip
}

export function readOutage(section: Section | undefined): OutagePolicy | undefined {
  if (section === undefined) return undefined
  const policy: OutagePolicy = {
    ratio: section.number('ratio', defaults.SICK_RATIO, { min: 0.01, max: 1 }),
    failures: section.integer('failures', defaults.SICK_FAILURES, { min: 2, max: 200 }),
    windowMs: section.duration('window', defaults.SICK_WINDOW_MS, { min: 100, max: 3_600_000 }),
  }
  section.end()
  return policy
}

export function readLimit(
  section: Section | undefined,
  concurrency: number,
): LimitPolicy | undefined {
  if (section === undefined) return undefined
  const bounds = { min: 1, max: 10_000 }
  const policy: LimitPolicy = {
    start: section.integer('start', defaults.LIMIT_START, bounds),
    min: section.integer('min', defaults.LIMIT_MIN, bounds),
    max: concurrency,
    decrease: section.number('decrease', defaults.LIMIT_DECREASE, { min: 0.1, max: 0.95 }),
  }
  section.end()
  return policy
}

export function readBudget(section: Section | undefined): BudgetPolicy | undefined {
  if (section === undefined) return undefined
  const release = section.section('release')
  const perSecond = { min: 0, max: 100_000 }
  const policy: BudgetPolicy = {
    ratio: section.number('ratio', defaults.BUDGET_RATIO, { min: 0, max: 10 }),
    floorPerSecond: section.number('floorPerSecond', defaults.BUDGET_FLOOR_PER_SECOND, perSecond),
    burst: section.number('burst', defaults.BUDGET_BURST, { min: 1, max: 1_000_000 }),
    ratePerSecond: section.number('ratePerSecond', defaults.BUDGET_RATE_PER_SECOND, {
      min: 1,
      max: 100_000,
    }),
    onExceeded: section.choice('onExceeded', 'delay', ['delay', 'deadLetter', 'drop']),
    release: {
      batch: release.integer('batch', defaults.RELEASE_BATCH, { min: 1, max: 100_000 }),
      intervalMs: release.duration('interval', defaults.RELEASE_INTERVAL_MS, {
        min: 1,
        max: 3_600_000,
      }),
    },
  }
  release.end()
  section.end()
  return policy
}

export function readPoison(section: Section | undefined): PoisonPolicy | undefined {
  if (section === undefined) return undefined
  const bounds = { min: 2, max: 100 }
  const policy: PoisonPolicy = {
    repeats: section.integer('repeats', defaults.POISON_REPEATS, bounds),
    windowMs: section.duration('window', defaults.POISON_WINDOW_MS),
    classes: readClasses(section),
    suspectDeliveries: section.integer('suspectDeliveries', defaults.SUSPECT_DELIVERIES, bounds),
    trials: section.integer('trials', defaults.TRIALS, { min: 1, max: 100 }),
  }
  section.end()
  return policy
}

function readClasses(section: Section): readonly FailureClass[] {
  const value = section.raw('classes')
  if (value === undefined) return ['unknown']
  const known = Array.isArray(value) ? FAILURE_CLASSES.filter((one) => value.includes(one)) : []
  if (!Array.isArray(value) || known.length !== value.length) {
    section.problem(
      'classes',
      `expected a list of ${FAILURE_CLASSES.join(', ')}, got ${shown(value)}`,
    )
  }
  return known
}

export function readFlood(section: Section | undefined): FloodPolicy | undefined {
  if (section === undefined) return undefined
  const bounds = { min: 1, max: 1_000_000 }
  const policy: FloodPolicy = {
    burst: section.integer('burst', defaults.FLOOD_BURST, bounds),
    perMinute: section.number('perMinute', defaults.FLOOD_PER_MINUTE, bounds),
    signatures: section.integer('signatures', defaults.FLOOD_SIGNATURES, { min: 2, max: 10_000 }),
  }
  section.end()
  return policy
}
