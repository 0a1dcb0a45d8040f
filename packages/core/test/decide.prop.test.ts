import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Random } from '../src/backoff.ts'
import { type BreakerState, CLOSED, ISOLATED } from '../src/breaker.ts'
import { type DecideInput, type DecideResult, decide, type Outcome } from '../src/decide.ts'
import type { Decision } from '../src/decision.ts'
import { FIRST_CYCLE, type FailureCycle } from '../src/delivery.ts'
import { FAILURE_CLASSES, type Failure, type FailureClass } from '../src/failure.ts'
import { type Guards, startGuards } from '../src/guards.ts'
import { NO_OUTAGE, type OutageHalf } from '../src/outage.ts'
import type { PolicyOptions } from '../src/policy/options.ts'
import { resolvePolicy } from '../src/policy/resolve.ts'
import { aDelivery, aFailure, deepFrozen, NOW } from './fixtures.ts'

const maybeOff = <T>(options: fc.Arbitrary<T>) => fc.oneof(fc.constant('off' as const), options)
const near = fc.integer({ min: NOW - 100_000, max: NOW + 100_000 })
const small = fc.nat({ max: 12 })
const messageId = fc.constantFrom('m1', 'm2', 'm3', 'm4', 'm5', 'm6')
const signature = fc.constantFrom('s1', 's2')
const failureClass = fc.constantFrom(...FAILURE_CLASSES)

const backoff: fc.Arbitrary<NonNullable<NonNullable<PolicyOptions['retry']>['backoff']>> =
  fc.constantFrom(
    { kind: 'exponential' } as const,
    { kind: 'linear', jitter: 'equal' } as const,
    { kind: 'fixed', delay: 0 } as const,
    { kind: 'fixed', delay: '5s', jitter: { proportional: 0.5 } } as const,
    { kind: 'decorrelated' } as const,
    { kind: 'progressive', tiers: { transient: ['1s', '2s'] }, otherwise: [0, '9s'] } as const,
  )

const options: fc.Arbitrary<PolicyOptions> = fc.record({
  order: fc.constantFrom('none', 'lane'),
  retry: fc.record({
    attempts: fc.integer({ min: 1, max: 6 }),
    backoff,
    minDelay: fc.integer({ min: 1, max: 100 }),
    unproven: maybeOff(fc.constantFrom({}, { runs: 3, maxAge: '1m' } as const)),
    maxAge: fc.constantFrom(0, '1m' as const, '14d' as const),
    history: fc.integer({ min: 3, max: 6 }),
    classes: fc.record({
      business: fc.record({ action: fc.constantFrom('retry', 'deadLetter') }),
      unknown: fc.record({ attempts: fc.integer({ min: 1, max: 6 }) }),
    }),
  }),
  breaker: maybeOff(
    fc.constantFrom({}, { probes: 3 }, { trip: { kind: 'ratio', minimum: 3 } } as const),
  ),
  onBreakerOpen: fc.constantFrom('pause', 'deadLetter'),
  outage: maybeOff(fc.constantFrom({}, { failures: 2, ratio: 0.01 })),
  adaptiveConcurrency: maybeOff(fc.constantFrom({}, { min: 2 })),
  retryBudget: maybeOff(fc.record({ onExceeded: fc.constantFrom('delay', 'deadLetter', 'drop') })),
  poison: maybeOff(fc.constant({})),
  flood: maybeOff(fc.constantFrom({}, { burst: 1 })),
  deadLetter: fc.constantFrom({}, { drop: ['order.created'] }, { keep: ['order.created'] }),
})

const breaker: fc.Arbitrary<BreakerState> = fc.oneof(
  fc.constant(CLOSED),
  fc.constant(ISOLATED),
  fc.record({
    phase: fc.constant('closed' as const),
    failures: small,
    suspects: fc.uniqueArray(messageId),
    windowFrom: near,
    handled: small,
  }),
  fc.record({
    phase: fc.constant('open' as const),
    since: near,
    until: near,
    successes: fc.nat({ max: 1 }),
    suspects: fc.uniqueArray(messageId),
    freshAt: near,
  }),
)

