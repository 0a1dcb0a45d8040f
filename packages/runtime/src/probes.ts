import { LONG_RUN_MS } from '@redrive/core/internal'
import type { Clock } from './clock.ts'
import type { Dependency } from './dependency.ts'
import type { Call } from './invoke.ts'

export interface ProbesDeps {
  readonly dependency: Dependency
  readonly clock: Clock
  /** How long a probe still counts after its signal was aborted. */
  readonly graceMs: number
}

/**
 * Counts the attempts of one consumer that run while the breaker of its dependency is not closed: the
 * probes. All consumers of a dependency share the limit `breaker.probes`.
 */
export class Probes {
  readonly #deps: ProbesDeps
  readonly #inFlight = new Set<() => void>()

  constructor(deps: ProbesDeps) {
    this.#deps = deps
  }

  /** Wraps the call of an attempt, so that a probe is counted until its result is recorded. */
  counting(call: Call): Call {
    const { dependency } = this.#deps
    return (attempt) => {
      if (dependency.breaker.phase !== 'open') return call(attempt)
      const end = this.#begin(attempt.signal)
      const settled = (async () => call(attempt))()
      // The loop records the result in its own reaction to this promise, which runs after this one. Only
      // then may the next probe start: the result may open the breaker again.
      const endAfterRecord = () => queueMicrotask(end)
      settled.then(endAfterRecord, endAfterRecord)
      return settled
    }
  }

  /**
   * Ends a probe after its grace when it was aborted, or when it runs long: a handler that never ends, and a job, must
   * not stop all probes.
   */
  #begin(signal: AbortSignal): () => void {
    const { dependency, clock, graceMs } = this.#deps
    const endProbe = dependency.beginProbe()
    const cancelLong = clock.after(LONG_RUN_MS, () => end())
    let cancelGrace: (() => void) | undefined
    const onAbort = () => {
      cancelGrace = clock.after(graceMs, end)
    }
    const end = () => {
      signal.removeEventListener('abort', onAbort)
      cancelLong()
      cancelGrace?.()
      this.#inFlight.delete(end)
      endProbe()
    }
    signal.addEventListener('abort', onAbort)
    this.#inFlight.add(end)
    return end
  }

  /** Ends all probes: the consumer has stopped. */
  endAll(): void {
    for (const end of this.#inFlight) end()
  }
}
