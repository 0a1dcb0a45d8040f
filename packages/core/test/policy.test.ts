import { describe, expect, test } from 'vitest'
import type { Backoff, BackoffOptions } from '../src/backoff.ts'
import { transient } from '../src/classify/rules.ts'
import { isRedriveError, RedriveError } from '../src/errors.ts'
import type { PolicyOptions } from '../src/policy/options.ts'
import {
  fillConfig,
  type PolicySource,
  readPolicyOptions,
  resolvePolicy,
} from '../src/policy/resolve.ts'
import type { Policy, PolicyRole } from '../src/policy.ts'
import { GUARDS_OFF } from './fixtures.ts'

/** Returns the policy of plain data. */
function readPolicy(config: unknown, source: PolicySource = {}): Policy {
  return resolvePolicy(readPolicyOptions(config, source), source.role)
}

/** Returns every problem of these options; an empty list when they are valid. */
function problemsOf(options: unknown, role: PolicyRole = 'consumer'): readonly string[] {
  try {
    readPolicy(options, { role })
    return []
  } catch (error) {
    if (isRedriveError(error, 'POLICY_INVALID')) return error.problems
    throw error
  }
}

/** Returns `{ a: { b: value } }` for `a.b`. */
function nested(path: string, value: unknown): unknown {
  return path.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), value)
}

function at(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((outer, key) => (outer as Record<string, unknown>)[key], value)
}

function backoffOf(backoff: unknown): Backoff {
  return resolvePolicy({ retry: { backoff: backoff as BackoffOptions } }).retry.classes.transient
    .backoff
}

function isDeeplyFrozen(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || value instanceof RegExp) return true
  return Object.isFrozen(value) && Object.values(value).every(isDeeplyFrozen)
}

const retried = {
  action: 'retry',
  attempts: 5,
  backoff: { kind: 'exponential', baseMs: 1_000, factor: 2, capMs: 60_000, jitter: 'full' },
}
const retriedBySink = {
  action: 'retry',
  attempts: 3,
  backoff: { kind: 'exponential', baseMs: 100, factor: 2, capMs: 5_000, jitter: 'full' },
}

describe('the resolved policy without any options', () => {
  test('of a consumer', () => {
    expect(resolvePolicy()).toEqual({
      timeoutMs: 30_000,
      graceMs: 5_000,
      concurrency: 50,
      order: 'none',
      retry: {
        minDelayMs: 10,
        maxAgeMs: 1_209_600_000,
        maxInlineDelayMs: 1_000,
        history: 10,
        unproven: { maxAgeMs: 3_600_000, runs: 20 },
        classes: {
          transient: retried,
          unknown: retried,
          schema: { ...retried, action: 'deadLetter' },
          business: { ...retried, action: 'deadLetter' },
          integration: { ...retried, action: 'deadLetter' },
        },
      },
      rules: [],
      breaker: {
        trip: { kind: 'consecutive', failures: 5 },
        minOpenMs: 1_000,
        maxOpenMs: 30_000,
        openShare: 0.1,
        probes: 1,
        successes: 2,
      },
      onBreakerOpen: 'pause',
      outage: { ratio: 0.25, failures: 5, windowMs: 30_000 },
      adaptiveConcurrency: { start: 10, min: 1, max: 50, decrease: 0.7 },
      retryBudget: {
        ratio: 0.1,
        floorPerSecond: 10,
        burst: 100,
        ratePerSecond: 100,
        onExceeded: 'delay',
        release: { batch: 10, intervalMs: 1_000 },
      },
      poison: {
        repeats: 3,
        windowMs: 86_400_000,
        classes: ['unknown'],
        suspectDeliveries: 3,
        trials: 3,
      },
      flood: { burst: 100, perMinute: 60, signatures: 64 },
      deadLetter: {
        filter: { drop: [], keep: [], keepIf: undefined },
        includeStack: false,
        retentionMs: 1_209_600_000,
      },
    })
  })

  test('of a sink: fewer attempts, shorter waits, and dead letters instead of a pause', () => {
    const consumer = resolvePolicy()
    expect(resolvePolicy({}, 'sink')).toEqual({
      ...consumer,
      retry: {
        ...consumer.retry,
        unproven: undefined,
        classes: {
          transient: retriedBySink,
          unknown: retriedBySink,
          schema: { ...retriedBySink, action: 'deadLetter' },
          business: { ...retriedBySink, action: 'deadLetter' },
          integration: { ...retriedBySink, action: 'deadLetter' },
        },
      },
      breaker: { ...consumer.breaker, maxOpenMs: 60_000 },
      onBreakerOpen: 'deadLetter',
    })
  })

  test('of a sink counts failures without proof, unless it sets limits for them', () => {
    expect(resolvePolicy({ retry: { unproven: {} } }, 'sink').retry.unproven).toEqual({
      maxAgeMs: 3_600_000,
      runs: 20,
    })
    expect(resolvePolicy({ retry: { unproven: 'off' } }, 'sink').retry.unproven).toBeUndefined()
    expect(resolvePolicy({ retry: { unproven: 'off' } }).retry.unproven).toBeUndefined()
  })

  test('is the same from code, from an empty file and for the role by name', () => {
    expect(resolvePolicy({})).toEqual(resolvePolicy())
    expect(resolvePolicy({}, 'consumer')).toEqual(resolvePolicy())
    expect(readPolicy({})).toEqual(resolvePolicy())
    expect(readPolicy(undefined, {})).toEqual(resolvePolicy())
    expect(readPolicy({}, { role: 'sink' })).toEqual(resolvePolicy({}, 'sink'))
  })

  test('reads options from getters and from a class', () => {
    class Base {
      get timeout() {
        return '7s' as const
      }
    }
    class Options extends Base {
      readonly concurrency = 3
    }
    expect(resolvePolicy(new Options())).toMatchObject({ timeoutMs: 7_000, concurrency: 3 })
    const inherited = Object.create({ retry: { attempts: 9 } }) as PolicyOptions
    expect(resolvePolicy(inherited).retry.classes.unknown.attempts).toBe(9)
  })

  test('is the same with every section present but empty', () => {
    const empty = {
      retry: { classes: { transient: {}, schema: {} } },
      classify: [],
      breaker: { trip: {} },
      outage: {},
      adaptiveConcurrency: {},
      retryBudget: { release: {} },
      poison: {},
      flood: {},
      deadLetter: {},
    }
    expect(readPolicy(empty)).toEqual(resolvePolicy())
  })
})

