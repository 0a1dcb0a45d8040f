import { describe, expect, test } from 'vitest'
import { exponential, type Random } from '../src/backoff.ts'
import { type BreakerState, CLOSED, ISOLATED } from '../src/breaker.ts'
import type { BudgetState } from '../src/budget.ts'
import {
  type DecideResult,
  decide,
  deadLetterWithoutAttempt,
  waitForEarlierRun,
} from '../src/decide.ts'
import { SETTLE } from '../src/decision.ts'
import type { Delivery, FailureCycle } from '../src/delivery.ts'
import type { CoreEvent } from '../src/events.ts'
import type { Failure } from '../src/failure.ts'
import { type Guards, startGuards } from '../src/guards.ts'
import { NO_OUTAGE, type OutageState } from '../src/outage.ts'
import type { PolicyOptions } from '../src/policy/options.ts'
import { resolvePolicy } from '../src/policy/resolve.ts'
import {
  aCycle,
  aDelivery,
  aFailure,
  anAttempt,
  breakerChanged,
  deepFrozen,
  half,
  NOW,
} from './fixtures.ts'

/** One failed attempt and its context. */
interface World {
  readonly options?: PolicyOptions
  readonly delivery?: Partial<Delivery>
  readonly failure?: Partial<Failure>
  readonly cycle?: Partial<FailureCycle>
  readonly guards?: Partial<Guards>
  readonly attempt?: {
    readonly startedAt?: number
    readonly inFlight?: number
    readonly isSkipped?: boolean
  }
  readonly random?: Random
}

/** Delays are exact and the limit does not change, unless the test is about them. */
const PLAIN: PolicyOptions = {
  adaptiveConcurrency: 'off',
  retry: { backoff: { kind: 'fixed', delay: '5s' } },
}

function afterFailure(world: World): DecideResult {
  const policy = resolvePolicy({ ...PLAIN, ...world.options })
  return decide({
    policy,
    delivery: deepFrozen(aDelivery(world.delivery)),
    outcome: deepFrozen({
      kind: 'failure',
      failure: aFailure(world.failure),
      startedAt: NOW - 10,
      inFlight: 10,
      ...world.attempt,
    }),
    cycle: deepFrozen(aCycle(world.cycle)),
    guards: deepFrozen({ ...startGuards(policy, NOW), ...world.guards }),
    now: NOW,
    random: world.random ?? half,
  })
}

function open(until: number, suspects: readonly string[] = []): BreakerState {
  return {
    phase: 'open',
    since: NOW - 10_000,
    until,
    successes: 0,
    suspects,
    freshAt: NOW - 10_000,
  }
}

const OPEN = { breaker: open(NOW + 4_000) }
const HALF_OPEN = { breaker: open(NOW) }

/** A window with 4 failures, so that one more makes it a quarter. */
function degraded(handled: number): OutageState {
  return { ...NO_OUTAGE, from: NOW, now: { handled, failed: ['a', 'b', 'c', 'd'], surplus: 0 } }
}

const SPENT: { retryBudget: BudgetState } = {
  retryBudget: { tokens: 0, rateTokens: 100, at: NOW, stageAt: NOW, staged: 0 },
}
const FLOODED = { flood: [{ signature: 's1', tokens: 0, at: NOW, isFlood: false }] }

const thrice = [anAttempt({ number: 1 }), anAttempt({ number: 2 })]
const DAYS_14 = 1_209_600_000
const LANE = { order: 'lane' } as const
const GIVE_UP_WHEN_OPEN = { onBreakerOpen: 'deadLetter' } as const
const NOT_KEPT = { deadLetter: { drop: ['order.created'] } }

function withAttempts(attempts: number): PolicyOptions {
  return { retry: { attempts, backoff: { kind: 'fixed', delay: '5s' } } }
}

describe('the order of the checks', () => {
  test.each<[rung: string, world: World, decision: string]>([
    // Terminal classes
    ['schema is not retried', { failure: { class: 'schema' } }, 'deadLetter terminal'],
    ['business is not retried', { failure: { class: 'business' } }, 'deadLetter terminal'],
    ['integration is not retried', { failure: { class: 'integration' } }, 'deadLetter terminal'],
    ['unknown is retried', { failure: { class: 'unknown' } }, 'retryAt backoff'],
    ['transient is retried', { failure: { class: 'transient' } }, 'retryAt backoff'],
    [
      'a class is terminal when the policy sets it',
      {
        failure: { class: 'unknown' },
        options: { retry: { classes: { unknown: { action: 'deadLetter' } } } },
      },
      'deadLetter terminal',
    ],
    [
      'terminal comes before age',
      { failure: { class: 'schema' }, cycle: { firstFailedAt: NOW - DAYS_14 - 1 } },
      'deadLetter terminal',
    ],
    [
      'terminal comes before an unhealthy dependency',
      { failure: { class: 'schema' }, guards: OPEN },
      'deadLetter terminal',
    ],
    // Age
    [
      'older than the maximum age',
      { cycle: { firstFailedAt: NOW - DAYS_14 - 1 } },
      'deadLetter too_old',
    ],
    ['exactly the maximum age', { cycle: { firstFailedAt: NOW - DAYS_14 } }, 'retryAt backoff'],
    [
      'failed in the future of another clock',
      { cycle: { firstFailedAt: NOW + 5 } },
      'retryAt backoff',
    ],
    [
      'age comes before an unhealthy dependency',
      { cycle: { firstFailedAt: NOW - DAYS_14 - 1 }, guards: OPEN },
      'deadLetter too_old',
    ],
    // Unhealthy dependency
    ['the breaker is open', { guards: OPEN }, 'pause dependency_unhealthy'],
    ['the breaker is isolated', { guards: { breaker: ISOLATED } }, 'pause dependency_unhealthy'],
    ['a probe failed', { guards: HALF_OPEN }, 'retryAt backoff'],
    ['a probe failed in lane order', { guards: HALF_OPEN, options: LANE }, 'retryAt held_back'],
    [
      'the breaker is open and the policy does not wait',
      { guards: OPEN, options: GIVE_UP_WHEN_OPEN },
      'deadLetter breaker_open',
    ],
    [
      'a probe failed and the policy does not wait',
      { guards: HALF_OPEN, options: GIVE_UP_WHEN_OPEN },
      'deadLetter breaker_open',
    ],
    [
      'a degraded dependency: the breaker is closed, so no dead letter',
      {
        failure: { class: 'transient' },
        guards: { outage: degraded(15) },
        options: GIVE_UP_WHEN_OPEN,
      },
      'retryAt backoff',
    ],
    [
      'an unhealthy dependency comes before poison',
      { cycle: { attempts: 2, history: thrice }, guards: OPEN },
      'pause dependency_unhealthy',
    ],
    [
      'an unhealthy dependency comes before attempts',
      { cycle: { attempts: 4 }, guards: OPEN },
      'pause dependency_unhealthy',
    ],
    // Poison
    [
      'the same failure for the third time',
      { cycle: { attempts: 2, history: thrice } },
      'quarantine same_failure_repeated',
    ],
    [
      'the same failure for the second time',
      { cycle: { attempts: 1, history: [anAttempt()] } },
      'retryAt backoff',
    ],
    [
      'another failure than before',
      { failure: { signature: 's2' }, cycle: { attempts: 2, history: thrice } },
      'retryAt backoff',
    ],
    [
      'the same failure, with poison off',
      { cycle: { attempts: 2, history: thrice }, options: { poison: 'off' } },
      'retryAt backoff',
    ],
    [
      'poison comes before attempts',
      { cycle: { attempts: 4, history: thrice } },
      'quarantine same_failure_repeated',
    ],
    // Attempts
    ['the fifth attempt', { cycle: { attempts: 4 } }, 'deadLetter attempts_exhausted'],
    ['the fourth attempt', { cycle: { attempts: 3 } }, 'retryAt backoff'],
    [
      'a sixth attempt, beyond the limit',
      { cycle: { attempts: 5 } },
      'deadLetter attempts_exhausted',
    ],
    ['the only attempt', { options: withAttempts(1) }, 'deadLetter attempts_exhausted'],
    [
      'the only attempt of its class',
      { options: { retry: { classes: { unknown: { attempts: 1 } } } } },
      'deadLetter attempts_exhausted',
    ],
    [
      'attempts come before the budget',
      { cycle: { attempts: 4 }, guards: SPENT },
      'deadLetter attempts_exhausted',
    ],
    // Budget
    [
      'over budget, released later than its backoff',
      { guards: SPENT, options: { retry: { backoff: { kind: 'fixed', delay: '1s' } } } },
      'retryAt held_back',
    ],
    ['over budget, released before its backoff', { guards: SPENT }, 'retryAt backoff'],
    [
      'over budget, dead-lettered',
      { guards: SPENT, options: { retryBudget: { onExceeded: 'deadLetter' } } },
      'deadLetter over_budget',
    ],
    [
      'over budget, dropped',
      { guards: SPENT, options: { retryBudget: { onExceeded: 'drop' } } },
      'drop over_budget',
    ],
    ['the budget is off', { guards: SPENT, options: { retryBudget: 'off' } }, 'retryAt backoff'],
    // Giving up
    ['given up, but filtered', { cycle: { attempts: 4 }, options: NOT_KEPT }, 'drop filtered'],
    [
      'given up, too many similar dead letters',
      { cycle: { attempts: 4 }, guards: FLOODED },
      'deadLetter attempts_exhausted',
    ],
    [
      'given up, too many similar dead letters, with the flood guard off',
      { cycle: { attempts: 4 }, guards: FLOODED, options: { flood: 'off' } },
      'deadLetter attempts_exhausted',
    ],
    [
      'given up, too many dead letters of another signature',
      { cycle: { attempts: 4 }, failure: { signature: 's2' }, guards: FLOODED },
      'deadLetter attempts_exhausted',
    ],
    [
      'a filtered message does not count as a flood',
      { cycle: { attempts: 4 }, guards: FLOODED, options: NOT_KEPT },
      'drop filtered',
    ],
    [
      'a quarantine is neither filtered nor counted as a flood',
      { cycle: { attempts: 2, history: thrice }, guards: FLOODED, options: NOT_KEPT },
      'quarantine same_failure_repeated',
    ],
    [
      'a terminal class is filtered too',
      { failure: { class: 'schema' }, options: NOT_KEPT },
      'drop filtered',
    ],
    ['a retry is never filtered', { options: NOT_KEPT }, 'retryAt backoff'],
    // Pushback
    ['the dependency requests a wait', { failure: { retryAfterMs: 20_000 } }, 'retryAt pushback'],
    [
      'the dependency requests an immediate retry',
      { failure: { retryAfterMs: 0 } },
      'retryAt backoff',
    ],
  ])('%s', (_, world, decision) => {
    const result = afterFailure(world).decision
    expect(`${result.kind} ${result.reason}`).toBe(decision)
  })
})