const outageHalf: fc.Arbitrary<OutageHalf> = fc.record({
  handled: small,
  failed: fc.uniqueArray(messageId),
  surplus: small,
})

const guards: fc.Arbitrary<Guards> = fc.record({
  breaker,
  outage: fc.oneof(
    fc.constant(NO_OUTAGE),
    fc.record({ from: near, now: outageHalf, before: outageHalf, handledAt: near }),
  ),
  adaptiveConcurrency: fc.record({
    limit: fc.integer({ min: 1, max: 50 }),
    credit: small,
    threshold: fc.integer({ min: 1, max: 50 }),
    shrunkAt: near,
  }),
  retryBudget: fc.record({
    tokens: fc.constantFrom(-5, 0, 0.9, 1, 100),
    rateTokens: fc.constantFrom(0, 1, 100),
    at: near,
    stageAt: near,
    staged: small,
  }),
  flood: fc.uniqueArray(
    fc.record({
      signature,
      tokens: fc.constantFrom(-2, 0, 0.5, 1, 3),
      at: near,
      isFlood: fc.boolean(),
    }),
    {
      selector: (bucket) => bucket.signature,
    },
  ),
})

const cycle: fc.Arbitrary<FailureCycle> = fc.record({
  number: fc.integer({ min: 1, max: 3 }),
  attempts: fc.nat({ max: 8 }),
  runs: fc.nat({ max: 30 }),
  unproven: fc.record({ runs: fc.nat({ max: 25 }), waitedMs: fc.nat({ max: 4_000_000 }) }),
  firstFailedAt: fc.option(near, { nil: undefined }),
  lastDelayMs: fc.nat({ max: 100_000 }),
  remainingMs: fc.nat({ max: 100_000 }),
  history: fc.array(
    fc.record({
      number: fc.integer({ min: 1, max: 8 }),
      at: near,
      waitedMs: fc.nat({ max: 100_000 }),
      class: failureClass,
      signature,
      code: fc.constantFrom('E1', undefined),
      type: fc.constantFrom('TypeError', undefined),
      message: fc.string(),
      counted: fc.boolean(),
    }),
    { maxLength: 6 },
  ),
})

const failure: fc.Arbitrary<Failure> = fc
  .record({
    class: failureClass,
    signature,
    retryAfterMs: fc.option(fc.oneof(fc.nat({ max: 150 }), fc.nat({ max: 100_000_000 })), {
      nil: undefined,
    }),
    timedOut: fc.boolean(),
  })
  .map(aFailure)

const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('success' as const),
      count: fc.integer({ min: 1, max: 5 }),
      at: near,
      saturated: fc.boolean(),
      late: fc.boolean(),
      startedAt: near,
      inFlight: fc.integer({ min: 1, max: 50 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('failure' as const),
      failure,
      startedAt: near,
      inFlight: fc.integer({ min: 1, max: 50 }),
    }),
  },
)

const chances = fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), {
  minLength: 1,
  maxLength: 4,
})

/** Returns the same draws each time it is created. */
function drawing(draws: readonly number[]): Random {
  let next = 0
  return () => draws[next++ % draws.length] ?? 0
}

type World = Omit<DecideInput, 'random'>

const world: fc.Arbitrary<World> = fc.record({
  policy: options.map((one) => resolvePolicy(one)),
  delivery: messageId.map((id) => aDelivery({ id })),
  outcome,
  cycle,
  guards,
  now: fc.constant(NOW),
})

function expectEach(check: (input: World, result: DecideResult) => void, numRuns = 300): void {
  fc.assert(
    fc.property(world, chances, (input, draws) => {
      check(input, decide({ ...input, random: drawing(draws) }))
    }),
    { numRuns },
  )
}