const RANGES: readonly [
  option: string,
  inForce: string,
  expected: string,
  range: readonly [below: unknown, min: number, max: number, above: unknown],
][] = [
  ['timeout', 'timeoutMs', duration('1ms', '12h'), [0, 1, 43_200_000, 43_200_001]],
  ['grace', 'graceMs', duration('0ms', '5m'), [-1, 0, 300_000, 300_001]],
  ['concurrency', 'concurrency', whole(1, 10_000), [0, 1, 10_000, 10_001]],
  ['retry.attempts', 'retry.classes.transient.attempts', whole(1, 1_000), [0, 1, 1_000, 1_001]],
  [
    'retry.classes.unknown.attempts',
    'retry.classes.unknown.attempts',
    whole(1, 1_000),
    [0, 1, 1_000, 1_001],
  ],
  ['retry.minDelay', 'retry.minDelayMs', duration('1ms', '1h'), [0, 1, 3_600_000, 3_600_001]],
  [
    'retry.maxAge',
    'retry.maxAgeMs',
    duration('0ms', '366d'),
    [-1, 0, 31_622_400_000, 31_622_400_001],
  ],
  [
    'retry.maxInlineDelay',
    'retry.maxInlineDelayMs',
    duration('0ms', '5m'),
    [-1, 0, 300_000, 300_001],
  ],
  [
    'retry.unproven.maxAge',
    'retry.unproven.maxAgeMs',
    duration('1s', '366d'),
    [999, 1_000, 31_622_400_000, 31_622_400_001],
  ],
  ['retry.unproven.runs', 'retry.unproven.runs', whole(2, 10_000), [1, 2, 10_000, 10_001]],
  ['breaker.minOpen', 'breaker.minOpenMs', duration('1ms', '1h'), [0, 1, 30_000, 3_600_001]],
  ['breaker.maxOpen', 'breaker.maxOpenMs', duration('1ms', '1h'), [0, 1_000, 3_600_000, 3_600_001]],
  ['breaker.openShare', 'breaker.openShare', number(0, 1), [-0.01, 0, 1, 1.01]],
  ['breaker.probes', 'breaker.probes', whole(1, 100), [0, 1, 100, 101]],
  ['breaker.successes', 'breaker.successes', whole(1, 1_000), [0, 1, 1_000, 1_001]],
  ['breaker.trip.failures', 'breaker.trip.failures', whole(1, 10_000), [0, 1, 10_000, 10_001]],
  ['outage.ratio', 'outage.ratio', number(0.01, 1), [0.009, 0.01, 1, 1.01]],
  ['outage.failures', 'outage.failures', whole(2, 200), [1, 2, 200, 201]],
  ['outage.window', 'outage.windowMs', duration('100ms', '1h'), [99, 100, 3_600_000, 3_600_001]],
  [
    'adaptiveConcurrency.start',
    'adaptiveConcurrency.start',
    whole(1, 10_000),
    [0, 1, 10_000, 10_001],
  ],
  [
    'adaptiveConcurrency.decrease',
    'adaptiveConcurrency.decrease',
    number(0.1, 0.95),
    [0.09, 0.1, 0.95, 0.96],
  ],
  ['retryBudget.ratio', 'retryBudget.ratio', number(0, 10), [-0.1, 0, 10, 10.1]],
  [
    'retryBudget.floorPerSecond',
    'retryBudget.floorPerSecond',
    number(0, 100_000),
    [-1, 0, 100_000, 100_001],
  ],
  ['retryBudget.burst', 'retryBudget.burst', number(1, 1_000_000), [0.9, 1, 1_000_000, 1_000_001]],
  [
    'retryBudget.ratePerSecond',
    'retryBudget.ratePerSecond',
    number(1, 100_000),
    [0.9, 1, 100_000, 100_001],
  ],
  [
    'retryBudget.release.batch',
    'retryBudget.release.batch',
    whole(1, 100_000),
    [0, 1, 100_000, 100_001],
  ],
  [
    'retryBudget.release.interval',
    'retryBudget.release.intervalMs',
    duration('1ms', '1h'),
    [0, 1, 3_600_000, 3_600_001],
  ],
  [
    'poison.window',
    'poison.windowMs',
    duration('0ms', '366d'),
    [-1, 0, 31_622_400_000, 31_622_400_001],
  ],
  ['poison.trials', 'poison.trials', whole(1, 100), [0, 1, 100, 101]],
  ['poison.suspectDeliveries', 'poison.suspectDeliveries', whole(2, 100), [1, 2, 100, 101]],
  ['flood.burst', 'flood.burst', whole(1, 1_000_000), [0, 1, 1_000_000, 1_000_001]],
  ['flood.perMinute', 'flood.perMinute', number(1, 1_000_000), [0.9, 1, 1_000_000, 1_000_001]],
  ['flood.signatures', 'flood.signatures', whole(2, 10_000), [1, 2, 10_000, 10_001]],
  [
    'deadLetter.retention',
    'deadLetter.retentionMs',
    duration('1s', '3650d'),
    [999, 1_000, 315_360_000_000, 315_360_000_001],
  ],
]

function whole(min: number, max: number): string {
  return `a whole number from ${min} to ${max}`
}

function number(min: number, max: number): string {
  return `a number from ${min} to ${max}`
}

function duration(min: string, max: string): string {
  return `a duration from ${min} to ${max} such as '250ms', '5s' or '2m'`
}

describe.each(RANGES)('%s', (option, inForce, expected, [below, min, max, above]) => {
  test(`is in force at both ends of its range, ${min} and ${max}`, () => {
    expect(at(readPolicy(nested(option, min)), inForce)).toBe(min)
    expect(at(readPolicy(nested(option, max)), inForce)).toBe(max)
  })

  test(`is rejected just outside of it, at ${String(below)} and ${String(above)}`, () => {
    for (const value of [below, above]) {
      const problems = problemsOf(nested(option, value))
      expect(problems).toContain(`${option}: expected ${expected}, got ${String(value)}`)
    }
  })

  test('is rejected as other text, and as null', () => {
    expect(problemsOf(nested(option, 'many'))).toEqual([
      `${option}: expected ${expected}, got 'many'`,
    ])
    expect(problemsOf(nested(option, null))).toEqual([`${option}: expected ${expected}, got null`])
  })
})

test.each(RANGES.filter(([, , expected]) => expected.startsWith('a whole')))(
  '%s is rejected as a fraction',
  (option, _, expected, [, min]) => {
    expect(problemsOf(nested(option, min + 0.5))).toEqual([
      `${option}: expected ${expected}, got ${min + 0.5}`,
    ])
  },
)