describe('a success', () => {
  const seen = {
    count: 1,
    at: NOW - 1,
    saturated: true,
    late: false,
    startedAt: NOW - 10,
    inFlight: 1,
  }

  function afterSuccess(guards: Partial<Guards>): DecideResult {
    const policy = resolvePolicy()
    return decide({
      policy,
      delivery: aDelivery(),
      outcome: { kind: 'success', ...seen },
      cycle: aCycle({ attempts: 3 }),
      guards: deepFrozen({ ...startGuards(policy, NOW), ...guards }),
      now: NOW,
      random: half,
    })
  }

  test('settles the delivery and updates the guards', () => {
    const { decision, guards, events } = afterSuccess({})
    expect(decision).toBe(SETTLE)
    expect(events).toEqual([])
    expect(guards.adaptiveConcurrency.limit).toBe(11)
    expect(guards.outage).toMatchObject({ from: NOW, now: { handled: 1 }, handledAt: NOW - 1 })
  })

  test('reports when it closes the breaker', () => {
    const breaker: BreakerState = {
      phase: 'open',
      since: NOW - 10_000,
      until: NOW,
      successes: 1,
      suspects: [],
      freshAt: NOW - 10_000,
    }
    const { guards, events } = afterSuccess({ breaker })
    expect(guards.breaker).toEqual(CLOSED)
    expect(events).toEqual([breakerChanged('halfOpen', 'closed', undefined)])
  })
})

describe('a counted failure', () => {
  const failure = aFailure({ class: 'unknown', signature: 's9', code: undefined, message: 'why' })
  const record = {
    number: 2,
    at: NOW,
    waitedMs: 7,
    class: 'unknown',
    signature: 's9',
    code: undefined,
    type: 'TypeError',
    message: 'why',
    counted: true,
  }
  const before = aCycle({
    number: 3,
    attempts: 1,
    firstFailedAt: NOW - 500,
    lastDelayMs: 7,
    history: [anAttempt()],
  })

  test('becomes a retry with one more attempt in its cycle', () => {
    const { decision } = afterFailure({ failure, cycle: { ...before, remainingMs: 1 } })
    expect(decision).toEqual({
      kind: 'retryAt',
      reason: 'backoff',
      dueAt: NOW + 5_000,
      delayMs: 5_000,
      cycle: {
        number: 3,
        attempts: 2,
        runs: 1,
        unproven: { runs: 0, waitedMs: 0 },
        firstFailedAt: NOW - 500,
        lastDelayMs: 5_000,
        remainingMs: 0,
        history: [anAttempt(), record],
      },
      failure,
    })
  })

  const counted = { ...before, attempts: 2, runs: 1, history: [anAttempt(), record] }

  test('becomes a dead letter with its whole history', () => {
    const { decision } = afterFailure({ failure, cycle: before, options: withAttempts(2) })
    const reason = 'attempts_exhausted'
    expect(decision).toEqual({ kind: 'deadLetter', reason, failure, cycle: counted })
  })

  test('of a terminal class is counted and kept in the history too', () => {
    const schema = { ...failure, class: 'schema' } as const
    const { decision } = afterFailure({ failure: schema, cycle: before, guards: OPEN })
    expect(decision).toEqual({
      kind: 'deadLetter',
      reason: 'terminal',
      failure: schema,
      cycle: { ...counted, history: [anAttempt(), { ...record, class: 'schema' }] },
    })
  })

  test('of a class that is given up immediately counts in every state of the dependency', () => {
    const { decision, events } = afterFailure({
      failure: { class: 'transient' },
      guards: OPEN,
      options: { retry: { classes: { transient: { action: 'deadLetter' } } } },
    })
    expect(decision).toMatchObject({ reason: 'terminal', cycle: { attempts: 1 } })
    expect(events[0]).toMatchObject({ type: 'attempt_failed', counted: true })
  })

  test('becomes a quarantine with its whole history', () => {
    const { decision } = afterFailure({
      cycle: { number: 4, attempts: 2, firstFailedAt: NOW - 9, history: thrice },
    })
    expect(decision).toEqual({
      kind: 'quarantine',
      reason: 'same_failure_repeated',
      failure: aFailure(),
      cycle: aCycle({
        number: 4,
        attempts: 3,
        runs: 1,
        firstFailedAt: NOW - 9,
        history: [...thrice, anAttempt({ number: 3, at: NOW })],
      }),
    })
  })

  test('becomes a drop with its history', () => {
    const { decision } = afterFailure({
      failure,
      cycle: before,
      options: { ...withAttempts(2), ...NOT_KEPT },
    })
    expect(decision).toEqual({ kind: 'drop', reason: 'filtered', failure, cycle: counted })
  })

  test('that is the first one starts the age of the cycle', () => {
    expect(afterFailure({}).decision).toMatchObject({
      cycle: { number: 1, attempts: 1, firstFailedAt: NOW },
    })
  })

  test('keeps the newest attempts, as many as the policy sets', () => {
    const { decision } = afterFailure({
      cycle: { attempts: 2, history: [anAttempt({ number: 1 }), anAttempt({ number: 2 })] },
      options: { poison: 'off', retry: { history: 2 } },
    })
    expect(decision).toMatchObject({ cycle: { history: [{ number: 2 }, { number: 3 }] } })
    expect(decision).toHaveProperty('cycle.history.length', 2)
  })

  test('makes room for itself: the oldest uncounted failure goes first, then the oldest one', () => {
    const uncounted = { counted: false }
    const history = [
      anAttempt({ number: 1 }),
      anAttempt({ number: 2, ...uncounted }),
      anAttempt({ number: 3, ...uncounted }),
    ]
    const numbersWith = (limit: number) => {
      const { decision } = afterFailure({
        cycle: { attempts: 1, runs: 3, history },
        options: { poison: 'off', retry: { history: limit } },
      })
      return 'cycle' in decision ? decision.cycle.history.map(({ number }) => number) : []
    }
    expect(numbersWith(4)).toEqual([1, 2, 3, 4])
    expect(numbersWith(3)).toEqual([1, 3, 4])
    expect(numbersWith(2)).toEqual([1, 4])
    expect(numbersWith(1)).toEqual([4])
  })

  test('is reported with its number, and as counted', () => {
    expect(afterFailure({ failure, cycle: before }).events).toEqual([
      {
        type: 'attempt_failed',
        at: NOW,
        source: 'orders',
        deliveryId: 'm1',
        attemptNumber: 2,
        class: 'unknown',
        signature: 's9',
        code: undefined,
        counted: true,
        eventType: 'order.created',
        errorType: 'TypeError',
        message: 'why',
        runs: 1,
        firstFailedAt: NOW - 500,
        retryAt: NOW + 5_000,
      },
    ])
  })

  test('is reported without a next run when there is none', () => {
    const { events } = afterFailure({ failure: { class: 'schema' }, cycle: aCycle({ runs: 4 }) })
    expect(events[0]).toMatchObject({ runs: 5, firstFailedAt: NOW, retryAt: undefined })
  })

  test('updates the guards about this message', () => {
    const { guards } = afterFailure({ delivery: { id: 'm7' } })
    expect(guards.breaker).toMatchObject({ failures: 1, suspects: ['m7'] })
    expect(guards.outage.now.failed).toEqual(['m7'])
  })
})