const REASONS: Readonly<Record<Decision['kind'], readonly string[]>> = {
  settle: ['handled'],
  retryAt: ['backoff', 'pushback', 'held_back'],
  pause: ['dependency_unhealthy'],
  quarantine: ['same_failure_repeated'],
  deadLetter: [
    'terminal',
    'attempts_exhausted',
    'unproven',
    'too_old',
    'over_budget',
    'breaker_open',
  ],
  drop: ['filtered', 'over_budget'],
}

function isCounted({ events }: DecideResult): boolean {
  return events.some((event) => event.type === 'attempt_failed' && event.counted)
}

describe('for any input', () => {
  test('decide returns the same result twice, and does not change its input', () => {
    fc.assert(
      fc.property(world, chances, (input, draws) => {
        const frozen = deepFrozen(input)
        const first = decide({ ...frozen, random: drawing(draws) })
        expect(decide({ ...frozen, random: drawing(draws) })).toEqual(first)
      }),
      { numRuns: 500 },
    )
  })

  test('the decision has a reason that belongs to it', () => {
    expectEach((_, { decision }) => expect(REASONS[decision.kind]).toContain(decision.reason))
  })

  test('a success is settled, and a failure never is', () => {
    expectEach(({ outcome: { kind } }, { decision }) => {
      expect(decision.kind === 'settle').toBe(kind === 'success')
    })
  })

  test('reports a failure first, exactly once', () => {
    expectEach((input, { events }) => {
      const isReport = events.map((event) => event.type === 'attempt_failed')
      const expected = input.outcome.kind === 'failure' ? [true] : []
      expect(isReport.filter(Boolean)).toEqual(expected)
      expect(isReport.slice(0, 1).every((first) => first === expected.length > 0)).toBe(true)
    })
  })

  test('events contain the time and the source', () => {
    expectEach((_, { events }) => {
      for (const event of events) expect(event).toMatchObject({ at: NOW, source: 'orders' })
    })
  })

  test('a retry is due after the minimum delay at the earliest, in whole milliseconds', () => {
    expectEach(({ policy }, { decision }) => {
      if (decision.kind !== 'retryAt') return
      expect(decision.dueAt).toBeGreaterThanOrEqual(NOW + policy.retry.minDelayMs)
      expect(decision.delayMs).toBe(decision.dueAt - NOW)
      expect(Number.isSafeInteger(decision.dueAt)).toBe(true)
      expect(decision.cycle.remainingMs).toBe(0)
    })
  })

  test('a counted retry leaves at least one attempt', () => {
    expectEach((input, result) => {
      if (input.outcome.kind !== 'failure' || result.decision.kind !== 'retryAt') return
      if (!isCounted(result)) return
      const { attempts } = input.policy.retry.classes[input.outcome.failure.class]
      expect(result.decision.cycle.attempts).toBeLessThan(attempts)
    })
  })

  test('a counted or final failure adds one attempt; any other changes neither count nor history', () => {
    expectEach((input, result) => {
      if (!('cycle' in result.decision)) return
      const { attempts, runs, history } = result.decision.cycle
      const before = input.cycle
      expect(attempts).toBe(before.attempts + (isCounted(result) ? 1 : 0))
      expect(runs).toBe(before.runs + 1)
      const [newest, ...older] = history.toReversed()
      expect(newest).toMatchObject({ at: NOW, counted: isCounted(result) })
      expect(newest?.number).toBeGreaterThan(
        Math.max(before.runs, before.attempts, before.history.at(-1)?.number ?? 0),
      )
      expect(history.length).toBe(Math.min(input.policy.retry.history, before.history.length + 1))
      // The newest are kept, and an uncounted one makes room before a counted one.
      const uncounted = before.history.filter((one) => !one.counted)
      const kept = new Set(older)
      const omitted = before.history.filter((one) => !kept.has(one))
      const fewer = Math.min(omitted.length, uncounted.length)
      expect(omitted.filter((one) => !one.counted)).toEqual(uncounted.slice(0, fewer))
      const counted = before.history.filter((one) => one.counted)
      expect(omitted.filter((one) => one.counted)).toEqual(counted.slice(0, omitted.length - fewer))
    })
  })

  test('a pause counts no attempt', () => {
    expectEach((_, result) => {
      expect(isCounted(result) && result.decision.kind === 'pause').toBe(false)
    })
  })

  test('keeps what the policy always keeps, unless the policy also drops it', () => {
    expectEach(({ policy }, { decision }) => {
      const isKept = policy.deadLetter.filter.keep.length > 0
      expect(isKept && decision.kind === 'drop').toBe(false)
    })
  })

  test('the cycle number stays, and the time of its first failure never changes', () => {
    expectEach((input, { decision }) => {
      if (!('cycle' in decision)) return
      expect(decision.cycle.number).toBe(input.cycle.number)
      expect(decision.cycle.firstFailedAt).toBe(input.cycle.firstFailedAt ?? NOW)
    })
  })

  test('the guards can be serialised and read again', () => {
    expectEach((_, result) => {
      expect(JSON.parse(JSON.stringify(result.guards))).toEqual(result.guards)
    })
  })

  test('guards that are off do not change', () => {
    expectEach((input, { guards: after }) => {
      const names = ['breaker', 'outage', 'adaptiveConcurrency', 'retryBudget', 'flood'] as const
      const off = names.filter((name) => input.policy[name] === undefined)
      expect(off.map((name) => after[name])).toEqual(off.map((name) => input.guards[name]))
    })
  })
})

