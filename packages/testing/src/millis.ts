import { type Duration, parseDuration } from '@redrive/core'

/** Milliseconds of a duration. Throws for a text that is none. */
export function millisOf(duration: Duration): number {
  const ms = parseDuration(duration)
  if (ms !== undefined) return ms
  throw new TypeError(`Expected a duration such as '5s', got ${String(duration)}`)
}