describe('a failure while the breaker is open', () => {
  const before = aCycle({ number: 3, attempts: 4, firstFailedAt: NOW - 500, history: thrice })

  test('pauses until the next probe, and returns the message unchanged', () => {
    const { decision, events } = afterFailure({ cycle: before, guards: OPEN })
    expect(decision).toEqual({
      kind: 'pause',
      reason: 'dependency_unhealthy',
      until: NOW + 4_000,
      failure: aFailure(),
    })
    expect(events).toEqual([
      expect.objectContaining({ type: 'attempt_failed', attemptNumber: 5, counted: false }),
    ])
  })

  test('stays here in lane order, with its failures and longer than the breaker', () => {
    const { decision } = afterFailure({ cycle: before, guards: OPEN, options: LANE })
    expect(decision).toMatchObject({
      kind: 'retryAt',
      reason: 'held_back',
      cycle: { number: 3, attempts: 4, firstFailedAt: NOW - 500, runs: before.runs + 1 },
    })
    expect('dueAt' in decision && decision.dueAt).toBeGreaterThan(NOW + 4_000)
  })

  test('pauses without an end time while isolated', () => {
    const { decision } = afterFailure({ guards: { breaker: ISOLATED } })
    expect(decision).toMatchObject({ kind: 'pause', until: NOW })
  })

  test('becomes a dead letter when the policy does not wait, with this failure in its history', () => {
    const { decision, events } = afterFailure({
      cycle: before,
      guards: OPEN,
      options: GIVE_UP_WHEN_OPEN,
    })
    expect(decision).toEqual({
      kind: 'deadLetter',
      reason: 'breaker_open',
      failure: aFailure(),
      cycle: {
        ...before,
        runs: 1,
        history: [...thrice, anAttempt({ number: 5, at: NOW, counted: false })],
      },
    })
    expect(events).toEqual([expect.objectContaining({ type: 'attempt_failed', counted: false })])
  })

  test('is too old with this failure in its history, which does not count', () => {
    const { decision } = afterFailure({
      cycle: { ...before, firstFailedAt: NOW - DAYS_14 - 1 },
      guards: OPEN,
    })
    expect(decision).toMatchObject({ reason: 'too_old', cycle: { attempts: 4, runs: 1 } })
    expect(decision).toHaveProperty('cycle.history.length', 3)
  })

  test('that is dropped keeps this failure in its history too', () => {
    const { decision } = afterFailure({
      cycle: before,
      guards: OPEN,
      options: { ...GIVE_UP_WHEN_OPEN, ...NOT_KEPT },
    })
    expect(decision).toMatchObject({ kind: 'drop', reason: 'filtered', cycle: { attempts: 4 } })
    expect(decision).toHaveProperty('cycle.history.length', 3)
  })

  test('of a probe makes room for another message until the next probe', () => {
    const { decision, guards, events } = afterFailure({ cycle: before, guards: HALF_OPEN })
    expect(guards.breaker).toMatchObject({ phase: 'open', until: NOW + 1_000, suspects: ['m1'] })
    expect(decision).toMatchObject({ kind: 'retryAt', dueAt: NOW + 5_000, reason: 'backoff' })
    expect(events.map((event) => event.type)).toEqual(['attempt_failed', 'breaker_changed'])
  })

  test('of a probe is held back until the breaker allows another one', () => {
    const { decision } = afterFailure({
      cycle: before,
      guards: HALF_OPEN,
      options: { retry: { backoff: { kind: 'fixed', delay: '200ms' } } },
    })
    expect(decision).toEqual({
      kind: 'retryAt',
      reason: 'held_back',
      dueAt: NOW + 1_000,
      delayMs: 1_000,
      cycle: {
        ...before,
        runs: 1,
        lastDelayMs: 200,
        history: [...thrice, anAttempt({ number: 5, at: NOW, counted: false })],
      },
      failure: aFailure(),
    })
  })

  test('of a probe waits longer than the breaker in lane order, so that another lane is next', () => {
    const { decision, guards } = afterFailure({ guards: HALF_OPEN, options: LANE })
    const until = guards.breaker.phase === 'open' ? guards.breaker.until : 0
    expect(until).toBe(NOW + 1_000)
    expect(decision).toMatchObject({ kind: 'retryAt', reason: 'held_back', cycle: { attempts: 0 } })
    expect(decision).toMatchObject({ dueAt: until + 5_000, delayMs: 6_000 })
  })

  describe('of a probe whose failure is already known for this message', () => {
    const guards = { breaker: { ...open(NOW), suspects: ['m1'] } as BreakerState }
    const cycle = { attempts: 1, runs: 1 }

    test('proves nothing', () => {
      const { decision, events } = afterFailure({ guards, cycle })
      expect(decision).toMatchObject({
        kind: 'retryAt',
        cycle: { attempts: 1, runs: 2, unproven: { runs: 1 } },
      })
      expect(events).toEqual([expect.objectContaining({ type: 'attempt_failed', counted: false })])
    })

    test('counts without limits for unproven runs', () => {
      const options: PolicyOptions = { retry: { unproven: 'off' } }
      const { decision, events } = afterFailure({ guards, cycle, options })
      expect(decision).toMatchObject({ kind: 'retryAt', cycle: { attempts: 2 } })
      expect(events).toEqual([expect.objectContaining({ type: 'attempt_failed', counted: true })])
    })
  })

  test('that opens the breaker pauses immediately', () => {
    const breaker = { ...CLOSED, failures: 4 } as BreakerState
    const { decision, events } = afterFailure({ guards: { breaker } })
    expect(decision).toMatchObject({ kind: 'pause', until: NOW + 1_000 })
    expect(events).toEqual([
      expect.objectContaining({ type: 'attempt_failed', counted: false }),
      breakerChanged('closed', 'open', NOW + 1_000),
    ])
  })
})

