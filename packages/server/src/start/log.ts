import { RedriveError } from '@redrive/core'
import { type DestinationStream, type Logger, pino } from 'pino'

/** The log of the server: one JSON document per line. */
export type Log = Logger

export interface LogOptions {
  /** trace, debug, info, warn, error, fatal or silent. Default 'info'. */
  readonly level?: string
  /** Default: the standard output. */
  readonly to?: DestinationStream
}

/** Names of fields whose values are redacted, up to two levels deep. */
const REDACTED = ['authorization', 'cookie', 'set-cookie', 'password', 'secret', 'token']

/** Log levels, from most to least detailed. */
const LEVELS: readonly string[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

export function createLog({ level = 'info', to }: LogOptions = {}): Log {
  if (!LEVELS.includes(level)) {
    const text = `--log-level: expected one of ${LEVELS.join(', ')}, got '${level}'.`
    throw new RedriveError('POLICY_INVALID', text)
  }
  const options = {
    level,
    base: { pid: process.pid },
    redact: {
      paths: REDACTED.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]),
      censor: '***',
    },
  }
  return to === undefined ? pino(options) : pino(options, to)
}