describe('a message that fails every time', () => {
  /** Runs one message to its end. A pause or a wait only moves the clock. */
  function run(given: PolicyOptions, classOf: FailureClass, draws: readonly number[]) {
    const policy = resolvePolicy(given)
    const random = drawing(draws)
    let state = { guards: startGuards(policy, NOW), cycle: FIRST_CYCLE, now: NOW, counted: 0 }
    for (let steps = 0; steps < 2_000; steps++) {
      const result = decide({
        policy,
        delivery: aDelivery(),
        outcome: {
          kind: 'failure',
          failure: aFailure({ class: classOf }),
          startedAt: state.now,
          inFlight: 1,
        },
        ...state,
        random,
      })
      const { decision, guards: next } = result
      const tally = state.counted + (isCounted(result) ? 1 : 0)
      if (decision.kind === 'retryAt') {
        state = { guards: next, cycle: decision.cycle, now: decision.dueAt, counted: tally }
      } else if (decision.kind === 'pause') {
        state = { ...state, guards: next, now: Math.max(decision.until, state.now + 1) }
      } else {
        const limit = policy.retry.classes[classOf].attempts
        return { decision, counted: tally, limit, endedAt: state.now }
      }
    }
    return undefined
  }

  test('ends within the time and the runs of the policy when no other message comes', () => {
    const lonely = fc.constantFrom('transient', 'unknown')
    fc.assert(
      fc.property(lonely, chances, (classOf, draws) => {
        const end = run({}, classOf, draws)
        expect(end?.decision).toMatchObject({ kind: 'deadLetter', reason: 'unproven' })
        expect(end?.endedAt).toBeGreaterThanOrEqual(NOW + 3_600_000)
        expect(end?.endedAt).toBeLessThanOrEqual(NOW + 3_900_000)
        const runs = end?.decision.kind === 'deadLetter' ? end.decision.cycle.runs : 0
        expect(runs).toBeLessThanOrEqual(25)
      }),
    )
  })

  test('is never counted more often than its attempts, and its waiting ends', () => {
    const bounded = options.map((one) => ({
      ...one,
      // A message that waits for the dependency ends by age. The age is short, because each wait may be one millisecond.
      retry: { ...one.retry, maxAge: '1s' as const },
      onBreakerOpen: 'deadLetter' as const,
    }))
    fc.assert(
      fc.property(bounded, failureClass, chances, (given, classOf, draws) => {
        const end = run(given, classOf, draws)
        expect(end).toBeDefined()
        expect(end?.counted).toBeLessThanOrEqual(end?.limit ?? 0)
        expect(['deadLetter', 'quarantine', 'drop']).toContain(end?.decision.kind)
      }),
    )
  })
})
