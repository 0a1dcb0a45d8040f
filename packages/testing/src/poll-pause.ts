/** A pause is 5 % of the time waited so far, so that a wait ends at most 5 % late. */
const SHARE_OF_WAIT = 0.05
/** 250 ms: a long wait still notices its end soon. */
const LONGEST_MS = 250

/**
 * Returns the pause before the next check of a condition. Checks of a long wait become rarer, because
 * each of them may be a request to a server that other tests also use.
 */
export function pollPauseMs(waitedMs: number, shortestMs: number): number {
  return Math.max(shortestMs, Math.min(LONGEST_MS, waitedMs * SHARE_OF_WAIT))
}
