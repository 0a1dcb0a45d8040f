import { describe, expect, test } from 'vitest'
import type { BreakerState } from '../src/breaker.ts'
import { CLOSED, ISOLATED } from '../src/breaker.ts'
import type { Failure } from '../src/failure.ts'
import {
  attemptsAllowed,
  type Guards,
  type SuccessBatch,
  recordFailure,
  recordSuccesses,
  pausedUntil,
  startGuards,
} from '../src/guards.ts'
import { NO_OUTAGE } from '../src/outage.ts'
import type { PolicyOptions } from '../src/policy/options.ts'
import { resolvePolicy } from '../src/policy/resolve.ts'
import { aFailure, breakerChanged, deepFrozen, GUARDS_OFF, half, NOW } from './fixtures.ts'

const context = { source: 'orders', now: NOW, random: half }

function open(until: number): BreakerState {
  return {
    phase: 'open',
    since: NOW - 10_000,
    until,
    successes: 0,
    suspects: [],
    freshAt: NOW - 10_000,
  }
}

/** Closed, after the given number of consecutive failures. */
function shaken(failures: number): BreakerState {
  return { ...CLOSED, phase: 'closed', failures } as BreakerState
}

function aWorld(options: PolicyOptions = {}, change: Partial<Guards> = {}) {
  const policy = resolvePolicy(options)
  return { policy, guards: deepFrozen({ ...startGuards(policy, NOW), ...change }) }
}

function afterHandled(
  { policy, guards }: ReturnType<typeof aWorld>,
  change: Partial<SuccessBatch> = {},
) {
  const seen = {
    count: 1,
    at: NOW,
    saturated: false,
    late: false,
    startedAt: NOW - 10,
    inFlight: 1,
    ...change,
  }
  return recordSuccesses(policy, guards, seen, context)
}

function afterFailure(
  { policy, guards }: ReturnType<typeof aWorld>,
  failure: Partial<Failure>,
  attempt: {
    startedAt?: number
    inFlight?: number
    messageId?: string
    othersPassed?: boolean
    isSkipped?: boolean
  } = {},
) {
  const failed = {
    failure: aFailure(failure),
    messageId: 'm1',
    startedAt: NOW - 10,
    inFlight: 10,
    ...attempt,
  }
  return recordFailure(policy, guards, failed, context)
}

describe('guards at the start', () => {
  test('are closed and healthy', () => {
    expect(aWorld().guards).toEqual({
      breaker: { phase: 'closed', failures: 0, suspects: [], windowFrom: 0, handled: 0 },
      outage: NO_OUTAGE,
      adaptiveConcurrency: { limit: 10, credit: 0, threshold: 50, shrunkAt: 0, lateSince: 0 },
      retryBudget: { tokens: 100, rateTokens: 100, at: NOW, stageAt: NOW, staged: 0 },
      flood: [],
    })
  })

  test('allow the full concurrency without an adaptive limit, and keep no tokens when the budget is off', () => {
    const { guards } = aWorld({ ...GUARDS_OFF, concurrency: 7 })
    expect(guards.adaptiveConcurrency).toEqual({
      limit: 7,
      credit: 0,
      threshold: 7,
      shrunkAt: 0,
      lateSince: 0,
    })
    expect(guards.retryBudget).toEqual({ tokens: 0, rateTokens: 0, at: 0, stageAt: 0, staged: 0 })
  })
})

describe('attempts allowed', () => {
  test.each<[why: string, breaker: BreakerState, options: PolicyOptions, allowed: number]>([
    ['the limit while closed', CLOSED, {}, 10],
    ['none while open', open(NOW + 1), {}, 0],
    ['one probe while half-open', open(NOW), {}, 1],
    ['the probes of the policy while half-open', open(NOW), { breaker: { probes: 3 } }, 3],
    ['never more probes than the limit', open(NOW), { breaker: { probes: 30 } }, 10],
    ['one probe while half-open, when the breaker is off now', open(NOW), { breaker: 'off' }, 1],
    ['none while isolated', ISOLATED, {}, 0],
  ])('%s', (_, breaker, options, allowed) => {
    const { policy, guards } = aWorld(options, { breaker })
    expect(attemptsAllowed(policy, guards, NOW)).toBe(allowed)
  })
})

describe('paused until', () => {
  test.each<[why: string, breaker: BreakerState, until: number | undefined]>([
    ['the next probe while open', open(NOW + 1), NOW + 1],
    ['undefined once the probe may run', open(NOW), undefined],
    ['undefined while closed', CLOSED, undefined],
    ['undefined while isolated, because only an operator ends it', ISOLATED, undefined],
  ])('%s', (_, breaker, until) => {
    expect(pausedUntil(aWorld({}, { breaker }).guards, NOW)).toBe(until)
  })
})

