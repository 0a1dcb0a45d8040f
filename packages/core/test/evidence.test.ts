import { describe, expect, test } from 'vitest'
import { type BreakerState, CLOSED, ISOLATED } from '../src/breaker.ts'
import { findCause, waitedMs } from '../src/evidence.ts'
import type { Failure } from '../src/failure.ts'
import { type Guards, startGuards } from '../src/guards.ts'
import { NO_OUTAGE, type OutageState } from '../src/outage.ts'
import type { PolicyOptions } from '../src/policy/options.ts'
import { resolvePolicy } from '../src/policy/resolve.ts'
import { aCycle, aFailure, NOW } from './fixtures.ts'

const open = (until: number, successes = 0, suspects: readonly string[] = []): BreakerState => ({
  phase: 'open',
  since: NOW - 10_000,
  until,
  successes,
  suspects,
  freshAt: NOW - 10_000,
})

/** A window in which this many distinct messages failed and this many runs passed. */
const failing = (failed: number, handled = 0): OutageState => ({
  ...NO_OUTAGE,
  from: NOW,
  now: { handled, surplus: failed, failed: [] },
})

/** Another message passed this long ago. */
const served = (agoMs: number): OutageState => ({ ...NO_OUTAGE, handledAt: NOW - agoMs })

const RETRIED = { runs: 1, attempts: 1, lastDelayMs: 1_000 }

function cause({
  options = {},
  failure = {},
  cycle = RETRIED,
  waitedFor = 1_000,
  before = {},
  after = {},
}: {
  options?: PolicyOptions
  failure?: Partial<Failure>
  cycle?: Parameters<typeof aCycle>[0]
  waitedFor?: number
  before?: Partial<Guards>
  after?: Partial<Guards>
} = {}) {
  const policy = resolvePolicy(options)
  const guards = startGuards(policy, NOW)
  return findCause({
    policy,
    failure: aFailure(failure),
    cycle: aCycle(cycle),
    before: { ...guards, ...before },
    after: { ...guards, ...after },
    waitedMs: waitedFor,
    now: NOW,
  })
}

describe('the cause of a failure is the message', () => {
  test('when it is the first failure and nothing else is known', () => {
    expect(cause({ cycle: {} })).toBe('message')
  })

  test('when another message passed while this one waited', () => {
    expect(cause({ after: { outage: served(999) } })).toBe('message')
    expect(cause({ after: { outage: served(1_000) } })).toBe('unproven')
  })

  test.each(['schema', 'business', 'integration'] as const)(
    'when its class is %s, in every state of the dependency',
    (name) => {
      const failure = { class: name }
      expect(cause({ failure, before: { breaker: ISOLATED }, after: { breaker: ISOLATED } })).toBe(
        'message',
      )
      expect(cause({ failure, after: { outage: failing(5) } })).toBe('message')
    },
  )

  test('when the outage window or the limits of unproven runs are off', () => {
    expect(cause({ options: { outage: 'off' }, after: { outage: failing(5) } })).toBe('message')
    expect(cause({ options: { retry: { unproven: 'off' } } })).toBe('message')
  })
})

describe('a breaker that one message has opened', () => {
  const alone = open(NOW + 1, 0, ['m1'])
  const both = open(NOW + 1, 0, ['m1', 'm2'])

  test('is no evidence about the dependency, after the first failure of the message', () => {
    expect(cause({ before: { breaker: CLOSED }, after: { breaker: alone } })).toBe('unproven')
    expect(cause({ before: { breaker: CLOSED }, after: { breaker: both } })).toBe('dependency')
    expect(cause({ cycle: {}, after: { breaker: alone } })).toBe('dependency')
    const options = { retry: { unproven: 'off' } } as const
    expect(cause({ options, after: { breaker: alone } })).toBe('dependency')
  })
})

