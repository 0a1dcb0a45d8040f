import { setTimeout as after } from 'node:timers/promises'

/** Nearly four minutes in total, which is enough for a database failover. Most retries are in the first minute. */
const WAITS_MS = [500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000] as const
/** 1,000 pending writes. No operation starts without the database, so only operations in flight add writes. */
const PENDING_MAX = 1_000

/** Writes the record of a completed action. Never rejects, because the action cannot be undone. */
export type RetryingWriter = (what: string, write: () => Promise<unknown>) => Promise<void>

interface ErrorLog {
  error(facts: object, text: string): void
}

/**
 * Creates a writer that tries once while the caller waits. After a failure it retries in the background for
 * about four minutes, without keeping the process alive. A write that succeeded but was reported as failed is
 * written twice.
 */
export function createRetryingWriter(log: ErrorLog): RetryingWriter {
  let pending = 0
  const retry = async (what: string, write: () => Promise<unknown>) => {
    pending += 1
    let last: unknown
    for (const ms of WAITS_MS) {
      await after(ms, undefined, { ref: false })
      last = await failureOf(write)
      if (last === undefined) break
    }
    pending -= 1
    if (last !== undefined) log.error({ err: last }, `Write failed, no more retries: ${what}.`)
  }
  return async (what, write) => {
    const err = await failureOf(write)
    if (err === undefined) return
    const canRetry = pending < PENDING_MAX
    log.error({ err }, `Write failed, ${canRetry ? 'retrying' : 'no more retries'}: ${what}.`)
    if (canRetry) void retry(what, write)
  }
}

/** Returns the error of a write, or undefined after a success. */
async function failureOf(write: () => Promise<unknown>): Promise<unknown> {
  try {
    await write()
    return undefined
  } catch (error) {
    return error ?? new Error('rejected without a reason')
  }
}