describe('a success', () => {
  test('clears the earlier failures of the breaker', () => {
    expect(afterHandled(aWorld({}, { breaker: shaken(4) })).guards.breaker).toEqual(CLOSED)
  })

  test('is counted as often as it happened, by breaker, outage window and budget', () => {
    const world = aWorld(
      {},
      {
        breaker: open(NOW),
        retryBudget: { tokens: 5, rateTokens: 100, at: NOW, stageAt: NOW, staged: 0 },
      },
    )
    const { guards } = afterHandled(world, { count: 2, at: NOW - 3 })
    expect(guards.breaker).toEqual(CLOSED)
    expect(guards.outage).toMatchObject({ now: { handled: 2 }, handledAt: NOW - 3 })
    expect(guards.retryBudget.tokens).toBe(5.2)
  })

  test('reports once that it closed the breaker', () => {
    const first = afterHandled(aWorld({}, { breaker: open(NOW) }))
    expect(first.events).toEqual([])
    expect(first.guards.breaker).toMatchObject({ phase: 'open', successes: 1 })
    const second = afterHandled({ policy: resolvePolicy(), guards: first.guards })
    expect(second.events).toEqual([breakerChanged('halfOpen', 'closed', undefined)])
    expect(afterHandled({ policy: resolvePolicy(), guards: second.guards }).events).toEqual([])
  })

  test('grows the limit only when the limit prevented more attempts', () => {
    expect(
      afterHandled(aWorld(), { count: 3, saturated: true }).guards.adaptiveConcurrency.limit,
    ).toBe(13)
    expect(
      afterHandled(aWorld(), { count: 3, saturated: false }).guards.adaptiveConcurrency.limit,
    ).toBe(10)
  })

  test('shrinks the limit when it was late, saturated or not, and reports it', () => {
    const quick = afterHandled(aWorld())
    const { guards, events } = afterHandled(
      { policy: resolvePolicy(), guards: quick.guards },
      { late: true, saturated: true, inFlight: 10 },
    )
    expect(guards.adaptiveConcurrency).toEqual({
      limit: 7,
      credit: 0,
      threshold: 7,
      shrunkAt: NOW,
      lateSince: NOW,
    })
    expect(events).toEqual([{ type: 'limit_shrunk', at: NOW, source: 'orders', from: 10, to: 7 }])
  })

  test('grows the limit of a handler that was late from the start, until one success is quick', () => {
    const late = { late: true, saturated: true, count: 2 }
    const slow = afterHandled(aWorld(), late)
    expect(slow.guards.adaptiveConcurrency).toMatchObject({ limit: 12, lateSince: 0 })
    expect(slow.events).toEqual([])
    const policy = resolvePolicy()
    const quick = afterHandled({ policy, guards: slow.guards }, { late: false })
    expect(quick.guards.adaptiveConcurrency).not.toHaveProperty('lateSince')
    expect(quick.guards.adaptiveConcurrency.limit).toBe(12)
    const again = afterHandled({ policy, guards: quick.guards }, { ...late, inFlight: 12 })
    expect(again.guards.adaptiveConcurrency.limit).toBe(8)
  })

  test('returns the same limit when it is neither late nor saturated', () => {
    const { guards } = afterHandled(aWorld())
    const again = afterHandled({ policy: resolvePolicy(), guards })
    expect(again.guards.adaptiveConcurrency).toBe(guards.adaptiveConcurrency)
  })

  test('ignores a late success that began before the limit last shrank', () => {
    const limit = { limit: 10, credit: 0, threshold: 50, shrunkAt: NOW - 5 }
    const late = afterHandled(aWorld({}, { adaptiveConcurrency: limit }), {
      late: true,
      startedAt: NOW - 10,
    })
    expect(late.guards.adaptiveConcurrency).toEqual({ ...limit, lateSince: NOW })
    expect(late.events).toEqual([])
  })

  test('does not change guards that are off', () => {
    const world = aWorld(GUARDS_OFF, { breaker: shaken(4) })
    const { guards, events } = afterHandled(world, { late: true, saturated: true, inFlight: 50 })
    expect(guards).toEqual(world.guards)
    expect(events).toEqual([])
  })

  test('does not change the flood window', () => {
    const flood = [{ signature: 's1', tokens: 1, at: NOW, isFlood: false }]
    expect(afterHandled(aWorld({}, { flood })).guards.flood).toEqual(flood)
  })
})