describe('ranges that depend on another field', () => {
  test('retry.history keeps from 1 to 100 attempts', () => {
    const check = (history: number) => problemsOf({ retry: { history }, poison: 'off' })
    expect(check(1)).toEqual([])
    expect(check(100)).toEqual([])
    expect(check(0)).toEqual([`retry.history: expected ${whole(1, 100)}, got 0`])
    expect(check(101)).toEqual([`retry.history: expected ${whole(1, 100)}, got 101`])
    expect(resolvePolicy({ retry: { history: 42 } }).retry.history).toBe(42)
  })

  test('poison.repeats goes from 2 to 100', () => {
    const check = (repeats: number) => problemsOf({ retry: { history: 100 }, poison: { repeats } })
    expect(check(2)).toEqual([])
    expect(check(100)).toEqual([])
    expect(check(1)).toEqual([`poison.repeats: expected ${whole(2, 100)}, got 1`])
    expect(check(101)).toEqual([`poison.repeats: expected ${whole(2, 100)}, got 101`])
    expect(resolvePolicy({ poison: { repeats: 7 } }).poison?.repeats).toBe(7)
  })

  test('adaptiveConcurrency.min goes from 1 to 10000', () => {
    const check = (min: number) =>
      problemsOf({ concurrency: 10_000, adaptiveConcurrency: { start: 10_000, min } })
    expect(check(1)).toEqual([])
    expect(check(10_000)).toEqual([])
    expect(check(0)).toEqual([`adaptiveConcurrency.min: expected ${whole(1, 10_000)}, got 0`])
    expect(check(10_001)).toEqual([
      `adaptiveConcurrency.min: expected ${whole(1, 10_000)}, got 10001`,
    ])
    expect(resolvePolicy({ adaptiveConcurrency: { min: 4 } }).adaptiveConcurrency?.min).toBe(4)
  })

  test('the breaker may stay open for an hour when both limits allow it', () => {
    const open = resolvePolicy({ breaker: { minOpen: '1h', maxOpen: '1h' } }).breaker
    expect(open).toMatchObject({ minOpenMs: 3_600_000, maxOpenMs: 3_600_000 })
    const shut = resolvePolicy({ breaker: { minOpen: 1, maxOpen: 1 } }).breaker
    expect(shut).toMatchObject({ minOpenMs: 1, maxOpenMs: 1 })
  })

  test('a breaker that trips by ratio has its own window and minimum', () => {
    const trip = (more: object) =>
      readPolicy({ breaker: { trip: { kind: 'ratio', ...more } } }).breaker?.trip
    expect(trip({})).toEqual({ kind: 'ratio', ratio: 0.5, windowMs: 30_000, minimum: 20 })
    expect(trip({ ratio: 0.01, window: 100, minimum: 1 })).toEqual({
      kind: 'ratio',
      ratio: 0.01,
      windowMs: 100,
      minimum: 1,
    })
    expect(trip({ ratio: 1, window: '1h', minimum: 100_000 })).toEqual({
      kind: 'ratio',
      ratio: 1,
      windowMs: 3_600_000,
      minimum: 100_000,
    })
  })

  test('a breaker that trips by ratio is rejected outside of its ranges', () => {
    const check = (ratio: unknown, window: unknown, minimum: unknown) =>
      problemsOf({ breaker: { trip: { kind: 'ratio', ratio, window, minimum } } })
    expect(check(0.009, 99, 0)).toEqual([
      `breaker.trip.ratio: expected ${number(0.01, 1)}, got 0.009`,
      `breaker.trip.window: expected ${duration('100ms', '1h')}, got 99`,
      `breaker.trip.minimum: expected ${whole(1, 100_000)}, got 0`,
    ])
    expect(check(1.1, 3_600_001, 100_001)).toEqual([
      `breaker.trip.ratio: expected ${number(0.01, 1)}, got 1.1`,
      `breaker.trip.window: expected ${duration('100ms', '1h')}, got 3600001`,
      `breaker.trip.minimum: expected ${whole(1, 100_000)}, got 100001`,
    ])
  })
})

describe('enumerations', () => {
  test.each<[option: string, inForce: string, allowed: readonly string[], expected: string]>([
    ['order', 'order', ['none', 'lane'], "'none' or 'lane'"],
    ['onBreakerOpen', 'onBreakerOpen', ['pause', 'deadLetter'], "'pause' or 'deadLetter'"],
    [
      'retryBudget.onExceeded',
      'retryBudget.onExceeded',
      ['delay', 'deadLetter', 'drop'],
      "'delay' or 'deadLetter' or 'drop'",
    ],
    [
      'breaker.trip.kind',
      'breaker.trip.kind',
      ['consecutive', 'ratio'],
      "'consecutive' or 'ratio'",
    ],
    [
      'retry.classes.business.action',
      'retry.classes.business.action',
      ['retry', 'deadLetter'],
      "'retry' or 'deadLetter'",
    ],
  ])('%s is one of its values', (option, inForce, allowed, expected) => {
    for (const word of allowed) expect(at(readPolicy(nested(option, word)), inForce)).toBe(word)
    expect(problemsOf(nested(option, 'maybe'))).toEqual([
      `${option}: expected ${expected}, got 'maybe'`,
    ])
    expect(problemsOf(nested(option, null))).toEqual([`${option}: expected ${expected}, got null`])
  })

  test('onBreakerOpen has its value for both roles', () => {
    expect(resolvePolicy({ onBreakerOpen: 'deadLetter' }, 'consumer').onBreakerOpen).toBe(
      'deadLetter',
    )
    expect(resolvePolicy({ onBreakerOpen: 'pause' }, 'sink').onBreakerOpen).toBe('pause')
  })

  test('deadLetter.includeStack is true or false', () => {
    expect(resolvePolicy({ deadLetter: { includeStack: true } }).deadLetter.includeStack).toBe(true)
    expect(resolvePolicy({ deadLetter: { includeStack: false } }).deadLetter.includeStack).toBe(
      false,
    )
    expect(problemsOf({ deadLetter: { includeStack: 'yes' } })).toEqual([
      "deadLetter.includeStack: expected true or false, got 'yes'",
    ])
  })
})

