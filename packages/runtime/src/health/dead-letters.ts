import type { Awaitable } from '../awaitable.ts'
import type { Clock } from '../clock.ts'
import { describeError } from '../log/text.ts'
import { withTimeout } from '../timeout.ts'

/** 10 s: several probes and people must not make the broker count at each request. */
const KEEP_MS = 10_000
/** 2 s: shorter than the timeout of most probes. */
const COUNT_MS = 2_000

/** The number of dead letters, or why it is not known. */
export type DeadLetterCount =
  | { readonly count: number }
  | { readonly count: undefined; readonly problem: string }

/** Counts dead letters at most once in ten seconds. It never rejects. */
export function countDeadLetters(
  count: () => Awaitable<number>,
  clock: Clock,
): () => Promise<DeadLetterCount> {
  let last: { readonly at: number; readonly result: Promise<DeadLetterCount> } | undefined
  return () => {
    const now = clock.now()
    if (last === undefined || now - last.at >= KEEP_MS) {
      last = { at: now, result: countOnce(count, clock) }
    }
    return last.result
  }
}

async function countOnce(count: () => Awaitable<number>, clock: Clock): Promise<DeadLetterCount> {
  try {
    // Inside of an async function, so that a function that throws is a rejection, too.
    const work = (async () => ({ count: await count() }))()
    return await withTimeout(work, COUNT_MS, () => unknown('no result within 2 s'), clock)
  } catch (error) {
    return unknown(describeError(error))
  }
}

const unknown = (why: string): DeadLetterCount => ({
  count: undefined,
  problem: `Its dead letters cannot be counted: ${why}.`,
})
