import { describe, expect, test } from 'vitest'
import { type FailureRecord, FIRST_CYCLE, type FailureCycle } from '../src/delivery.ts'
import { FAILURE_CLASSES, type Failure, type FailureClass } from '../src/failure.ts'
import {
  CRASH_LOOP,
  type CrashVerdict,
  isPoison,
  judgeCrashes,
  type PoisonPolicy,
} from '../src/poison.ts'

const POLICY: PoisonPolicy = {
  repeats: 3,
  windowMs: 1_000,
  classes: ['unknown', 'business'],
  suspectDeliveries: 3,
  trials: 2,
}

const NOW = 10_000

const failure = (fields: Partial<Failure> = {}): Failure => ({
  class: 'unknown',
  signature: '1-aaaa',
  type: 'TypeError',
  code: undefined,
  message: 'x is undefined',
  retryAfterMs: undefined,
  timedOut: false,
  stack: undefined,
  ...fields,
})

function cycleOf(...attempts: readonly Partial<FailureRecord>[]): FailureCycle {
  const history = attempts.map((attempt, index) => ({
    number: index + 1,
    at: NOW,
    waitedMs: 0,
    class: 'unknown' as const,
    signature: '1-aaaa',
    code: undefined,
    type: 'TypeError',
    message: 'x is undefined',
    counted: true,
    ...attempt,
  }))
  return { ...FIRST_CYCLE, attempts: history.length, history }
}

describe('a message', () => {
  test('is suspected poison when it failed the same way often enough, and not one earlier', () => {
    expect(isPoison(POLICY, cycleOf({}, {}), failure(), NOW)).toBe(false)
    expect(isPoison(POLICY, cycleOf({}, {}, {}), failure(), NOW)).toBe(true)
  })

  test('is not poison because of runs that do not count', () => {
    const uncounted = { counted: false }
    expect(isPoison(POLICY, cycleOf(uncounted, uncounted, {}), failure(), NOW)).toBe(false)
    expect(isPoison(POLICY, cycleOf({}, uncounted, {}, {}), failure(), NOW)).toBe(true)
    expect(isPoison(POLICY, cycleOf({}, {}, {}, {}), failure(), NOW)).toBe(true)
  })

  test('is not poison when its failures differ', () => {
    const cycle = cycleOf({}, { signature: '1-bbbb' }, {})
    expect(isPoison(POLICY, cycle, failure(), NOW)).toBe(false)
    expect(isPoison(POLICY, cycle, failure({ signature: '1-bbbb' }), NOW)).toBe(false)
  })

  test('is poison although other failures lie between the similar ones', () => {
    const cycle = cycleOf({}, { signature: '1-bbbb' }, {}, { signature: '1-bbbb' }, {})
    expect(isPoison(POLICY, cycle, failure(), NOW)).toBe(true)
  })

  test('is judged by the failures inside the window only', () => {
    expect(isPoison(POLICY, cycleOf({ at: 9_000 }, {}, {}), failure(), NOW)).toBe(true)
    expect(isPoison(POLICY, cycleOf({ at: 8_999 }, {}, {}), failure(), NOW)).toBe(false)
  })

  test.each(
    FAILURE_CLASSES.map((one): [FailureClass, boolean] => [
      one,
      one === 'unknown' || one === 'business',
    ]),
  )('that fails as %s is poison: %s, because the policy lists the classes', (name, expected) => {
    const cycle = cycleOf({ class: name }, { class: name }, { class: name })
    expect(isPoison(POLICY, cycle, failure({ class: name }), NOW)).toBe(expected)
  })

  test('is never poison when no class is listed', () => {
    expect(isPoison({ ...POLICY, classes: [] }, cycleOf({}, {}, {}), failure(), NOW)).toBe(false)
  })
})

describe('what the delivery count shows about crashes', () => {
  const judge = (deliveryCount: number, policy: Partial<PoisonPolicy> = {}) =>
    judgeCrashes({ ...POLICY, ...policy }, deliveryCount)

  test.each<[number, CrashVerdict]>([
    [1, 'clean'],
    [2, 'clean'],
    // Two processes crashed while it was in flight: it runs alone.
    [3, 'suspect'],
    [4, 'suspect'],
    // Two more crashed while no other message was in flight.
    [5, 'poison'],
    [6, 'poison'],
    [1_000, 'poison'],
  ])('delivery number %d is: %s', (deliveryCount, verdict) => {
    expect(judge(deliveryCount)).toBe(verdict)
  })

  test.each<[number, number, number, CrashVerdict]>([
    // suspectDeliveries, trials, delivery number
    [2, 2, 1, 'clean'],
    [2, 2, 2, 'suspect'],
    [2, 2, 3, 'suspect'],
    [2, 2, 4, 'poison'],
    [5, 2, 4, 'clean'],
    [5, 2, 5, 'suspect'],
    [5, 2, 6, 'suspect'],
    [5, 2, 7, 'poison'],
    [3, 4, 6, 'suspect'],
    [3, 4, 7, 'poison'],
  ])(
    'with suspicion at %d and %d trials, delivery number %d is: %s',
    (suspectDeliveries, trials, deliveryCount, verdict) => {
      expect(judge(deliveryCount, { suspectDeliveries, trials })).toBe(verdict)
    },
  )

  test('gives a message exactly as many runs alone as there are trials', () => {
    const verdicts = Array.from({ length: 50 }, (_, index) => judge(index + 1, { trials: 7 }))
    expect(verdicts.filter((one) => one === 'clean')).toHaveLength(2)
    expect(verdicts.filter((one) => one === 'suspect')).toHaveLength(7)
    expect(verdicts.filter((one) => one === 'poison')).toHaveLength(41)
  })
})

describe('the failure of a crash loop', () => {
  test('describes the crash although no error was caught', () => {
    expect(CRASH_LOOP).toEqual({
      class: 'unknown',
      signature: 'crash-loop',
      type: 'CrashLoop',
      code: 'CRASH_LOOP',
      message: 'the process crashed or disconnected each time it handled this message',
      retryAfterMs: undefined,
      timedOut: false,
      stack: undefined,
    })
    expect(Object.isFrozen(CRASH_LOOP)).toBe(true)
  })
})