describe('a guard', () => {
  test.each([
    'breaker',
    'outage',
    'adaptiveConcurrency',
    'retryBudget',
    'poison',
    'flood',
  ] as const)('%s can be switched off, and the others stay', (guard) => {
    const policy = resolvePolicy({ [guard]: 'off' })
    expect(policy).toEqual({ ...resolvePolicy(), [guard]: undefined })
    expect(policy[guard]).toBeUndefined()
  })

  test.each(['breaker', 'outage', 'adaptiveConcurrency', 'retryBudget', 'poison', 'flood'])(
    '%s is an object or off',
    (guard) => {
      for (const [value, seen] of [
        ['on', "'on'"],
        [true, 'true'],
        [null, 'null'],
      ]) {
        expect(problemsOf({ [String(guard)]: value })).toEqual([
          `${guard}: expected an object or 'off', got ${seen}`,
        ])
      }
    },
  )

  test.each(['retry', 'deadLetter', 'concurrency'])(
    '%s is not a guard and cannot be switched off',
    (name) => {
      expect(problemsOf({ [name]: 'off' })).toHaveLength(1)
    },
  )

  test('all of them can be off together', () => {
    expect(resolvePolicy(GUARDS_OFF)).toEqual({
      ...resolvePolicy(),
      breaker: undefined,
      outage: undefined,
      adaptiveConcurrency: undefined,
      retryBudget: undefined,
      poison: undefined,
      flood: undefined,
    })
  })
})

describe('backoff', () => {
  test('exponential has a base, a factor, a cap and full jitter', () => {
    expect(backoffOf({ kind: 'exponential' })).toEqual({
      kind: 'exponential',
      baseMs: 1_000,
      factor: 2,
      capMs: 60_000,
      jitter: 'full',
    })
    expect(
      backoffOf({ kind: 'exponential', base: '2s', factor: 3, cap: '9s', jitter: 'none' }),
    ).toEqual({ kind: 'exponential', baseMs: 2_000, factor: 3, capMs: 9_000, jitter: 'none' })
  })

  test('is exponential by default', () => {
    expect(backoffOf({ base: '2s' })).toMatchObject({ kind: 'exponential', baseMs: 2_000 })
  })

  test('linear has a base, a step, a cap and full jitter', () => {
    expect(backoffOf({ kind: 'linear' })).toEqual({
      kind: 'linear',
      baseMs: 1_000,
      stepMs: 1_000,
      capMs: 60_000,
      jitter: 'full',
    })
    expect(
      backoffOf({ kind: 'linear', base: '2s', step: '3s', cap: '9s', jitter: 'equal' }),
    ).toEqual({ kind: 'linear', baseMs: 2_000, stepMs: 3_000, capMs: 9_000, jitter: 'equal' })
  })

  test('fixed has a delay and no jitter', () => {
    expect(backoffOf({ kind: 'fixed', delay: '5s' })).toEqual({
      kind: 'fixed',
      delayMs: 5_000,
      jitter: 'none',
    })
    expect(backoffOf({ kind: 'fixed', delay: '5s', jitter: 'full' })).toEqual({
      kind: 'fixed',
      delayMs: 5_000,
      jitter: 'full',
    })
  })

  test('fixed requires its delay', () => {
    expect(problemsOf({ retry: { backoff: { kind: 'fixed' } } })).toEqual([
      "retry.backoff.delay: expected a duration such as '5s', got nothing",
    ])
  })

  test('decorrelated has a base and a cap', () => {
    expect(backoffOf({ kind: 'decorrelated' })).toEqual({
      kind: 'decorrelated',
      baseMs: 1_000,
      capMs: 60_000,
    })
    expect(backoffOf({ kind: 'decorrelated', base: '2s', cap: '9s' })).toEqual({
      kind: 'decorrelated',
      baseMs: 2_000,
      capMs: 9_000,
    })
  })

  test('progressive has tiers by failure class and a list for the others', () => {
    const tiers = { transient: ['1s', '10s'], unknown: [500] }
    expect(backoffOf({ kind: 'progressive', tiers, otherwise: ['1m'] })).toEqual({
      kind: 'progressive',
      tiersMs: { transient: [1_000, 10_000], unknown: [500] },
      otherwiseMs: [60_000],
      jitter: 'full',
    })
    expect(backoffOf({ kind: 'progressive', otherwise: ['1m'], jitter: 'none' })).toEqual({
      kind: 'progressive',
      tiersMs: {},
      otherwiseMs: [60_000],
      jitter: 'none',
    })
  })

  test('progressive lists every class and every list it cannot read', () => {
    const backoff = {
      kind: 'progressive',
      tiers: { flaky: ['1s'], transient: ['1s', 'soon'], schema: [], business: '1s' },
    }
    expect(problemsOf({ retry: { backoff } })).toEqual([
      'retry.backoff.tiers.flaky: unknown failure class; known classes: transient, schema, business, integration, unknown',
      "retry.backoff.tiers.transient: expected a list of durations such as ['1s', '10s', '1m'], got an array",
      "retry.backoff.tiers.schema: expected a list of durations such as ['1s', '10s', '1m'], got an array",
      "retry.backoff.tiers.business: expected a list of durations such as ['1s', '10s', '1m'], got '1s'",
      "retry.backoff.otherwise: expected a list of durations such as ['1s', '10s', '1m'], got undefined",
    ])
  })

  test.each<[unknown, string]>([
    ['1s', "'1s'"],
    [['1s'], 'an array'],
    [5, '5'],
    [false, 'false'],
  ])('progressive needs an object of tiers and rejects %j', (tiers, seen) => {
    expect(
      problemsOf({ retry: { backoff: { kind: 'progressive', tiers, otherwise: ['1s'] } } }),
    ).toEqual([`retry.backoff.tiers: expected an object of lists, got ${seen}`])
  })

  test('progressive waits a year at most, in each entry of its lists', () => {
    const check = (transient: unknown, otherwise: unknown) =>
      problemsOf({ retry: { backoff: { kind: 'progressive', tiers: { transient }, otherwise } } })
    const list = "expected a list of durations such as ['1s', '10s', '1m'], got an array"
    expect(check(['366d', 0], ['0ms', '366d'])).toEqual([])
    expect(check(['1s', '367d'], [31_622_400_001])).toEqual([
      `retry.backoff.tiers.transient: ${list}`,
      `retry.backoff.otherwise: ${list}`,
    ])
  })

  test.each(['exponential', 'linear', 'decorrelated'])(
    '%s has a base and a cap from 1 ms to a year',
    (kind) => {
      const check = (base: unknown, cap: unknown) =>
        problemsOf({ retry: { backoff: { kind, base, cap } } })
      const range = duration('1ms', '366d')
      expect(check(1, 1)).toEqual([])
      expect(check('366d', '366d')).toEqual([])
      expect(check(0, 0)).toEqual([
        `retry.backoff.base: expected ${range}, got 0`,
        `retry.backoff.cap: expected ${range}, got 0`,
      ])
      expect(check(31_622_400_001, 31_622_400_001)).toEqual([
        `retry.backoff.base: expected ${range}, got 31622400001`,
        `retry.backoff.cap: expected ${range}, got 31622400001`,
      ])
    },
  )

  test('of a sink keeps its own base and cap for missing fields', () => {
    const check = (backoff: unknown) =>
      readPolicy({ retry: { backoff } }, { role: 'sink' }).retry.classes.unknown.backoff
    expect(check({ jitter: 'none' })).toEqual({
      kind: 'exponential',
      baseMs: 100,
      factor: 2,
      capMs: 5_000,
      jitter: 'none',
    })
    expect(check({ kind: 'linear' })).toEqual({
      kind: 'linear',
      baseMs: 100,
      stepMs: 100,
      capMs: 5_000,
      jitter: 'full',
    })
    expect(check({ kind: 'decorrelated', cap: '9s' })).toEqual({
      kind: 'decorrelated',
      baseMs: 100,
      capMs: 9_000,
    })
    const classes = { schema: { backoff: { factor: 3 } } }
    expect(
      readPolicy({ retry: { classes } }, { role: 'sink' }).retry.classes.schema.backoff,
    ).toEqual({ kind: 'exponential', baseMs: 100, factor: 3, capMs: 5_000, jitter: 'full' })
  })

  test('of an unknown kind is rejected with the known kinds', () => {
    expect(problemsOf({ retry: { backoff: { kind: 'fibonacci' } } })).toEqual([
      "retry.backoff.kind: expected 'exponential' or 'linear' or 'fixed' or 'decorrelated' or 'progressive', got 'fibonacci'",
    ])
  })

  test('must be an object', () => {
    expect(problemsOf({ retry: { backoff: null } })).toEqual([
      'retry.backoff: expected an object, got null',
    ])
  })

  test.each([
    ['exponential', 'base, cap, factor, jitter, kind'],
    ['linear', 'base, cap, jitter, kind, step'],
    ['decorrelated', 'base, cap, kind'],
  ])('%s has only its own options', (kind, known) => {
    expect(problemsOf({ retry: { backoff: { kind, delay: '5s' } } })).toEqual([
      `retry.backoff.delay: unknown option; known options: ${known}`,
    ])
  })

  test('fixed and progressive have only their own options', () => {
    expect(problemsOf({ retry: { backoff: { kind: 'fixed', delay: 1, base: 1 } } })).toEqual([
      'retry.backoff.base: unknown option; known options: delay, jitter, kind',
    ])
    const progressive = { kind: 'progressive', otherwise: ['1s'], base: 1 }
    expect(problemsOf({ retry: { backoff: progressive } })).toEqual([
      'retry.backoff.base: unknown option; known options: jitter, kind, otherwise, tiers',
    ])
  })

  test('has a factor from 1 to 100', () => {
    const check = (factor: number) =>
      problemsOf({ retry: { backoff: { kind: 'exponential', factor } } })
    expect(check(1)).toEqual([])
    expect(check(100)).toEqual([])
    expect(check(0.99)).toEqual([`retry.backoff.factor: expected ${number(1, 100)}, got 0.99`])
    expect(check(100.1)).toEqual([`retry.backoff.factor: expected ${number(1, 100)}, got 100.1`])
  })

  test.each(['exponential', 'linear', 'decorrelated'])(
    '%s has no base longer than its cap',
    (kind) => {
      const check = (base: string, cap: string) =>
        problemsOf({ retry: { backoff: { kind, base, cap } } })
      expect(check('10s', '10s')).toEqual([])
      expect(check('10s', '9s')).toEqual(['retry.backoff.base: 10s is longer than cap (9s)'])
    },
  )

  test('is checked against the default cap too', () => {
    expect(problemsOf({ retry: { backoff: { kind: 'linear', base: '2m' } } })).toEqual([
      'retry.backoff.base: 2m is longer than cap (1m)',
    ])
  })

  test.each<[unknown]>([
    ['full'],
    ['equal'],
    ['none'],
    [{ proportional: 0 }],
    [{ proportional: 1 }],
  ])('accepts the jitter %j', (jitter) => {
    expect(backoffOf({ kind: 'exponential', jitter })).toMatchObject({ jitter })
  })

  test.each<[unknown, string]>([
    ['half', "'half'"],
    [{ proportional: 1.01 }, 'an object'],
    [{ proportional: -0.01 }, 'an object'],
    [{ proportional: '0.2' }, 'an object'],
    [{}, 'an object'],
    [0.2, '0.2'],
    [null, 'null'],
  ])('rejects the jitter %j', (jitter, seen) => {
    expect(problemsOf({ retry: { backoff: { kind: 'fixed', delay: 1, jitter } } })).toEqual([
      `retry.backoff.jitter: expected 'full', 'equal', 'none' or { proportional: 0…1 }, got ${seen}`,
    ])
  })
})