describe('a failure while the dependency is degraded', () => {
  const transient = { class: 'transient' } as const
  const doubling: PolicyOptions = {
    retry: { backoff: { kind: 'exponential', jitter: 'none' } },
  }

  test('is retried and does not count', () => {
    const before = aCycle({ attempts: 3, firstFailedAt: NOW - 500, history: thrice })
    const { decision, events } = afterFailure({
      failure: transient,
      cycle: before,
      guards: { outage: degraded(15) },
    })
    expect(decision).toEqual({
      kind: 'retryAt',
      reason: 'backoff',
      dueAt: NOW + 5_000,
      delayMs: 5_000,
      cycle: {
        ...before,
        runs: 1,
        lastDelayMs: 5_000,
        history: [...thrice, anAttempt({ number: 4, at: NOW, class: 'transient', counted: false })],
      },
      failure: aFailure(transient),
    })
    expect(events).toEqual([
      {
        type: 'attempt_failed',
        at: NOW,
        source: 'orders',
        deliveryId: 'm1',
        attemptNumber: 4,
        class: 'transient',
        signature: 's1',
        code: 'E1',
        counted: false,
        eventType: 'order.created',
        errorType: 'TypeError',
        message: aFailure().message,
        runs: 1,
        firstFailedAt: before.firstFailedAt,
        retryAt: NOW + 5_000,
      },
    ])
  })

  test('counts again as soon as less than the share fails', () => {
    const world = { failure: transient, guards: { outage: degraded(16) } }
    expect(afterFailure(world).decision).toMatchObject({ cycle: { attempts: 1 } })
  })

  test('starts the age of the cycle although it does not count', () => {
    const world = { failure: transient, guards: { outage: degraded(15) } }
    expect(afterFailure(world).decision).toMatchObject({
      cycle: { attempts: 0, firstFailedAt: NOW, history: [{ number: 1, counted: false }] },
    })
  })

  test.each([
    [0, 1_000],
    [1, 1_000],
    [3, 4_000],
  ])('after %s counted attempts waits %s ms, as if this was the last of them', (attempts, ms) => {
    const { decision } = afterFailure({
      failure: transient,
      cycle: { attempts },
      guards: { outage: degraded(15) },
      options: doubling,
    })
    expect(decision).toMatchObject({ delayMs: ms })
  })

  test.each<[lastDelayMs: number, chance: number, ms: number]>([
    [0, 0.5, 1_000],
    [999, 0, 1_000],
    [1_001, 0, 1_001],
    [1_001, 0.5, 2_002],
    [1_001, 0.999_999, 3_003],
    [40_000, 0.5, 60_000],
    [90_000, 0.5, 60_000],
  ])(
    'grows from the last delay of %s ms, with random number %s, to %s ms, because the count does not change',
    (lastDelayMs, chance, ms) => {
      const { decision } = afterFailure({
        failure: transient,
        cycle: { lastDelayMs },
        guards: { outage: degraded(15) },
        options: doubling,
        random: () => chance,
      })
      expect(decision).toMatchObject({ delayMs: ms, cycle: { attempts: 0, lastDelayMs: ms } })
    },
  )

  test('grows no longer than proportional jitter may stretch its longest delay', () => {
    const { decision } = afterFailure({
      failure: transient,
      cycle: { lastDelayMs: 90_000 },
      guards: { outage: degraded(15) },
      options: { retry: { backoff: { kind: 'exponential', jitter: { proportional: 0.5 } } } },
    })
    expect(decision).toMatchObject({ delayMs: 90_000 })
  })

  test('does not grow from the last delay once it counts', () => {
    const { decision } = afterFailure({
      failure: transient,
      cycle: { lastDelayMs: 40_000 },
      options: doubling,
    })
    expect(decision).toMatchObject({ delayMs: 1_000, cycle: { attempts: 1 } })
  })

  test('of a class that is retried but unrelated to the dependency counts', () => {
    const { decision } = afterFailure({
      failure: { class: 'business' },
      guards: OPEN,
      options: {
        retry: {
          backoff: { kind: 'fixed', delay: '5s' },
          classes: { business: { action: 'retry' } },
        },
      },
    })
    expect(decision).toMatchObject({ kind: 'retryAt', reason: 'backoff', cycle: { attempts: 1 } })
  })

  test('takes a token from the budget like any retry', () => {
    const { decision, events } = afterFailure({
      failure: transient,
      guards: { outage: degraded(15), ...SPENT },
      options: { retry: { backoff: { kind: 'fixed', delay: '1s' } } },
    })
    expect(decision).toMatchObject({ reason: 'held_back', cycle: { attempts: 0 } })
    expect(events.map((event) => event.type)).toEqual(['attempt_failed', 'budget_exhausted'])
  })
})

