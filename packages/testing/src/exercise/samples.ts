import type {
  FailureRecord,
  DeadLetter,
  Drop,
  Failure,
  FailureClass,
  FailureCycle,
  Pause,
  Quarantine,
  RetryAt,
} from '@redrive/core'
import type { SentMessage } from './world.ts'

/** Every byte value, and sequences that are not UTF-8: decoding and encoding would change them. */
export const BINARY: Uint8Array = Uint8Array.from([
  ...Array.from({ length: 256 }, (_, value) => value),
  ...[0xff, 0xfe, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0x00],
])

const utf8 = new TextEncoder()

export const text = (value: string): Uint8Array => utf8.encode(value)

/** Creates a message whose body identifies it. */
export const numbered = (number: number, lane?: string): SentMessage => ({
  bytes: text(JSON.stringify({ number })),
  contentType: 'application/json',
  ...(lane === undefined ? {} : { lane }),
})

export function failureOf(failureClass: FailureClass, message = 'it broke'): Failure {
  return {
    class: failureClass,
    signature: `v1-${failureClass}`,
    type: 'Error',
    code: 'EX_SAMPLE',
    message,
    retryAfterMs: undefined,
    timedOut: false,
    stack: undefined,
  }
}

/** Creates a cycle with that many failures, a second apart, the last one now. */
export function failedCycle(
  attempts: number,
  now: number,
  message: (number: number) => string = (number) => `failure ${number} “café”`,
): FailureCycle {
  const history = Array.from({ length: attempts }, (_, index): FailureRecord => {
    const number = index + 1
    return {
      number,
      at: now - (attempts - number) * 1_000,
      waitedMs: index * 250,
      class: 'unknown',
      signature: `v1-sample-${number}`,
      code: number % 2 === 0 ? 'EX_EVEN' : undefined,
      type: number % 3 === 0 ? undefined : 'SampleError',
      message: message(number),
      counted: number !== 2,
      // With and without tracing.
      ...(number % 2 === 0
        ? {}
        : { trace: `00-${String(number).padStart(32, '0')}-00f067aa0ba902b7-01` }),
    }
  })
  return {
    number: 1,
    attempts,
    runs: attempts + 2,
    unproven: { runs: 2, waitedMs: 700 },
    firstFailedAt: history[0]?.at,
    lastDelayMs: 250,
    remainingMs: 0,
    history,
  }
}

export const retryIn = (delayMs: number, cycle: FailureCycle, now: number): RetryAt => ({
  kind: 'retryAt',
  reason: 'backoff',
  dueAt: now + delayMs,
  delayMs,
  cycle,
  failure: failureOf('unknown'),
})

export const deadLetterOf = (cycle: FailureCycle): DeadLetter => ({
  kind: 'deadLetter',
  reason: 'attempts_exhausted',
  failure: failureOf('unknown'),
  cycle,
})

export const quarantineOf = (cycle: FailureCycle): Quarantine => ({
  kind: 'quarantine',
  reason: 'same_failure_repeated',
  failure: failureOf('unknown'),
  cycle,
})

export const dropOf = (cycle: FailureCycle): Drop => ({
  kind: 'drop',
  reason: 'filtered',
  failure: failureOf('unknown'),
  cycle,
})

export const giveBack = (now: number): Pause => ({
  kind: 'pause',
  reason: 'dependency_unhealthy',
  until: now,
  failure: undefined,
})

/** The error of a handler whose dependency is unreachable. */
export const unreachable = (): Error =>
  Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