describe('retry per failure class', () => {
  test('inherits attempts and backoff, and overrides them one by one', () => {
    const policy = resolvePolicy({
      retry: {
        attempts: 7,
        backoff: { kind: 'fixed', delay: '5s' },
        classes: {
          unknown: { attempts: 2 },
          integration: { action: 'retry', backoff: { kind: 'fixed', delay: '9s' } },
          transient: { action: 'deadLetter' },
        },
      },
    })
    const inherited = { kind: 'fixed', delayMs: 5_000, jitter: 'none' }
    expect(policy.retry.classes).toEqual({
      transient: { action: 'deadLetter', attempts: 7, backoff: inherited },
      schema: { action: 'deadLetter', attempts: 7, backoff: inherited },
      business: { action: 'deadLetter', attempts: 7, backoff: inherited },
      integration: {
        action: 'retry',
        attempts: 7,
        backoff: { kind: 'fixed', delayMs: 9_000, jitter: 'none' },
      },
      unknown: { action: 'retry', attempts: 2, backoff: inherited },
    })
  })

  test('reports its backoff with the whole path', () => {
    const classes = { schema: { backoff: { kind: 'fixed' } } }
    expect(problemsOf({ retry: { classes } })).toEqual([
      "retry.classes.schema.backoff.delay: expected a duration such as '5s', got nothing",
    ])
  })
})