describe('a retry that fails while no other message passed or failed', () => {
  const last = {
    attempts: 4,
    runs: 4,
    firstFailedAt: NOW - 9_000,
    lastDelayMs: 3_000,
    history: [anAttempt({ signature: 's2' })],
  }
  const served = (at: number) => ({ outage: { ...NO_OUTAGE, from: NOW, handledAt: at } })
  const world = {
    failure: { class: 'transient' },
    cycle: last,
    guards: served(NOW - 3_000),
  } as const
  const unproven = (runs: number, waitedMs: number) => ({ ...last, unproven: { runs, waitedMs } })
  const EXACT: PolicyOptions = { retry: { backoff: { kind: 'exponential', jitter: 'none' } } }

  test.each(['transient', 'unknown'] as const)('does not count as an attempt: %s', (name) => {
    const failure = { class: name }
    const { decision, events } = afterFailure({ ...world, failure })
    expect(decision).toEqual({
      kind: 'retryAt',
      reason: 'backoff',
      dueAt: NOW + 5_000,
      delayMs: 5_000,
      cycle: aCycle({
        ...last,
        runs: 5,
        unproven: { runs: 1, waitedMs: 3_000 },
        lastDelayMs: 5_000,
        history: [
          ...last.history,
          anAttempt({ number: 5, at: NOW, waitedMs: 3_000, class: name, counted: false }),
        ],
      }),
      failure: aFailure(failure),
    })
    expect(events).toEqual([expect.objectContaining({ type: 'attempt_failed', counted: false })])
  })

  test('is never poison', () => {
    const cycle = { ...last, attempts: 2, history: thrice }
    const { decision } = afterFailure({ guards: served(0), cycle })
    expect(decision).toMatchObject({ kind: 'retryAt', cycle: { attempts: 2 } })
  })

  test('does not count when the success lies in the future', () => {
    const { decision } = afterFailure({ ...world, guards: served(NOW + 1) })
    expect(decision).toMatchObject({ kind: 'retryAt', cycle: { attempts: 4 } })
  })

  test('counts when another message was served', () => {
    const { decision } = afterFailure({ ...world, guards: served(NOW - 2_999) })
    expect(decision).toMatchObject({ kind: 'deadLetter', reason: 'attempts_exhausted' })
  })

  test.each<PolicyOptions>([{ outage: 'off' }, { retry: { unproven: 'off' } }])(
    'counts without the guards that need proof: %o',
    (options) => {
      const { decision } = afterFailure({ ...world, options })
      expect(decision).toMatchObject({ kind: 'deadLetter', reason: 'attempts_exhausted' })
    },
  )

  test.each([1, 2, 3, 4, 7])('is not counted at any number: after %s attempts', (attempts) => {
    const cycle = { ...last, attempts }
    expect(afterFailure({ ...world, cycle }).decision).toMatchObject({
      kind: 'retryAt',
      cycle: { attempts },
    })
    const proven = { ...world, guards: served(NOW), cycle }
    expect(afterFailure(proven).decision).toMatchObject({ cycle: { attempts: attempts + 1 } })
  })

  test('is the second run at the earliest: the first had no wait', () => {
    const first = { failure: world.failure, guards: served(0) }
    expect(afterFailure(first).decision).toMatchObject({
      kind: 'retryAt',
      cycle: { attempts: 1, runs: 1, unproven: { runs: 0, waitedMs: 0 } },
    })
    expect(afterFailure({ ...first, options: withAttempts(1) }).decision).toMatchObject({
      kind: 'deadLetter',
      reason: 'attempts_exhausted',
      cycle: { attempts: 1 },
    })
  })

  test('is given up after as many runs as the policy allows, with this failure in its history', () => {
    expect(afterFailure({ ...world, cycle: unproven(18, 9_000) }).decision.kind).toBe('retryAt')
    expect(afterFailure({ ...world, cycle: unproven(19, 9_000) }).decision).toMatchObject({
      kind: 'deadLetter',
      reason: 'unproven',
      cycle: { attempts: 4, runs: 5, history: [{ signature: 's2' }, { number: 5, at: NOW }] },
    })
  })

  test('is given up after as much waiting as the policy allows', () => {
    const hour = 3_600_000
    const almost = { ...world, cycle: unproven(3, hour - 3_001) }
    expect(afterFailure(almost).decision.kind).toBe('retryAt')
    const over = { ...world, cycle: unproven(3, hour - 3_000) }
    expect(afterFailure(over).decision).toMatchObject({ kind: 'deadLetter', reason: 'unproven' })
  })

  test('is not given up before it ran as often as it may count: its backoff may be long', () => {
    const cycle = { ...unproven(2, 7_200_000), attempts: 1 }
    expect(afterFailure({ ...world, cycle }).decision.kind).toBe('retryAt')
    const next = { ...cycle, attempts: 2 }
    expect(afterFailure({ ...world, cycle: next }).decision).toMatchObject({ reason: 'unproven' })
  })

  test('is still given up when it is too old', () => {
    const cycle = { ...last, firstFailedAt: NOW - DAYS_14 - 1 }
    expect(afterFailure({ ...world, cycle }).decision).toMatchObject({ reason: 'too_old' })
  })

  test('adds the wait of counted runs to that of unproven ones, when it has any', () => {
    const proven = (cycle: Partial<FailureCycle>) =>
      afterFailure({ ...world, guards: served(NOW), cycle: { ...cycle, attempts: 1 } }).decision
    expect(proven(last)).toMatchObject({ cycle: { unproven: { runs: 0, waitedMs: 0 } } })
    expect(proven(unproven(2, 7_000))).toMatchObject({
      cycle: { unproven: { runs: 2, waitedMs: 10_000 } },
    })
  })

  describe('that waited as long as the dependency requested', () => {
    const unprovenAfter = (world: World) => {
      const { decision } = afterFailure({ failure: { class: 'transient' }, ...world })
      return decision.kind === 'retryAt' ? decision.cycle.unproven : undefined
    }
    const waited = { ...last, attempts: 1, lastDelayMs: 7_200_000 }

    test('adds the growing delay that the request replaced', () => {
      expect(unprovenAfter({ cycle: waited })).toEqual({ runs: 1, waitedMs: 422 })
      const cycle = { ...waited, unproven: { runs: 1, waitedMs: 7 } }
      expect(unprovenAfter({ cycle })).toEqual({ runs: 2, waitedMs: 851 })
      const attempt = { startedAt: NOW - 31_000 }
      expect(unprovenAfter({ cycle, attempt })).toEqual({ runs: 2, waitedMs: 30_851 })
      const later = { ...waited, unproven: { runs: 11, waitedMs: 7 } }
      expect(unprovenAfter({ cycle: later })).toEqual({ runs: 12, waitedMs: 432_007 })
    })

    test('adds all of a wait that the policy could have chosen', () => {
      const addedBy = (lastDelayMs: number, runs: number, minDelay: '10ms' | '8s' = '10ms') =>
        unprovenAfter({
          cycle: { ...waited, lastDelayMs, unproven: { runs, waitedMs: 0 } },
          options: { retry: { ...PLAIN.retry, minDelay } },
        })?.waitedMs
      expect(addedBy(5_000, 1)).toBe(5_000)
      expect(addedBy(5_001, 1)).toBe(844)
      expect(addedBy(8_000, 1, '8s')).toBe(8_000)
      expect(addedBy(8_001, 1, '8s')).toBe(844)
      expect(addedBy(431_999, 11)).toBe(431_999)
    })
  })

  test('forgets the unproven runs when the dependency is at fault', () => {
    const outage = degraded(0)
    const { decision } = afterFailure({ ...world, cycle: unproven(7, 9_000), guards: { outage } })
    expect(decision).toMatchObject({ cycle: { unproven: { runs: 0, waitedMs: 0 } } })
  })

  test.each<[runs: number, waitedMs: number, chance: number, delayMs: number]>([
    // The backoff of the fourth attempt is longer.
    [0, 0, 0, 8_000],
    // From here the delay doubles: 6 min / 2^n before the tenth run.
    [5, 10_000, 0, 22_500],
    [6, 30_000, 0, 45_000],
    [9, 360_000, 0, 360_000],
    // Then it stays, spread by a fifth.
    [12, 700_000, 0, 360_000],
    [12, 700_000, 0.5, 396_000],
    // The last delay ends 1 % after the limit.
    [17, 3_399_000, 0.5, 234_000],
  ])(
    'waits, after %s such runs and %s ms, with random number %s, for %s ms',
    (runs, waitedMs, chance, delayMs) => {
      const { decision } = afterFailure({
        ...world,
        cycle: unproven(runs, waitedMs),
        options: EXACT,
        random: () => chance,
      })
      expect(decision).toMatchObject({ kind: 'retryAt', delayMs })
    },
  )

  test('waits at least as long as before, up to the longest backoff, when it counts after unproven runs', () => {
    const waits = (lastDelayMs: number, runs: number) =>
      afterFailure({
        ...world,
        guards: served(NOW),
        cycle: { ...unproven(runs, 9_000), attempts: 1, lastDelayMs },
        options: EXACT,
      }).decision
    expect(waits(7_000, 0)).toMatchObject({ delayMs: 2_000 })
    expect(waits(7_000, 1)).toMatchObject({ delayMs: 7_000 })
    expect(waits(1_000, 1)).toMatchObject({ delayMs: 2_000 })
    expect(waits(360_000, 1)).toMatchObject({ delayMs: 60_000 })
  })

  test('does not open the breaker again when others passed, and waits as usual', () => {
    const breaker = open(NOW)
    const guards = { ...served(NOW - 1), breaker }
    const failure = { class: 'transient' } as const
    const probe = afterFailure({ ...world, failure, guards })
    expect(probe.guards).toMatchObject({ breaker, outage: guards.outage })
    expect(probe.decision).toMatchObject({ dueAt: NOW + 5_000, cycle: { unproven: { runs: 1 } } })
    const ordered = afterFailure({ ...world, failure, guards, options: LANE })
    expect(ordered.decision).toMatchObject({ dueAt: NOW + 5_000 })
    const alone = { ...served(NOW - 5_000), breaker }
    const again = afterFailure({ ...world, failure, guards: alone })
    expect(again.guards.breaker).toMatchObject({ phase: 'open', until: NOW + 1_000 })
  })

  test('says nothing about the dependency when others passed while it waited', () => {
    const failure = { class: 'transient' } as const
    const guardsAfter = (handledAt: number, runs: number) =>
      afterFailure({
        ...world,
        failure,
        guards: served(handledAt),
        cycle: { ...world.cycle, attempts: 1, runs },
        options: { adaptiveConcurrency: {}, retryBudget: 'off', flood: 'off' },
      }).guards
    const counted = {
      breaker: { failures: 1, suspects: ['m1'] },
      outage: { now: { failed: ['m1'] } },
      adaptiveConcurrency: { limit: 7 },
    }
    expect(guardsAfter(NOW - 1, 0)).toMatchObject(counted)
    expect(guardsAfter(NOW - 5_000, 1)).toMatchObject(counted)
    expect(guardsAfter(NOW - 1, 1)).toEqual({
      ...startGuards(resolvePolicy({ retryBudget: 'off', flood: 'off' }), NOW),
      ...served(NOW - 1),
    })
  })

  test('keeps its runs without proof in an outage when others passed since the first of them', () => {
    const unprovenAfter = (handledAt: number) => {
      const { decision } = afterFailure({
        failure: { class: 'transient' },
        guards: { ...served(handledAt), breaker: open(NOW, ['other']) },
        cycle: unproven(3, 60_000),
      })
      return decision.kind === 'retryAt' ? decision.cycle.unproven : undefined
    }
    expect(unprovenAfter(NOW - 62_999)).toEqual({ runs: 3, waitedMs: 63_000 })
    expect(unprovenAfter(NOW - 63_000)).toEqual({ runs: 0, waitedMs: 0 })
  })
})