describe('a failure', () => {
  test('of class transient counts against the dependency, once for each message', () => {
    const { guards } = afterFailure(aWorld({}, { breaker: shaken(1) }), { class: 'transient' })
    expect(guards.breaker).toMatchObject({ failures: 2, suspects: ['m1'] })
    const again = afterFailure({ policy: resolvePolicy(), guards }, { class: 'transient' })
    expect(again.guards.breaker).toBe(guards.breaker)
    expect(guards.outage.now).toEqual({ handled: 0, failed: ['m1'], surplus: 0 })
  })

  test('of class unknown may be caused by the message, and counts once for it', () => {
    const first = afterFailure(aWorld(), { class: 'unknown' })
    expect(first.guards.breaker).toMatchObject({ failures: 1, suspects: ['m1'] })
    expect(first.guards.outage.now).toEqual({ handled: 0, failed: ['m1'], surplus: 0 })
    const again = afterFailure({ policy: resolvePolicy(), guards: first.guards }, {})
    expect(again.guards.breaker).toMatchObject({ failures: 1, suspects: ['m1'] })
    const other = afterFailure(
      { policy: resolvePolicy(), guards: first.guards },
      {},
      { messageId: 'm2' },
    )
    expect(other.guards.breaker).toMatchObject({ failures: 2, suspects: ['m1', 'm2'] })
  })

  test('of class integration shows that the dependency responds', () => {
    const world = aWorld({}, { breaker: shaken(4) })
    const { guards, events } = afterFailure(world, { class: 'integration' })
    expect(guards.breaker).toEqual(CLOSED)
    expect(guards.outage).toMatchObject({ now: { handled: 1, failed: [] }, handledAt: NOW })
    expect(guards.adaptiveConcurrency.limit).toBe(10)
    expect(events).toEqual([])
  })

  test('of class integration is one successful probe', () => {
    const { guards } = afterFailure(aWorld({}, { breaker: open(NOW) }), { class: 'integration' })
    expect(guards.breaker).toMatchObject({ phase: 'open', successes: 1 })
  })

  test.each(['schema', 'business'] as const)(
    'of class %s shows nothing about the dependency, also as a probe',
    (name) => {
      for (const breaker of [shaken(4), open(NOW)]) {
        const world = aWorld({}, { breaker })
        expect(afterFailure(world, { class: name })).toEqual({ guards: world.guards, events: [] })
      }
    },
  )

  test.each(['transient', 'unknown', 'integration'] as const)(
    'of class %s shows nothing about the dependency when its message was skipped',
    (name) => {
      const world = aWorld({}, { breaker: shaken(4) })
      const failure = { class: name, timedOut: true }
      const skipped = afterFailure(world, failure, { isSkipped: true })
      expect(skipped).toEqual({ guards: world.guards, events: [] })
      expect(skipped.guards).toBe(world.guards)
      expect(afterFailure(world, failure, { isSkipped: false }).guards).not.toEqual(world.guards)
    },
  )

  test('that trips the breaker restarts the limit from the minimum, and reports both', () => {
    const { guards, events } = afterFailure(aWorld({}, { breaker: shaken(4) }), {
      class: 'transient',
    })
    expect(guards.breaker).toEqual({
      phase: 'open',
      since: NOW,
      until: NOW + 1_000,
      successes: 0,
      suspects: ['m1'],
      freshAt: NOW,
    })
    expect(guards.adaptiveConcurrency).toEqual({
      limit: 1,
      credit: 0,
      threshold: 5,
      shrunkAt: NOW,
      lateSince: 0,
    })
    expect(events).toEqual([
      breakerChanged('closed', 'open', NOW + 1_000),
      { type: 'limit_shrunk', at: NOW, source: 'orders', from: 10, to: 1 },
    ])
  })

  test('that trips the breaker restarts the limit for every class', () => {
    const { guards } = afterFailure(aWorld({}, { breaker: shaken(4) }), { class: 'unknown' })
    expect(guards.adaptiveConcurrency).toEqual({
      limit: 1,
      credit: 0,
      threshold: 5,
      shrunkAt: NOW,
      lateSince: 0,
    })
  })

  test('that trips the breaker keeps it open as long as the dependency requests', () => {
    const { guards } = afterFailure(aWorld({}, { breaker: shaken(4) }), {
      class: 'transient',
      retryAfterMs: 20_000,
    })
    expect(guards.breaker).toMatchObject({ phase: 'open', until: NOW + 20_000 })
  })

  test('of a message that others overtook counts only when the dependency responded', () => {
    const guardsAfter = (name: 'business' | 'integration' | 'transient' | 'unknown' | 'schema') => {
      const world = aWorld({}, { breaker: shaken(4) })
      const seen = { othersPassed: true }
      return { before: world.guards, after: afterFailure(world, { class: name }, seen).guards }
    }
    expect(guardsAfter('integration').after.breaker).toEqual(CLOSED)
    for (const name of ['transient', 'unknown', 'schema', 'business'] as const) {
      const { before, after } = guardsAfter(name)
      expect(after).toBe(before)
    }
  })

  test('of a probe opens the breaker again, without restarting the limit', () => {
    const limit = { limit: 8, credit: 3, threshold: 8, shrunkAt: NOW }
    const world = aWorld({}, { breaker: open(NOW), adaptiveConcurrency: limit })
    const { guards, events } = afterFailure(world, { class: 'unknown' })
    expect(guards.adaptiveConcurrency).toEqual(limit)
    expect(events).toEqual([breakerChanged('halfOpen', 'open', NOW + 1_000)])
  })

  test('while the breaker is open does not change it', () => {
    const world = aWorld({ adaptiveConcurrency: 'off' }, { breaker: open(NOW + 1) })
    const { guards, events } = afterFailure(world, { class: 'transient' })
    expect(guards.breaker).toBe(world.guards.breaker)
    expect(events).toEqual([])
  })

  test('shrinks the limit from the attempts in flight, when the dependency is to blame', () => {
    const { guards, events } = afterFailure(aWorld(), { class: 'transient' }, { inFlight: 10 })
    expect(guards.adaptiveConcurrency).toEqual({
      limit: 7,
      credit: 0,
      threshold: 7,
      shrunkAt: NOW,
      lateSince: 0,
    })
    expect(events).toEqual([{ type: 'limit_shrunk', at: NOW, source: 'orders', from: 10, to: 7 }])
  })

  test.each(['unknown', 'business', 'integration', 'schema'] as const)(
    'of class %s does not shrink the limit',
    (name) => {
      expect(afterFailure(aWorld(), { class: name }).guards.adaptiveConcurrency.limit).toBe(10)
    },
  )

  test('that began before the limit last shrank does not shrink it again', () => {
    const limit = { limit: 10, credit: 0, threshold: 50, shrunkAt: NOW }
    const world = aWorld({}, { adaptiveConcurrency: limit })
    expect(
      afterFailure(world, { class: 'transient' }, { startedAt: NOW - 1 }).guards
        .adaptiveConcurrency,
    ).toEqual(limit)
    expect(
      afterFailure(world, { class: 'transient' }, { startedAt: NOW }).guards.adaptiveConcurrency,
    ).toEqual(limit)
    expect(
      afterFailure(world, { class: 'transient' }, { startedAt: NOW + 1 }).guards.adaptiveConcurrency
        .limit,
    ).toBe(7)
  })

  test.each(['unknown', 'business', 'integration', 'schema'] as const)(
    'of class %s shrinks the limit when the attempt timed out',
    (name) => {
      const { guards, events } = afterFailure(aWorld(), { class: name, timedOut: true })
      expect(guards.adaptiveConcurrency).toEqual({
        limit: 7,
        credit: 0,
        threshold: 7,
        shrunkAt: NOW,
        lateSince: 0,
      })
      expect(events).toEqual([{ type: 'limit_shrunk', at: NOW, source: 'orders', from: 10, to: 7 }])
    },
  )

  test('that cannot shrink the limit any further is not reported', () => {
    const limit = { limit: 1, credit: 0, threshold: 1, shrunkAt: 0 }
    const { events } = afterFailure(aWorld({}, { adaptiveConcurrency: limit }), {
      class: 'transient',
    })
    expect(events).toEqual([])
  })

  test('does not change guards that are off', () => {
    const world = aWorld(GUARDS_OFF, { breaker: shaken(4) })
    for (const name of ['transient', 'unknown', 'business'] as const) {
      expect(afterFailure(world, { class: name })).toEqual({ guards: world.guards, events: [] })
    }
  })

  test('leaves budget and flood window to the decision', () => {
    const world = aWorld({}, { flood: [{ signature: 's1', tokens: 1, at: NOW, isFlood: false }] })
    const { guards } = afterFailure(world, { class: 'transient' })
    expect(guards.retryBudget).toBe(world.guards.retryBudget)
    expect(guards.flood).toBe(world.guards.flood)
  })
})