describe('a typing mistake', () => {
  test.each<[where: string, known: string]>([
    [
      'nope',
      'adaptiveConcurrency, breaker, classify, concurrency, deadLetter, flood, grace, onBreakerOpen, order, outage, poison, retry, retryBudget, timeout',
    ],
    [
      'retry.nope',
      'attempts, backoff, classes, history, maxAge, maxInlineDelay, minDelay, unproven',
    ],
    ['retry.unproven.nope', 'maxAge, runs'],
    ['retry.classes.nope', 'business, integration, schema, transient, unknown'],
    ['retry.classes.schema.nope', 'action, attempts, backoff'],
    ['breaker.nope', 'maxOpen, minOpen, openShare, probes, successes, trip'],
    ['breaker.trip.nope', 'failures, kind'],
    ['outage.nope', 'failures, ratio, window'],
    ['adaptiveConcurrency.nope', 'decrease, min, start'],
    ['retryBudget.nope', 'burst, floorPerSecond, onExceeded, ratePerSecond, ratio, release'],
    ['retryBudget.release.nope', 'batch, interval'],
    ['poison.nope', 'classes, repeats, suspectDeliveries, trials, window'],
    ['flood.nope', 'burst, perMinute, signatures'],
    ['deadLetter.nope', 'drop, includeStack, keep, keepIf, retention'],
  ])('%s is rejected with the list of options that exist there', (where, known) => {
    expect(problemsOf(nested(where, 1))).toEqual([
      `${where}: unknown option; known options: ${known}`,
    ])
  })

  test('an option of the other kind of trip is one too', () => {
    expect(problemsOf({ breaker: { trip: { kind: 'ratio', failures: 5 } } })).toEqual([
      'breaker.trip.failures: unknown option; known options: kind, minimum, ratio, window',
    ])
  })
})

describe('rules', () => {
  test('are in force as they were given, in order', () => {
    const first = transient(RangeError)
    const second = { class: 'business', when: { code: 'EX_BUSY' } } as const
    const third = { class: 'schema', when: () => true } as const
    const { rules } = resolvePolicy({ classify: [first, second, third] })
    expect(rules).toEqual([first, second, third])
    expect(rules).toHaveLength(3)
  })

  test('must be a list', () => {
    expect(problemsOf({ classify: { class: 'transient' } })).toEqual([
      'classify: expected a list of rules, got an object',
    ])
  })

  test.each<[string, unknown, string]>([
    ['a text', 'transient', "'transient'"],
    ['null', null, 'null'],
    ['an unknown class', { class: 'flaky', when: {} }, 'an object'],
    ['no class', { when: {} }, 'an object'],
    ['a list', ['transient'], 'an array'],
  ])('are rejected with their index in the list: %s', (_, rule, seen) => {
    const good = { class: 'transient', when: { code: 'X' } }
    expect(problemsOf({ classify: [good, rule] })).toEqual([
      `classify[1]: expected a rule such as transient(RateLimited) or { class: 'transient', when: { code: 'EX_BUSY' } }, got ${seen}`,
    ])
  })
})

describe('the condition of a rule', () => {
  const check = (when: unknown) => problemsOf({ classify: [{ class: 'transient', when }] })
  const expectedMatch = 'when: expected an error class, a function or { code, status, type }, got'
  const expectedCode = 'when.code: expected text or a list of texts, got'
  const expectedStatus = 'when.status: expected a number or [from, to], got'
  const empty = '"when" is empty, so the rule would match nothing'

  test.each<[unknown]>([
    [{ code: 'X' }],
    [{ code: ['X', 'Y'] }],
    [{ status: 503 }],
    [{ status: [500, 599] }],
    [{ type: 'RateLimited' }],
    [{ code: 'X', status: 503, type: 'T' }],
    [{ code: undefined, status: 503 }],
    [RangeError],
    [() => true],
    [[RangeError, { code: 'X' }]],
  ])('may be %o', (when) => {
    expect(check(when)).toEqual([])
  })

  test.each<[unknown, string]>([
    [undefined, `${expectedMatch} undefined`],
    [null, `${expectedMatch} null`],
    ['EX_BUSY', `${expectedMatch} 'EX_BUSY'`],
    [503, `${expectedMatch} 503`],
    [[[]], `${expectedMatch} an array`],
    [[RangeError, 'X'], `${expectedMatch} 'X'`],
    [{ cod: 'X' }, 'when.cod: unknown field; known fields: code, status, type'],
    [{ code: 'X', message: 'm' }, 'when.message: unknown field; known fields: code, status, type'],
    [{ code: 503 }, `${expectedCode} 503; put quotes around numbers`],
    [{ code: ['X', 503] }, `${expectedCode} an array; put quotes around numbers`],
    [{ code: null }, `${expectedCode} null; put quotes around numbers`],
    [{ status: '503' }, `${expectedStatus} '503'`],
    [{ status: [503] }, `${expectedStatus} an array`],
    [{ status: [500, 503, 599] }, `${expectedStatus} an array`],
    [{ status: [500, '599'] }, `${expectedStatus} an array`],
    [{ status: { length: 2 } }, `${expectedStatus} an object`],
    [{ status: null }, `${expectedStatus} null`],
    [{ type: 5 }, 'when.type: expected text, got 5'],
    [{ type: ['T'] }, 'when.type: expected text, got an array'],
    [{}, empty],
    [{ code: undefined, status: undefined, type: undefined }, empty],
    [[], empty],
    [[{ code: 'X' }, {}], empty],
  ])('cannot be %o', (when, problem) => {
    expect(check(when)).toEqual([`classify[0]: ${problem}`])
  })

  test('is rejected with its index in the list, once for each rule', () => {
    const good = { class: 'transient', when: { code: 'X' } }
    const bad = { class: 'transient', when: [{ code: 1 }, { status: 'x' }] }
    expect(problemsOf({ classify: [bad, good, bad] })).toEqual([
      `classify[0]: ${expectedCode} 1; put quotes around numbers`,
      `classify[2]: ${expectedCode} 1; put quotes around numbers`,
    ])
  })
})

describe('the dead-letter filter', () => {
  test('accepts texts, patterns and functions', () => {
    const when = () => true
    const matcher = () => false
    const { filter } = resolvePolicy({
      deadLetter: { drop: ['a', /b/g, matcher], keep: ['c'], keepIf: when },
    }).deadLetter
    expect(filter.drop).toEqual(['a', /b/g, matcher])
    expect(filter.keep).toEqual(['c'])
    expect(filter.keepIf).toBe(when)
  })

  test.each(['drop', 'keep'])('rejects any other value in %s', (key) => {
    const problem = `deadLetter.${key}: expected a list of texts, patterns or functions, got`
    expect(problemsOf({ deadLetter: { [key]: 'a' } })).toEqual([`${problem} 'a'`])
    expect(problemsOf({ deadLetter: { [key]: ['a', 1] } })).toEqual([`${problem} an array`])
    expect(problemsOf({ deadLetter: { [key]: null } })).toEqual([`${problem} null`])
  })

  test('rejects a condition that is not a function', () => {
    expect(problemsOf({ deadLetter: { keepIf: 'always' } })).toEqual([
      "deadLetter.keepIf: expected a function, got 'always'",
    ])
  })

  test('is not changed by a list that grows later', () => {
    const never = ['a']
    const always = ['b']
    const { filter } = resolvePolicy({ deadLetter: { drop: never, keep: always } }).deadLetter
    never.push('c')
    always.push('d')
    expect(filter.drop).toEqual(['a'])
    expect(filter.keep).toEqual(['b'])
  })

  test('leaves a pattern usable', () => {
    const { drop } = resolvePolicy({ deadLetter: { drop: [/b/g] } }).deadLetter.filter
    expect('abc'.search(drop[0] as RegExp)).toBe(1)
    expect(Object.isFrozen(drop[0])).toBe(false)
  })
})

