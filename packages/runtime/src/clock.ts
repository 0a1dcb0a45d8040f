import { performance } from 'node:perf_hooks'

/** The clock of the runtime. */
export interface Clock {
  /**
   * Returns whole epoch milliseconds without jumps. A clock correction must not close a breaker early or
   * keep it open for an hour.
   */
  now(): number
  /**
   * Runs the callback once, not before `delayMs` from now. Returns a function that cancels it. A clock may ignore
   * the options.
   */
  after(delayMs: number, callback: () => void, options?: TimerOptions): () => void
}

export interface TimerOptions {
  /** Whether the process may end while the timer waits. Default false. */
  readonly isBackground?: boolean
}

/** `setTimeout` fires immediately above 2^31-1 ms, so longer waits are split. */
const LONGEST_TIMER_MS = 2_147_483_647

/** Wall time at process start plus monotonic time since then. Changes of the wall clock do not affect it. */
export const systemClock: Clock = {
  now: () => Math.floor(performance.timeOrigin + performance.now()),
  after(delayMs, callback, { isBackground = false } = {}) {
    // setTimeout counts from the event loop's cached time and truncates. One more millisecond
    // guarantees "not before".
    let remainingMs = Math.ceil(delayMs) + 1
    let timer: NodeJS.Timeout
    const step = () => {
      const stepMs = Math.min(remainingMs, LONGEST_TIMER_MS)
      remainingMs -= stepMs
      timer = setTimeout(remainingMs > 0 ? step : callback, stepMs)
      if (isBackground) timer.unref()
    }
    step()
    return () => clearTimeout(timer)
  },
}
