// The wrappers that Redrive is compared with: retry and a breaker on consecutive failures. opossum
// has only a breaker, on the share of failures.
import { ConsecutiveBreaker, circuitBreaker, handleAll, type IPolicy, retry, wrap } from 'cockatiel'
import CircuitBreaker from 'opossum'

export type Handler = () => Promise<void>

const BREAKER_OPEN_MS = 30_000

/** Threshold for failing handlers: the breaker must stay closed, because an open one would be cheap. */
export const NEVER_OPENS: number = Number.MAX_SAFE_INTEGER

/** The lower bound: what a developer writes in ten lines, without records and reports. */
export function handWritten(handler: Handler, maxAttempts: number, threshold: number): Handler {
  let failures = 0
  let openUntilMs = 0
  return async () => {
    for (let attempt = 1; ; attempt += 1) {
      if (failures >= threshold && Date.now() < openUntilMs) throw new Error('open')
      try {
        await handler()
        failures = 0
        return
      } catch (error) {
        failures += 1
        if (failures >= threshold) openUntilMs = Date.now() + BREAKER_OPEN_MS
        if (attempt >= maxAttempts) throw error
      }
    }
  }
}

export function cockatiel(maxAttempts: number, threshold: number): IPolicy {
  // cockatiel counts retries, not attempts.
  const retries = retry(handleAll, { maxAttempts: maxAttempts - 1 })
  const breaker = circuitBreaker(handleAll, {
    halfOpenAfter: BREAKER_OPEN_MS,
    breaker: new ConsecutiveBreaker(threshold),
  })
  return wrap(retries, breaker)
}

type OpossumOptions = ConstructorParameters<typeof CircuitBreaker>[1]

/** Snapshots are off. They sort the whole latency window on a timer, between the samples of other candidates. */
export function opossum(handler: Handler, options: OpossumOptions = {}): CircuitBreaker<void> {
  return new CircuitBreaker(handler, { timeout: false, enableSnapshots: false, ...options })
}

/**
 * With percentiles on, opossum sorts every latency of its 10 s window at each failure. This takes 3
 * ms per message once the window contains 30,000 of them. 100 %: it opens above the threshold, so
 * never.
 */
export const OPOSSUM_FAILING: OpossumOptions = {
  rollingPercentilesEnabled: false,
  errorThresholdPercentage: 100,
}

/**
 * Removes cockatiel's wait in `setTimeout(0)`, which is a whole millisecond in Node. Without that
 * wait its own work can be compared; the figure is better than its real cost.
 */
export async function withoutTimers(work: () => Promise<void>): Promise<void> {
  const original = globalThis.setTimeout
  const immediately = (callback: () => void) => queueMicrotask(callback)
  globalThis.setTimeout = immediately as unknown as typeof setTimeout
  try {
    await work()
  } finally {
    globalThis.setTimeout = original
  }
}