describe('poison classes', () => {
  test('are a list of failure classes, possibly empty', () => {
    const classes = (list: unknown) => readPolicy({ poison: { classes: list } }).poison?.classes
    expect(classes(['schema'])).toEqual(['schema'])
    expect(classes(['unknown', 'transient'])).toEqual(['transient', 'unknown'])
    expect(classes([])).toEqual([])
  })

  test.each<[unknown, string]>([
    [['flaky'], 'an array'],
    [['unknown', 'flaky'], 'an array'],
    ['unknown', "'unknown'"],
    [null, 'null'],
  ])('are rejected as %j', (classes, seen) => {
    expect(problemsOf({ poison: { classes } })).toEqual([
      `poison.classes: expected a list of transient, schema, business, integration, unknown, got ${seen}`,
    ])
  })
})

describe('relations between fields', () => {
  test('the shortest open time cannot be longer than the longest', () => {
    const check = (minOpen: string, maxOpen: string) =>
      problemsOf({ breaker: { minOpen, maxOpen } })
    expect(check('5s', '5s')).toEqual([])
    expect(check('5s', '4s')).toEqual(['breaker.minOpen: 5s is longer than breaker.maxOpen (4s)'])
  })

  test('the default of the other field counts, and it depends on the role', () => {
    const options = { breaker: { minOpen: '45s' } }
    expect(problemsOf(options)).toEqual([
      'breaker.minOpen: 45s is longer than breaker.maxOpen (30s)',
    ])
    expect(problemsOf(options, 'sink')).toEqual([])
  })

  test('the adaptive limit cannot start above the concurrency that bounds it', () => {
    const check = (min: number, concurrency: number) =>
      problemsOf({ concurrency, adaptiveConcurrency: { min, start: min } })
    expect(check(8, 8)).toEqual([])
    expect(check(8, 7)).toEqual(['adaptiveConcurrency.min: 8 is more than concurrency (7)'])
  })

  test('the adaptive limit moves below the concurrency', () => {
    expect(resolvePolicy({ concurrency: 7 }).adaptiveConcurrency?.max).toBe(7)
  })

  test('poison needs a history that is long enough to see it', () => {
    const check = (repeats: number, history: number) =>
      problemsOf({ poison: { repeats }, retry: { history } })
    expect(check(4, 4)).toEqual([])
    expect(check(4, 3)).toEqual([
      'poison.repeats: 4 is more than retry.history (3), so it is never reached; increase retry.history or decrease poison.repeats',
    ])
  })

  test('a guard that is off has none', () => {
    expect(
      problemsOf({
        poison: 'off',
        breaker: 'off',
        adaptiveConcurrency: 'off',
        retry: { history: 1 },
      }),
    ).toEqual([])
  })
})

describe('problems', () => {
  test('are all listed together, including relations', () => {
    const options = {
      timeout: 'soon',
      retry: { attempts: 0, classes: { transient: { attempts: 1.5 } } },
      breaker: { probes: 0, minOpen: '2m' },
      retryBudget: { release: { batch: 'all' } },
      tiemout: '5s',
    }
    expect(problemsOf(options)).toEqual([
      `timeout: expected ${duration('1ms', '12h')}, got 'soon'`,
      `retry.attempts: expected ${whole(1, 1_000)}, got 0`,
      `retry.classes.transient.attempts: expected ${whole(1, 1_000)}, got 1.5`,
      `breaker.probes: expected ${whole(1, 100)}, got 0`,
      `retryBudget.release.batch: expected ${whole(1, 100_000)}, got 'all'`,
      'breaker.minOpen: 2m is longer than breaker.maxOpen (30s)',
      'tiemout: unknown option; known options: adaptiveConcurrency, breaker, classify, concurrency, deadLetter, flood, grace, onBreakerOpen, order, outage, poison, retry, retryBudget, timeout',
    ])
  })

  test('are one error with a readable list', () => {
    const problems = [
      `concurrency: expected ${whole(1, 10_000)}, got 0`,
      `timeout: expected ${duration('1ms', '12h')}, got 0`,
    ]
    expect(() => resolvePolicy({ timeout: 0, concurrency: 0 })).toThrow(
      new RedriveError(
        'POLICY_INVALID',
        `The policy has 2 problems:\n- ${problems[0]}\n- ${problems[1]}`,
        { problems },
      ),
    )
  })

  test('are counted in the singular too', () => {
    expect(() => readPolicy({ concurrency: 0 })).toThrow(
      `The policy has 1 problem:\n- concurrency: expected ${whole(1, 10_000)}, got 0`,
    )
  })

  test('have the code POLICY_INVALID from code and from data', () => {
    const wrong = { concurrency: 0 }
    for (const resolve of [() => resolvePolicy(wrong), () => readPolicy(wrong)]) {
      let thrown: unknown
      try {
        resolve()
      } catch (error) {
        thrown = error
      }
      expect(isRedriveError(thrown, 'POLICY_INVALID')).toBe(true)
    }
  })

  test.each<[unknown, string]>([
    [null, 'null'],
    [[], 'an array'],
    ['policy', "'policy'"],
  ])('include an input of %j', (config, seen) => {
    expect(problemsOf(config)).toEqual([`options: expected an object, got ${seen}`])
  })
})

