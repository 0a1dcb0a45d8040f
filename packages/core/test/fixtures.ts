import type { Random } from '../src/backoff.ts'
import {
  type AttemptRecord,
  type Delivery,
  FIRST_CYCLE,
  type FailureCycle,
} from '../src/delivery.ts'
import type { Failure } from '../src/failure.ts'

/** The moment every small world starts at. */
export const NOW = 1_700_000_000_000

/** The middle of every jitter: it neither shortens nor lengthens what is spread around its middle. */
export const half: Random = () => 0.5

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

/** Unknown: retried, counted, and alone never a sign of a sick dependency. */
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

export function anAttempt(change: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    number: 1,
    at: NOW - 1_000,
    class: 'unknown',
    signature: 's1',
    code: 'E1',
    message: 'no',
    ...change,
  }
}

/** A copy that nobody can change, so that a function that tries is caught. */
export function deepFrozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  for (const inner of Object.values(value)) deepFrozen(inner)
  return Object.freeze(value)
}
