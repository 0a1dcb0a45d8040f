import type { ConsumerStats } from '../consumer-stats.ts'

/** 5 min: long enough for a quiet queue, short enough that a repaired consumer is up soon. */
const WINDOW_MS = 300_000
/** 10 s: more samples would only use memory. */
const SAMPLE_MS = 10_000

interface Sample {
  readonly at: number
  readonly handled: number
  readonly failed: number
}

/** The runs of a consumer in the last five minutes, or since the last reading before. */
export interface RecentRuns {
  readonly handled: number
  readonly failed: number
}

/** Counts recent runs with samples at each reading, so that a message that passes costs nothing. */
export class FailureRate {
  readonly #samples: Sample[]

  constructor(now: number) {
    this.#samples = [{ at: now, handled: 0, failed: 0 }]
  }

  read({ handled, failed }: Pick<ConsumerStats, 'handled' | 'failed'>, now: number): RecentRuns {
    const samples = this.#samples
    // The newest sample outside of the window is the one to compare with.
    while ((samples[1]?.at ?? now) <= now - WINDOW_MS) samples.shift()
    const [first] = samples
    const last = samples.at(-1)
    if (last === undefined || now - last.at >= SAMPLE_MS) samples.push({ at: now, handled, failed })
    return { handled: handled - (first?.handled ?? 0), failed: failed - (first?.failed ?? 0) }
  }
}
