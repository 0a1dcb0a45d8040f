import { type Duration, parseDuration } from '@redrive/core'

/** Returns the milliseconds of a duration. Throws for any other text. */
export function millisOf(duration: Duration): number {
  const ms = parseDuration(duration)
  if (ms !== undefined) return ms
  throw new TypeError(`Expected a duration such as '5s', got "${String(duration)}"`)
}
