import { performance } from 'node:perf_hooks'

/** Time as the runtime sees it. */
export interface Clock {
  /**
   * Whole epoch milliseconds that never step: a clock correction must not close a breaker early or
   * keep it open for an hour.
   */
  now(): number
  /** Runs the callback once, not before `delayMs` from now. Returns what cancels it. */
  after(delayMs: number, callback: () => void): () => void
}

/** `setTimeout` fires at once above 2^31-1 ms; longer waits are taken in steps. */
const LONGEST_TIMER_MS = 2_147_483_647

/** Wall time at process start plus monotonic time since: immune to steps of the wall clock. */
export const systemClock: Clock = {
  now: () => Math.floor(performance.timeOrigin + performance.now()),
  after(delayMs, callback) {
    // setTimeout counts from the event loop's cached time and truncates: one more millisecond keeps
    // "not before" true.
    let remainingMs = Math.ceil(delayMs) + 1
    let timer: NodeJS.Timeout
    const step = () => {
      const stepMs = Math.min(remainingMs, LONGEST_TIMER_MS)
      remainingMs -= stepMs
      timer = setTimeout(remainingMs > 0 ? step : callback, stepMs)
    }
    step()
    return () => clearTimeout(timer)
  },
}
