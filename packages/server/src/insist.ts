import { setTimeout as after } from 'node:timers/promises'

/** Nearly four minutes in all: a database that fails over is back by then. Most of it is in the first minute. */
const WAITS_MS = [500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000] as const
/** 1,000 that wait: nobody begins anything while the database is away, so they are those that were under way. */
const WAITING_MAX = 1_000

/** Writes what has to be written after something was done. Never rejects: what is done is done. */
export type Insist = (what: string, write: () => Promise<unknown>) => Promise<void>

interface Told {
  error(facts: object, text: string): void
}

/**
 * Tries once while the caller waits, and again later when that fails, for a while and without keeping the
 * process. One that is written although it did not seem so is written twice.
 */
export function insisting(log: Told): Insist {
  let waiting = 0
  const later = async (what: string, write: () => Promise<unknown>) => {
    waiting += 1
    let last: unknown
    for (const ms of WAITS_MS) {
      await after(ms, undefined, { ref: false })
      last = await failureOf(write)
      if (last === undefined) break
    }
    waiting -= 1
    if (last !== undefined) log.error({ err: last }, `Not written, and given up: ${what}.`)
  }
  return async (what, write) => {
    const err = await failureOf(write)
    if (err === undefined) return
    const isTried = waiting < WAITING_MAX
    log.error({ err }, `Not written, and ${isTried ? 'tried again' : 'given up'}: ${what}.`)
    if (isTried) void later(what, write)
  }
}

/** Undefined: there was none. */
async function failureOf(write: () => Promise<unknown>): Promise<unknown> {
  try {
    await write()
    return undefined
  } catch (error) {
    return error ?? new Error('rejected without a reason')
  }
}