describe('the wait', () => {
  const waitOf = (world: World) => {
    const { decision } = afterFailure(world)
    return decision.kind === 'retryAt' ? [decision.delayMs, decision.cycle.lastDelayMs] : undefined
  }

  test('grows with the attempts that count', () => {
    const options: PolicyOptions = { retry: { backoff: { kind: 'exponential', jitter: 'none' } } }
    expect(waitOf({ options })).toEqual([1_000, 1_000])
    expect(waitOf({ options, cycle: { attempts: 2 } })).toEqual([4_000, 4_000])
  })

  test('is drawn from the given random source', () => {
    const options: PolicyOptions = { retry: { backoff: { kind: 'exponential' } } }
    expect(waitOf({ options, random: () => 0.25 })).toEqual([250, 250])
  })

  test('depends on the class of the failure', () => {
    const options: PolicyOptions = {
      retry: {
        backoff: {
          kind: 'progressive',
          tiers: { transient: ['7s'] },
          otherwise: ['9s'],
          jitter: 'none',
        },
      },
    }
    expect(waitOf({ options, failure: { class: 'transient' } })).toEqual([7_000, 7_000])
    expect(waitOf({ options, failure: { class: 'unknown' } })).toEqual([9_000, 9_000])
  })

  test('uses the backoff of the class', () => {
    const classes = { unknown: { backoff: { kind: 'fixed', delay: '8s' } } } as const
    expect(waitOf({ options: { retry: { classes } } })).toEqual([8_000, 8_000])
  })

  test('grows from the last one when it is decorrelated', () => {
    const options: PolicyOptions = { retry: { backoff: { kind: 'decorrelated' } } }
    expect(waitOf({ options })).toEqual([2_000, 2_000])
    expect(waitOf({ options, cycle: { lastDelayMs: 4_000 } })).toEqual([6_500, 6_500])
  })

  test('is never shorter than the minimum', () => {
    const retry = { minDelay: '25ms', backoff: { kind: 'exponential' } } as const
    expect(waitOf({ options: { retry }, random: () => 0 })).toEqual([25, 25])
  })

  test.each<[asked: number, chance: number, delayMs: number]>([
    [20_000, 0, 20_000],
    [20_000, 0.5, 21_000],
    [20_001, 0.5, 21_002],
    [86_400_000, 0, 86_400_000],
    [86_400_001, 0, 86_400_000],
    [Number.MAX_VALUE, 0.5, 90_720_000],
  ])(
    'of %s ms requested by the dependency, with random number %s, is %s ms',
    (asked, chance, delayMs) => {
      const world = { failure: { retryAfterMs: asked }, random: () => chance }
      expect(waitOf(world)).toEqual([delayMs, delayMs])
    },
  )

  test('requested by the dependency wins over the backoff, longer or shorter', () => {
    const { decision } = afterFailure({ failure: { retryAfterMs: 2_000 }, random: () => 0 })
    expect(decision).toMatchObject({ reason: 'pushback', dueAt: NOW + 2_000, delayMs: 2_000 })
  })

  test('requested by the dependency shortens no delay of a run without proof', () => {
    const waitBefore = (runs: number, asked: number) => {
      const failure = { class: 'transient', retryAfterMs: asked } as const
      const cycle = { runs, attempts: 5, lastDelayMs: 0, unproven: { runs, waitedMs: 0 } }
      const { decision } = afterFailure({ failure, cycle, random: () => 0 })
      return decision.kind === 'retryAt' ? [decision.reason, decision.delayMs] : decision.kind
    }
    // The seventh of 20 runs in an hour: 2^-3 of a tenth of it.
    expect(waitBefore(6, 1_000)).toEqual(['backoff', 45_000])
    expect(waitBefore(6, 44_999)).toEqual(['backoff', 45_000])
    expect(waitBefore(6, 45_001)).toEqual(['pushback', 45_001])
  })

  test('requested by the dependency shortens no delay in an outage', () => {
    const waitWith = (asked: number) => {
      const guards = { breaker: open(NOW, ['other']) }
      const cycle = { runs: 1, lastDelayMs: 60_000 }
      const options = { retry: { backoff: exponential({ cap: '60s' }) } }
      const failure = { class: 'transient', retryAfterMs: asked } as const
      const { decision } = afterFailure({ options, failure, guards, cycle, random: () => 0 })
      return decision.kind === 'retryAt' ? [decision.reason, decision.delayMs] : decision.kind
    }
    expect(waitWith(10_000)).toEqual(['backoff', 60_000])
    expect(waitWith(70_000)).toEqual(['pushback', 70_000])
  })

  test('after a run in an outage does not start again from the shortest when the breaker is off', () => {
    const retry = { backoff: exponential({ cap: '60s', jitter: 'none' }) }
    const waitAfter = (lastDelayMs: number, options: PolicyOptions = { breaker: 'off' }) =>
      waitOf({
        options: { retry, ...options },
        failure: { class: 'transient' },
        cycle: { runs: 9, attempts: 0, lastDelayMs },
        random: () => 0,
      })?.[0]
    expect(waitAfter(1_000)).toBe(1_000)
    expect(waitAfter(40_000)).toBe(40_000)
    expect(waitAfter(90_000)).toBe(60_000)
    expect(waitAfter(40_000, {})).toBe(1_000)
  })

  test('requested by the dependency counts from the first millisecond', () => {
    const retry = { minDelay: '1ms', backoff: { kind: 'fixed', delay: '5s' } } as const
    const { decision } = afterFailure({
      failure: { retryAfterMs: 1 },
      options: { retry },
      random: () => 0,
    })
    expect(decision).toMatchObject({ reason: 'pushback', delayMs: 1 })
  })

  test.each([
    [1, 25],
    [23, 25],
    [24, 26],
  ])(
    'of %s ms requested by the dependency is never shorter than the minimum: %s ms',
    (asked, delayMs) => {
      const retry = { minDelay: '25ms', backoff: { kind: 'fixed', delay: '5s' } } as const
      const { decision } = afterFailure({ failure: { retryAfterMs: asked }, options: { retry } })
      expect(decision).toMatchObject({
        reason: 'pushback',
        delayMs,
        cycle: { lastDelayMs: delayMs },
      })
    },
  )

  test('requested by the dependency is held back by the budget like any other', () => {
    const { decision } = afterFailure({ failure: { retryAfterMs: 100 }, guards: SPENT })
    expect(decision).toMatchObject({ reason: 'held_back', dueAt: NOW + 1_500 })
    expect(decision).toMatchObject({ cycle: { lastDelayMs: 105 } })
  })
})

