import { describe, expect, test } from 'vitest'
import { type Admission, admit, isPlain } from '../src/admit.ts'
import type { Delivery } from '../src/delivery.ts'
import type { PolicyOptions } from '../src/policy/options.ts'
import { resolvePolicy } from '../src/policy/resolve.ts'
import { CRASH_LOOP } from '../src/poison.ts'
import { aCycle, aDelivery, anAttempt, deepFrozen, NOW } from './fixtures.ts'

function admission(delivery: Partial<Delivery>, options: PolicyOptions = {}): Admission {
  return admit({
    policy: resolvePolicy(options),
    delivery: deepFrozen(aDelivery(delivery)),
    now: NOW,
  })
}

const waitsFor = (remainingMs: number) => ({ cycle: aCycle({ remainingMs }) })

describe('the check before an attempt', () => {
  test.each<[why: string, delivery: Partial<Delivery>, options: PolicyOptions, kind: string]>([
    ['a first delivery', {}, {}, 'run'],
    ['a retry without a rest of its delay', waitsFor(0), {}, 'run'],
    ['a retry that must wait one more millisecond', waitsFor(1), {}, 'refused'],
    ['a delivery that was lost once', { deliveryCount: 2 }, {}, 'run'],
    ['a delivery that was lost twice', { deliveryCount: 3 }, {}, 'runAlone'],
    ['a delivery on its last trial', { deliveryCount: 5 }, {}, 'runAlone'],
    ['a delivery after the last trial', { deliveryCount: 6 }, {}, 'refused'],
    ['a delivery far beyond the last trial', { deliveryCount: 1_000 }, {}, 'refused'],
    [
      'a delivery after the last trial, with poison off',
      { deliveryCount: 6 },
      { poison: 'off' },
      'run',
    ],
    ['an early delivery, with poison off', waitsFor(1), { poison: 'off' }, 'refused'],
    [
      'a delivery that was lost once, when that is the limit',
      { deliveryCount: 2 },
      { poison: { suspectDeliveries: 2 } },
      'runAlone',
    ],
    ['a delivery past its only trial', { deliveryCount: 4 }, { poison: { trials: 1 } }, 'refused'],
  ])('%s', (_, delivery, options, kind) => {
    expect(admission(delivery, options).kind).toBe(kind)
  })

  test('returns an early retry unchanged for the rest of its wait', () => {
    const cycle = aCycle({ attempts: 2, remainingMs: 250, history: [anAttempt()] })
    expect(admission({ cycle })).toEqual({
      kind: 'refused',
      decision: {
        kind: 'retryAt',
        reason: 'not_due',
        dueAt: NOW + 250,
        delayMs: 250,
        cycle,
        failure: undefined,
      },
    })
  })

  test('quarantines a message that crashes processes, with its history', () => {
    const cycle = aCycle({ number: 2, attempts: 1, history: [anAttempt()] })
    expect(admission({ cycle, deliveryCount: 6 })).toEqual({
      kind: 'refused',
      decision: {
        kind: 'quarantine',
        reason: 'crash_loop',
        failure: CRASH_LOOP,
        cycle: {
          ...cycle,
          attempts: 2,
          runs: 1,
          firstFailedAt: NOW,
          history: [
            anAttempt(),
            {
              number: 2,
              at: NOW,
              waitedMs: 0,
              class: 'unknown',
              signature: 'crash-loop',
              code: 'CRASH_LOOP',
              type: 'CrashLoop',
              message: CRASH_LOOP.message,
              counted: true,
            },
          ],
        },
      },
    })
  })

  test('checks the wait first: does not judge a suspect before it is due', () => {
    const refused = admission({ ...waitsFor(1), deliveryCount: 6 })
    expect(refused).toMatchObject({ decision: { kind: 'retryAt', reason: 'not_due' } })
  })

  test('freezes the shared results', () => {
    expect(Object.isFrozen(admission({}))).toBe(true)
    expect(Object.isFrozen(admission({ deliveryCount: 3 }))).toBe(true)
  })
})

describe('isPlain', () => {
  test.each<[why: string, delivery: Partial<Delivery>, plain: boolean]>([
    ['is true for a first delivery', {}, true],
    ['is true although it failed before', { cycle: aCycle({ attempts: 3 }) }, true],
    ['is false when it was delivered before', { deliveryCount: 2 }, false],
    ['is false when it has a time to wait for', waitsFor(1), false],
  ])('%s', (_, delivery, plain) => {
    expect(isPlain(aDelivery(delivery))).toBe(plain)
  })

  test('implies that the delivery may run at any time with any policy', () => {
    for (const options of [{}, { poison: 'off' }, { poison: { suspectDeliveries: 2 } }] as const) {
      expect(admission({ cycle: aCycle({ attempts: 4 }) }, options)).toEqual({ kind: 'run' })
    }
  })
})
