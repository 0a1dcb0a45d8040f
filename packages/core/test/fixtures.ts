import type { Random } from '../src/backoff.ts'
import {
  type FailureRecord,
  type Delivery,
  FIRST_CYCLE,
  type FailureCycle,
} from '../src/delivery.ts'
import type { CoreEvent } from '../src/events.ts'
import type { Failure } from '../src/failure.ts'
import type { PolicyOptions } from '../src/policy/options.ts'

/** The start time of every test. */
export const NOW = 1_700_000_000_000

/** The middle of every jitter: it neither shortens nor lengthens a delay that is spread around its middle. */
export const half: Random = () => 0.5

/** Every guard is off. */
export const GUARDS_OFF = {
  breaker: 'off',
  outage: 'off',
  adaptiveConcurrency: 'off',
  retryBudget: 'off',
  poison: 'off',
  flood: 'off',
} as const satisfies PolicyOptions

export function aCycle(change: Partial<FailureCycle> = {}): FailureCycle {
  return { ...FIRST_CYCLE, ...change }
}

export function aDelivery(change: Partial<Delivery> = {}): Delivery {
  return {
    id: 'm1',
    source: 'orders',
    lane: undefined,
    key: 'm1',
    type: 'order.created',
    bytes: new Uint8Array(),
    contentType: 'application/json',
    headers: {},
    cycle: FIRST_CYCLE,
    deliveryCount: 1,
    replayId: undefined,
    headerProblems: [],
    ...change,
  }
}

/** An unknown failure: retried, counted, and alone never a sign of an unhealthy dependency. */
export function aFailure(change: Partial<Failure> = {}): Failure {
  return {
    class: 'unknown',
    signature: 's1',
    type: 'TypeError',
    code: 'E1',
    message: 'no',
    retryAfterMs: undefined,
    timedOut: false,
    stack: undefined,
    ...change,
  }
}

export function anAttempt(change: Partial<FailureRecord> = {}): FailureRecord {
  return {
    number: 1,
    at: NOW - 1_000,
    waitedMs: 0,
    class: 'unknown',
    signature: 's1',
    code: 'E1',
    type: 'TypeError',
    message: 'no',
    counted: true,
    ...change,
  }
}

type BreakerChanged = Extract<CoreEvent, { type: 'breaker_changed' }>

/** The event of a breaker that changed now. */
export function breakerChanged(
  from: BreakerChanged['from'],
  to: BreakerChanged['to'],
  until: number | undefined,
): BreakerChanged {
  return { type: 'breaker_changed', at: NOW, source: 'orders', from, to, until }
}

/**
 * Applies inputs in order, each `afterMs` after the one before, and returns the state before and
 * after each of them.
 */
export function transitionsOf<Input extends { readonly afterMs: number }, State>(
  start: State,
  inputs: readonly Input[],
  step: (state: State, input: Input, now: number) => State,
) {
  let now = NOW
  let before = start
  return inputs.map((input) => {
    now += input.afterMs
    const after = step(before, input, now)
    const transition = { input, before, after, now }
    before = after
    return transition
  })
}

/** Returns a deeply frozen copy, so that a function that changes it throws. */
export function deepFrozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  for (const inner of Object.values(value)) deepFrozen(inner)
  return Object.freeze(value)
}