describe('the budget', () => {
  const fast = { retry: { backoff: { kind: 'fixed', delay: '1s' } } } as const

  test('gives a token for a retry', () => {
    const { guards, events } = afterFailure({})
    expect(guards.retryBudget).toEqual({
      tokens: 99,
      rateTokens: 99,
      at: NOW,
      stageAt: NOW,
      staged: 0,
    })
    expect(events).toHaveLength(1)
  })

  test('does not change when it is off', () => {
    const { guards } = afterFailure({ options: { retryBudget: 'off' }, guards: SPENT })
    expect(guards.retryBudget).toEqual(SPENT.retryBudget)
  })

  test('gives no token for a message that is given up', () => {
    const { guards } = afterFailure({ cycle: { attempts: 4 } })
    expect(guards.retryBudget.tokens).toBe(100)
  })

  test('releases retries in stages when it is spent, and reports the time', () => {
    const { decision, guards, events } = afterFailure({ guards: SPENT, options: fast })
    expect(decision).toEqual({
      kind: 'retryAt',
      reason: 'held_back',
      dueAt: NOW + 1_500,
      delayMs: 1_500,
      cycle: aCycle({
        attempts: 1,
        runs: 1,
        firstFailedAt: NOW,
        lastDelayMs: 1_000,
        history: [anAttempt({ at: NOW })],
      }),
      failure: aFailure(),
    })
    expect(guards.retryBudget).toMatchObject({ tokens: -1, stageAt: NOW + 1_000, staged: 1 })
    expect(events).toEqual([
      expect.objectContaining({ type: 'attempt_failed' }),
      {
        type: 'budget_exhausted',
        at: NOW,
        source: 'orders',
        deliveryId: 'm1',
        releaseAt: NOW + 1_500,
      },
    ])
  })

  test('does not hold back a retry that is due at the same time', () => {
    const retry = { backoff: { kind: 'fixed', delay: '1500ms' } } as const
    const { decision } = afterFailure({ guards: SPENT, options: { retry } })
    expect(decision).toMatchObject({ reason: 'backoff', dueAt: NOW + 1_500 })
  })

  test('gives up when it is spent and the policy requires it, through filter and flood guard', () => {
    const world = { guards: SPENT, options: { retryBudget: { onExceeded: 'deadLetter' } } } as const
    const { decision, guards, events } = afterFailure(world)
    expect(decision).toMatchObject({
      kind: 'deadLetter',
      reason: 'over_budget',
      failure: aFailure(),
      cycle: { attempts: 1 },
    })
    expect(guards.flood).toEqual([{ signature: 's1', tokens: 99, at: NOW, isFlood: false }])
    expect(guards.retryBudget.at).toBe(NOW)
    expect(events.map((event) => event.type)).toEqual(['attempt_failed', 'budget_exhausted'])
    const flooded = afterFailure({ ...world, guards: { ...SPENT, ...FLOODED } })
    expect(flooded.decision).toMatchObject({ kind: 'deadLetter', notBefore: NOW + 1_000 })
    expect(flooded.events.map((event) => event.type)).toEqual([
      'attempt_failed',
      'budget_exhausted',
      'flood_detected',
    ])
    const filtered = afterFailure({ ...world, options: { ...world.options, ...NOT_KEPT } })
    expect(filtered.decision).toMatchObject({ kind: 'drop', reason: 'filtered' })
    expect(filtered.events.map((event) => event.type)).toEqual([
      'attempt_failed',
      'budget_exhausted',
    ])
  })

  test('reports that it is spent, with the dead letter, when the flood guard is off', () => {
    const { decision, events } = afterFailure({
      guards: SPENT,
      options: { retryBudget: { onExceeded: 'deadLetter' }, flood: 'off' },
    })
    expect(decision.kind).toBe('deadLetter')
    expect(events.map((event) => event.type)).toEqual(['attempt_failed', 'budget_exhausted'])
  })

  test('never drops a message that must be kept when it is spent', () => {
    const world = {
      guards: SPENT,
      options: { retryBudget: { onExceeded: 'drop' }, deadLetter: { keep: [/^order/] } },
    } as const
    const { decision, guards, events } = afterFailure(world)
    expect(decision).toEqual({
      kind: 'deadLetter',
      reason: 'over_budget',
      failure: aFailure(),
      cycle: aCycle({
        attempts: 1,
        runs: 1,
        firstFailedAt: NOW,
        history: [anAttempt({ at: NOW })],
      }),
    })
    expect(guards.flood).toEqual([{ signature: 's1', tokens: 99, at: NOW, isFlood: false }])
    // A message that never runs again takes no slot in the stages and costs nothing.
    expect(guards.retryBudget).toMatchObject({ stageAt: NOW, staged: 0 })
    expect(events.map((event) => event.type)).toEqual(['attempt_failed', 'budget_exhausted'])
    const flooded = afterFailure({ ...world, guards: { ...SPENT, ...FLOODED } })
    expect(flooded.decision).toMatchObject({ kind: 'deadLetter', notBefore: NOW + 1_000 })
    expect(flooded.events.map((event) => event.type)).toEqual([
      'attempt_failed',
      'budget_exhausted',
      'flood_detected',
    ])
  })

  test('asks the keep filter about this message when it is spent', () => {
    const asked: unknown[] = []
    const always = (candidate: unknown) => {
      asked.push(candidate)
      return false
    }
    const { decision } = afterFailure({
      guards: SPENT,
      options: { retryBudget: { onExceeded: 'drop' }, deadLetter: { keep: [always] } },
    })
    expect(decision.kind).toBe('drop')
    expect(asked).toEqual([{ delivery: aDelivery(), failure: aFailure() }])
  })

  test('drops an uncounted failure with its whole history when it is spent', () => {
    const { decision } = afterFailure({
      failure: { class: 'transient' },
      cycle: { attempts: 2 },
      guards: { outage: degraded(15), ...SPENT },
      options: { retryBudget: { onExceeded: 'drop' } },
    })
    expect(decision).toMatchObject({
      kind: 'drop',
      reason: 'over_budget',
      cycle: { attempts: 2, runs: 1, history: [{ number: 3, counted: false }] },
    })
  })

  test('drops when it is spent and the policy requires it', () => {
    const { decision, events } = afterFailure({
      guards: SPENT,
      options: { retryBudget: { onExceeded: 'drop' } },
    })
    expect(decision).toEqual({
      kind: 'drop',
      reason: 'over_budget',
      failure: aFailure(),
      cycle: aCycle({
        attempts: 1,
        runs: 1,
        firstFailedAt: NOW,
        history: [anAttempt({ at: NOW })],
      }),
    })
    expect(events.map((event) => event.type)).toEqual(['attempt_failed', 'budget_exhausted'])
  })
})

describe('giving up', () => {
  test('takes a slot in the flood window of its signature', () => {
    const { guards } = afterFailure({ failure: { class: 'schema', signature: 's3' } })
    expect(guards.flood).toEqual([{ signature: 's3', tokens: 99, at: NOW, isFlood: false }])
  })

  test('is written later when no slot is left, and reported', () => {
    const { decision, guards, events } = afterFailure({
      failure: { class: 'schema' },
      guards: FLOODED,
    })
    expect(decision).toMatchObject({
      kind: 'deadLetter',
      reason: 'terminal',
      notBefore: NOW + 1_000,
      failure: aFailure({ class: 'schema' }),
      cycle: { attempts: 1 },
    })
    expect(guards.flood).toEqual([{ signature: 's1', tokens: -1, at: NOW, isFlood: true }])
    expect(events[0]).toMatchObject({ type: 'attempt_failed', counted: true })
    expect(events.slice(1)).toEqual<CoreEvent[]>([
      {
        type: 'flood_detected',
        at: NOW,
        source: 'orders',
        signature: 's1',
        until: NOW + 1_000,
      },
    ])
  })

  test('is reported once for each flood', () => {
    const flood = [{ signature: 's1', tokens: -1, at: NOW, isFlood: true }]
    const { decision, events } = afterFailure({ failure: { class: 'schema' }, guards: { flood } })
    expect(decision).toMatchObject({ kind: 'deadLetter', notBefore: NOW + 2_000 })
    expect(events.map((event) => event.type)).toEqual(['attempt_failed'])
  })

  test('is reported but never written later in lane order, because its lane would wait', () => {
    const world = { failure: { class: 'schema' }, guards: FLOODED, options: LANE } as const
    const { decision, events } = afterFailure(world)
    expect(decision.kind).toBe('deadLetter')
    expect(decision).not.toHaveProperty('notBefore')
    expect(events.map((event) => event.type)).toEqual(['attempt_failed', 'flood_detected'])
  })

  test('does not change the flood window when the guard is off or the message is dropped', () => {
    const schema = { failure: { class: 'schema' }, guards: FLOODED } as const
    expect(afterFailure({ ...schema, options: { flood: 'off' } }).guards.flood).toEqual(
      FLOODED.flood,
    )
    expect(afterFailure({ ...schema, options: NOT_KEPT }).guards.flood).toEqual(FLOODED.flood)
  })

  test('calls the filter with the delivery and the failure', () => {
    const asked: unknown[] = []
    const when = (candidate: unknown) => {
      asked.push(candidate)
      return false
    }
    const failure = { class: 'schema' } as const
    const { decision } = afterFailure({ failure, options: { deadLetter: { keepIf: when } } })
    expect(decision).toMatchObject({ kind: 'drop', reason: 'filtered' })
    expect(asked).toEqual([{ delivery: aDelivery(), failure: aFailure(failure) }])
  })
})

