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

const notBefore = (moment: number) => ({ cycle: aCycle({ notBefore: moment }) })

describe('before an attempt', () => {
  test.each<[why: string, delivery: Partial<Delivery>, options: PolicyOptions, kind: string]>([
    ['a first delivery', {}, {}, 'run'],
    ['one whose time has come to the millisecond', notBefore(NOW), {}, 'run'],
    ['one whose time has passed', notBefore(NOW - 1), {}, 'run'],
    ['one that comes a millisecond early', notBefore(NOW + 1), {}, 'refused'],
    ['one that was lost once', { deliveryCount: 2 }, {}, 'run'],
    ['one that was lost twice', { deliveryCount: 3 }, {}, 'runAlone'],
    ['one on its last trial', { deliveryCount: 5 }, {}, 'runAlone'],
    ['one that no process survived', { deliveryCount: 6 }, {}, 'refused'],
    ['one far beyond that', { deliveryCount: 1_000 }, {}, 'refused'],
    [
      'one that no process survived, with poison off',
      { deliveryCount: 6 },
      { poison: 'off' },
      'run',
    ],
    ['one that comes early, with poison off', notBefore(NOW + 1), { poison: 'off' }, 'refused'],
    [
      'one that was lost once, where that is enough',
      { deliveryCount: 2 },
      { poison: { suspectDeliveries: 2 } },
      'runAlone',
    ],
    ['one past the only trial it gets', { deliveryCount: 4 }, { poison: { trials: 1 } }, 'refused'],
  ])('%s', (_, delivery, options, kind) => {
    expect(admission(delivery, options).kind).toBe(kind)
  })

  test('a retry that came too early goes back for the rest of its wait, as it is', () => {
    const cycle = aCycle({ attempts: 2, notBefore: NOW + 250, history: [anAttempt()] })
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

  test('a message that kills processes is quarantined with its history', () => {
    const cycle = aCycle({ number: 2, attempts: 1, history: [anAttempt()] })
    expect(admission({ cycle, deliveryCount: 6 })).toEqual({
      kind: 'refused',
      decision: { kind: 'quarantine', reason: 'crash_loop', failure: CRASH_LOOP, cycle },
    })
  })

  test('the wait comes first: a killer that is not due is not judged yet', () => {
    const refused = admission({ ...notBefore(NOW + 1), deliveryCount: 6 })
    expect(refused).toMatchObject({ decision: { kind: 'retryAt', reason: 'not_due' } })
  })

  test('a crash loop is a failure like any other, with words for it', () => {
    expect(CRASH_LOOP).toEqual({
      class: 'unknown',
      signature: 'crash-loop',
      type: 'CrashLoop',
      code: 'CRASH_LOOP',
      message: 'it was in hand, at last alone, when processes or connections died without a word',
      retryAfterMs: undefined,
      timedOut: false,
      stack: undefined,
    })
  })

  test('the answers that everybody gets cannot be changed', () => {
    expect(Object.isFrozen(admission({}))).toBe(true)
    expect(Object.isFrozen(admission({ deliveryCount: 3 }))).toBe(true)
  })
})

describe('a delivery is plain', () => {
  test.each<[why: string, delivery: Partial<Delivery>, plain: boolean]>([
    ['when nothing is against it', {}, true],
    ['although it failed before', { cycle: aCycle({ attempts: 3 }) }, true],
    ['unless it was handed out before', { deliveryCount: 2 }, false],
    ['unless it has a time to wait for', notBefore(0), false],
  ])('%s', (_, delivery, plain) => {
    expect(isPlain(aDelivery(delivery))).toBe(plain)
  })

  test('and then it may run, whatever the time and the policy', () => {
    for (const options of [{}, { poison: 'off' }, { poison: { suspectDeliveries: 2 } }] as const) {
      expect(admission({ cycle: aCycle({ attempts: 4 }) }, options)).toEqual({ kind: 'run' })
    }
  })
})
