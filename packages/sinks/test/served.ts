import type { ConfiguredProgram } from '@redrive/dev-support'
import { until } from '@redrive/testing'

/** 60 s: much longer than a server needs to start. */
const START_MS = 60_000
/** 50 ms between two checks. */
const POLL_MS = 50

/** Waits like `until`, and adds the log of the server to the error. */
export async function untilServed<T>(
  what: string,
  program: ConfiguredProgram,
  probe: () => Promise<T>,
) {
  try {
    return await until(what, probe, { timeout: START_MS, interval: POLL_MS })
  } catch (error) {
    throw new Error(`The server logged:\n${program.output()}`, { cause: error })
  }
}