describe('the cause of a failure is the dependency', () => {
  test.each(['transient', 'unknown'] as const)('while the breaker is open: %s', (name) => {
    const breaker = open(NOW + 1)
    const failure = { class: name }
    expect(cause({ failure, before: { breaker }, after: { breaker } })).toBe('dependency')
    expect(cause({ failure, after: { breaker } })).toBe('dependency')
  })

  test('while the breaker is isolated manually', () => {
    const guards = { breaker: ISOLATED }
    expect(cause({ before: guards, after: guards })).toBe('dependency')
  })

  test('when a probe opened the breaker again and no other passed', () => {
    const before = { breaker: open(NOW) }
    expect(cause({ before, after: { breaker: open(NOW + 1_000) } })).toBe('dependency')
    expect(cause({ cycle: {}, before, after: { breaker: open(NOW + 1_000) } })).toBe('dependency')
  })

  test('while enough messages fail together, although the breaker is closed', () => {
    expect(cause({ after: { outage: failing(5, 15) } })).toBe('dependency')
    expect(cause({ cycle: {}, after: { outage: failing(5, 15) } })).toBe('dependency')
    expect(cause({ after: { outage: failing(5, 16) } })).toBe('unproven')
    expect(cause({ after: { outage: failing(4) } })).toBe('unproven')
  })

  test('while enough messages fail together and none passed while this one waited', () => {
    const outage = { ...failing(5, 15), handledAt: NOW - 1_000 }
    expect(cause({ after: { outage } })).toBe('dependency')
    expect(cause({ cycle: {}, waitedFor: 1_001, after: { outage } })).toBe('dependency')
    const options = { retry: { unproven: 'off' } } as const
    expect(cause({ options, waitedFor: 1_001, after: { outage } })).toBe('dependency')
  })
})

describe('the cause of a failure is unproven', () => {
  test.each(['transient', 'unknown'] as const)(
    'when a retry fails and no other message passed or failed: %s',
    (name) => {
      expect(cause({ failure: { class: name } })).toBe('unproven')
    },
  )

  test('when many messages fail together, but another passed while this one waited', () => {
    const outage = { ...failing(5, 15), handledAt: NOW - 999 }
    expect(cause({ after: { outage } })).toBe('unproven')
  })

  test('when a probe fails that failed before, and so do only others that failed before', () => {
    const known = (freshAt: number) => ({ breaker: { ...open(NOW), freshAt } as BreakerState })
    const causeOf = (guards: Partial<Guards>) => cause({ before: guards, after: guards })
    expect(causeOf(known(NOW - 1_000))).toBe('unproven')
    expect(causeOf(known(NOW - 999))).toBe('dependency')
    expect(causeOf({ ...known(NOW - 999), outage: served(999) })).toBe('unproven')
  })

  test('when a probe fails and another message passed while this one waited', () => {
    const before = { breaker: open(NOW) }
    const after = { breaker: open(NOW + 1_000), outage: served(999) }
    expect(cause({ before, after })).toBe('unproven')
    expect(cause({ before, after: { ...after, outage: served(1_000) } })).toBe('dependency')
  })

  test('never with the limits off: a probe without new information counts', () => {
    const options = { retry: { unproven: 'off' } } as const
    const guards = { breaker: open(NOW) }
    expect(cause({ options, before: guards, after: guards })).toBe('message')
    const after = { breaker: open(NOW + 1_000), outage: served(999) }
    expect(cause({ options, before: guards, after })).toBe('dependency')
  })

  test('when the breaker just closed and nothing passed since the wait began', () => {
    expect(cause({ before: { breaker: open(NOW) }, after: { breaker: CLOSED } })).toBe('unproven')
  })
})

test('a message waited for its delay and for its run, whose start may be a second too early', () => {
  const cycle = aCycle({ lastDelayMs: 1_500 })
  expect(waitedMs(cycle, NOW, NOW)).toBe(1_500)
  expect(waitedMs(cycle, NOW - 1_000, NOW)).toBe(1_500)
  expect(waitedMs(cycle, NOW - 31_000, NOW)).toBe(31_500)
})