describe('a delivery that is given up without an attempt', () => {
  const failure = {
    class: 'transient',
    signature: 'breaker-open',
    type: 'BreakerOpen',
    code: 'BREAKER_OPEN',
    message: 'the circuit breaker of the dependency was open',
    retryAfterMs: undefined,
    timedOut: false,
    stack: undefined,
  }

  function givenUp(options: PolicyOptions = {}, change: Partial<Guards> = {}): DecideResult {
    const policy = resolvePolicy({ ...PLAIN, ...options })
    const cycle = aCycle({ number: 2, attempts: 1, firstFailedAt: NOW - 9, history: [anAttempt()] })
    return deadLetterWithoutAttempt({
      policy,
      delivery: deepFrozen(aDelivery()),
      cycle: deepFrozen(cycle),
      guards: deepFrozen({ ...startGuards(policy, NOW), ...OPEN, ...change }),
      now: NOW,
      random: half,
    })
  }

  test('records the reason in its history, and updates only the flood guard', () => {
    const { decision, guards, events } = givenUp()
    const { signature, code, message } = failure
    expect(decision).toEqual({
      kind: 'deadLetter',
      reason: 'breaker_open',
      failure,
      cycle: aCycle({
        number: 2,
        attempts: 1,
        runs: 0,
        firstFailedAt: NOW - 9,
        history: [
          anAttempt(),
          {
            number: 2,
            at: NOW,
            waitedMs: 0,
            class: 'transient',
            signature,
            code,
            type: 'BreakerOpen',
            message,
            counted: false,
          },
        ],
      }),
    })
    expect(guards).toEqual({
      ...startGuards(resolvePolicy(PLAIN), NOW),
      ...OPEN,
      flood: [{ signature: 'breaker-open', tokens: 99, at: NOW, isFlood: false }],
    })
    expect(events).toEqual([])
  })

  test('is filtered and held back by the flood guard like any dead letter', () => {
    expect(givenUp(NOT_KEPT).decision).toMatchObject({ kind: 'drop', reason: 'filtered' })
    const flood = [{ signature: 'breaker-open', tokens: 0, at: NOW, isFlood: false }]
    const flooded = givenUp({}, { flood })
    expect(flooded.decision).toMatchObject({ kind: 'deadLetter', notBefore: NOW + 1_000 })
    expect(flooded.events.map((event) => event.type)).toEqual(['flood_detected'])
  })

  test('shares a frozen failure', () => {
    const { decision } = givenUp()
    expect('failure' in decision && Object.isFrozen(decision.failure)).toBe(true)
  })
})

describe('a delivery whose message still runs in this process', () => {
  function waits(
    cycle: Partial<FailureCycle>,
    options: PolicyOptions = {},
    change: Partial<Guards> = {},
  ) {
    const policy = resolvePolicy({ ...PLAIN, ...options })
    const guards = deepFrozen({ ...startGuards(policy, NOW), ...change })
    const input = { policy, delivery: deepFrozen(aDelivery()), guards, now: NOW, random: half }
    return { ...waitForEarlierRun({ ...input, cycle: deepFrozen(aCycle(cycle)) }), before: guards }
  }
  const ran = { attempts: 1, runs: 1, lastDelayMs: 3_000, firstFailedAt: NOW - 9_000 }

  test('waits without a run and without proof', () => {
    const { decision, guards, events, before } = waits(ran)
    expect(decision).toMatchObject({
      kind: 'retryAt',
      reason: 'backoff',
      delayMs: 5_000,
      cycle: { attempts: 1, runs: 1, unproven: { runs: 1, waitedMs: 3_000 }, lastDelayMs: 5_000 },
      failure: {
        class: 'transient',
        code: 'ATTEMPT_TIMEOUT',
        signature: 'still-running',
        type: 'StillRunning',
        message: 'an earlier run of the message had not ended long after its timeout',
        timedOut: true,
      },
    })
    expect(events).toEqual([])
    expect(guards).toEqual({
      ...before,
      retryBudget: { ...before.retryBudget, tokens: 99, rateTokens: 99 },
    })
  })

  test('is given up at the limit of unproven runs, with the reason in its history', () => {
    expect(waits({ ...ran, unproven: { runs: 19, waitedMs: 60_000 } }).decision).toMatchObject({
      kind: 'deadLetter',
      reason: 'unproven',
      cycle: { runs: 1, attempts: 1, history: [{ code: 'ATTEMPT_TIMEOUT', counted: false }] },
    })
  })

  test('is too old like any other', () => {
    const cycle = { ...ran, firstFailedAt: NOW - DAYS_14 - 1 }
    expect(waits(cycle).decision).toMatchObject({ reason: 'too_old' })
  })

  test('waits for the breaker too', () => {
    expect(waits(ran, {}, { breaker: open(NOW + 60_000) }).decision).toMatchObject({
      kind: 'retryAt',
      dueAt: NOW + 60_000,
    })
  })

  test('never counts as an attempt, and has the default limits when those of unproven runs are off', () => {
    const off: PolicyOptions = { retry: { unproven: 'off' } }
    const after = (runs: number, waitedMs: number, options: PolicyOptions) =>
      waits({ ...ran, lastDelayMs: 0, unproven: { runs, waitedMs } }, options).decision
    expect(after(0, 0, off)).toMatchObject({ kind: 'retryAt', cycle: { attempts: 1, runs: 1 } })
    expect(after(18, 3_599_999, off)).toMatchObject({ kind: 'retryAt', delayMs: 36_001 })
    expect(after(19, 0, off)).toMatchObject({ kind: 'deadLetter', reason: 'unproven' })
    expect(after(4, 3_600_000, off)).toMatchObject({ kind: 'deadLetter', reason: 'unproven' })
    const short: PolicyOptions = { retry: { unproven: { maxAge: '1m' } } }
    expect(after(4, 60_000, short)).toMatchObject({ kind: 'deadLetter', reason: 'unproven' })
    const once: PolicyOptions = { retry: { attempts: 1, unproven: 'off' } }
    expect(after(0, 0, once)).toMatchObject({ kind: 'retryAt', cycle: { attempts: 1 } })
  })
})

test('a failure of a skipped message is decided as usual, and changes no guard of the dependency', () => {
  const world = { failure: { class: 'transient' }, options: { retryBudget: 'off' } } as const
  const { breaker, outage } = startGuards(resolvePolicy(), NOW)
  const skipped = afterFailure({ ...world, attempt: { isSkipped: true } })
  expect(skipped.decision).toMatchObject({ kind: 'retryAt', cycle: { attempts: 1 } })
  expect(skipped.guards).toMatchObject({ breaker, outage })
  expect(afterFailure(world).guards.breaker).toMatchObject({ failures: 1 })
})

describe('events of a failure', () => {
  test('list the changes after the attempt, in order', () => {
    const breaker = { ...CLOSED, failures: 4 } as BreakerState
    const { events } = afterFailure({
      failure: { class: 'transient' },
      guards: { breaker },
      options: { adaptiveConcurrency: {} },
    })
    expect(events.map((event) => event.type)).toEqual([
      'attempt_failed',
      'breaker_changed',
      'limit_shrunk',
    ])
  })

  test('give the limit the number of attempts in flight and their start', () => {
    const failure = { class: 'transient' } as const
    const limit = { limit: 10, credit: 0, threshold: 50, shrunkAt: NOW - 20 }
    const world = {
      failure,
      options: { adaptiveConcurrency: {} },
      guards: { adaptiveConcurrency: limit },
    }
    const shrunk = afterFailure({ ...world, attempt: { inFlight: 5, startedAt: NOW - 19 } })
    expect(shrunk.events.at(-1)).toEqual({
      type: 'limit_shrunk',
      at: NOW,
      source: 'orders',
      from: 10,
      to: 3,
    })
    const kept = afterFailure({ ...world, attempt: { inFlight: 5, startedAt: NOW - 20 } })
    expect(kept.guards.adaptiveConcurrency).toEqual(limit)
  })
})
