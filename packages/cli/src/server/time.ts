import { type Duration, parseDuration } from '@redrive/core'
import { CommandError, EXIT } from '../exit.ts'
import type { Io } from '../io.ts'

/** Parses a time such as `2026-01-31T10:00:00Z`, or `2h` for two hours from now. Rejects past times. */
export function futureOf(io: Io, flag: string, text: string): number {
  const ms = parseDuration(text as Duration)
  const at = ms === undefined ? dateOf(flag, text) : io.now() + ms
  if (at > io.now()) return at
  throw new CommandError(
    EXIT.usage,
    `${flag}: "${text}" is in the past. Use a future time, or how long from now, such as 2h.`,
  )
}

function dateOf(flag: string, text: string): number {
  const at = Date.parse(text)
  if (!Number.isNaN(at)) return at
  throw new CommandError(
    EXIT.usage,
    `${flag}: expected a time such as 2026-01-31T10:00:00Z, or how long from now, such as 2h; got "${text}".`,
  )
}