describe('the resolved policy', () => {
  test.each<[string, () => Policy]>([
    ['from code', () => resolvePolicy({ retry: { backoff: { kind: 'fixed', delay: 1 } } })],
    ['from data', () => readPolicy({ poison: { classes: ['unknown'] } })],
    ['with matchers', () => resolvePolicy({ deadLetter: { drop: ['a'], keep: ['b'] } })],
  ])('is frozen: %s', (_, resolve) => {
    expect(isDeeplyFrozen(resolve())).toBe(true)
  })

  test("keeps the user's values unchanged, and freezes its own lists of them", () => {
    const rule = { class: 'transient', when: { code: ['X'] } } as const
    const classify = [rule]
    const matcher = Object.assign(() => true, { calls: { count: 0 } })
    const when = Object.assign(() => true, { calls: { count: 0 } })
    const never = [matcher]
    const always = [/c/]
    const { rules, deadLetter } = resolvePolicy({
      classify,
      deadLetter: { drop: never, keep: always, keepIf: when },
    })
    for (const list of [rules, deadLetter.filter.drop, deadLetter.filter.keep]) {
      expect(Object.isFrozen(list)).toBe(true)
    }
    expect(rules[0]).toBe(rule)
    const matchers = [never, matcher, always, always[0], when]
    for (const users of [classify, rule, rule.when, rule.when.code, ...matchers]) {
      expect(Object.isFrozen(users)).toBe(false)
    }
    expect(Object.isFrozen(matcher.calls) || Object.isFrozen(when.calls)).toBe(false)
  })

  test('is not changed by a list of rules that grows later', () => {
    const classify = [transient(RangeError)]
    const { rules } = resolvePolicy({ classify })
    classify.push(transient(TypeError))
    expect(rules).toHaveLength(1)
  })

  test('accepts durations as texts and as milliseconds', () => {
    const options: PolicyOptions = {
      timeout: '1.5s',
      retry: { minDelay: 20, maxAge: '1h', maxInlineDelay: '250ms' },
      deadLetter: { retention: '7d' },
    }
    expect(resolvePolicy(options)).toMatchObject({
      timeoutMs: 1_500,
      retry: { minDelayMs: 20, maxAgeMs: 3_600_000, maxInlineDelayMs: 250 },
      deadLetter: { retentionMs: 604_800_000 },
    })
  })
})

describe('a policy from a file', () => {
  test('reads as the same policy from code', () => {
    const config: unknown = JSON.parse(`{
      "timeout": "10s",
      "order": "lane",
      "retry": {
        "attempts": 4,
        "backoff": { "kind": "progressive", "tiers": { "transient": ["1s", "1m"] }, "otherwise": ["5s"] }
      },
      "classify": [{ "class": "integration", "when": { "status": [400, 499] } }],
      "flood": "off"
    }`)
    expect(readPolicy(config)).toEqual(
      resolvePolicy({
        timeout: '10s',
        order: 'lane',
        retry: {
          attempts: 4,
          backoff: {
            kind: 'progressive',
            tiers: { transient: ['1s', '1m'] },
            otherwise: ['5s'],
          },
        },
        classify: [{ class: 'integration', when: { status: [400, 499] } }],
        flood: 'off',
      }),
    )
  })

  test('is filled from the environment, including numbers and words', () => {
    const config = {
      timeout: '${TIMEOUT:-10s}',
      concurrency: '${WORKERS}',
      retry: { attempts: '${ATTEMPTS:-4}', minDelay: '${FLOOR_MS}ms' },
      breaker: '${BREAKER:-off}',
    }
    const policy = readPolicy(config, {
      env: { WORKERS: '8', FLOOR_MS: '25', ATTEMPTS: undefined },
    })
    expect(policy.timeoutMs).toBe(10_000)
    expect(policy.concurrency).toBe(8)
    expect(policy.retry.classes.transient.attempts).toBe(4)
    expect(policy.retry.minDelayMs).toBe(25)
    expect(policy.breaker).toBeUndefined()
  })

  test('lists a missing variable once, before the other problems', () => {
    expect(problemsOf({ retry: { minDelay: '${FLOOR}' }, concurrency: 0 })).toEqual([
      'retry.minDelay: environment variable "FLOOR" is not set; set it or add a default (${FLOOR:-…})',
      `concurrency: expected ${whole(1, 10_000)}, got 0`,
    ])
    expect(problemsOf({ deadLetter: { drop: ['a', '${SKIPPED}'] } })[0]).toBe(
      'deadLetter.drop.1: environment variable "SKIPPED" is not set; set it or add a default (${SKIPPED:-…})',
    )
  })

  test('is filled with texts that mean true and false', () => {
    const config = { deadLetter: { includeStack: '${STACK:-false}' } }
    expect(readPolicy(config).deadLetter.includeStack).toBe(false)
    expect(readPolicy(config, { env: { STACK: 'true' } }).deadLetter.includeStack).toBe(true)
  })

  test('that contains itself is rejected without an endless loop', () => {
    const config: Record<string, unknown> = {}
    config['retry'] = config
    expect(problemsOf(config)[0]).toBe('retry.retry.retry…: nested deeper than 32 levels')
  })

  test('has no environment and the role of a consumer by default', () => {
    expect(readPolicy({ timeout: '${PATH:-1s}' }).timeoutMs).toBe(1_000)
    expect(readPolicy({}, { env: {} })).toEqual(resolvePolicy({}, 'consumer'))
  })

  test('returns checked options that equal the file', () => {
    const config = {
      timeout: '${TIMEOUT:-10s}',
      classify: [{ class: 'schema', when: { code: 'X' } }],
    }
    const options = readPolicyOptions(config, { env: { TIMEOUT: '9s' } })
    expect(options).toEqual({ ...config, timeout: '9s' })
    expect(resolvePolicy(options)).toEqual(readPolicy(config, { env: { TIMEOUT: '9s' } }))
    expect(readPolicyOptions({})).toEqual({})
    expect(() => readPolicyOptions({ timeout: '${TIMEOUT}' })).toThrow(
      'timeout: environment variable "TIMEOUT" is not set',
    )
  })

  test('returns options that are checked for their role', () => {
    const config = { breaker: { minOpen: '45s' } }
    expect(readPolicyOptions(config, { role: 'sink' })).toEqual(config)
    expect(() => readPolicyOptions(config)).toThrow(
      'breaker.minOpen: 45s is longer than breaker.maxOpen (30s)',
    )
  })

  test('from code is taken literally', () => {
    const never = ['${A:-b}']
    expect(resolvePolicy({ deadLetter: { drop: never } }).deadLetter.filter.drop).toEqual([
      '${A:-b}',
    ])
  })
})

describe('fillConfig', () => {
  test('fills settings outside the policy, and lists all missing variables', () => {
    const config = { url: '${URL:-amqp://localhost}', http: { port: '${PORT}' }, list: ['${A}'] }
    expect(fillConfig(config, { PORT: '80', A: 'a' })).toEqual({
      url: 'amqp://localhost',
      http: { port: 80 },
      list: ['a'],
    })
    expect(() => fillConfig(config, {})).toThrow(
      /^The configuration has 2 problems:\n- http\.port: .*"PORT".*\n- list\.0: .*"A"/,
    )
  })
})
