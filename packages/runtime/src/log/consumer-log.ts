import type { Clock } from '../clock.ts'
import { watchSource } from '../events.ts'
import { warnOnFailure } from '../warn-on-failure.ts'
import { LineLimit } from './line-limit.ts'
import { type EventOf, kindOf, type Line, type LineContext, lineOf } from './lines.ts'
import type { Logger } from './logger.ts'
import { countOf, oneLine } from './text.ts'

interface Log {
  readonly end: () => void
  users: number
}

/** The logs by logger and source. Consumers of a source that share a logger have one log: each event is written once. */
const logs = new WeakMap<Logger, Map<string, Log>>()

interface LogOptions<Target = Logger | 'off'> {
  readonly source: string
  readonly clock: Clock
  readonly logger: Target
  readonly policy: LineContext['policy']
}

/** Logs what a consumer reports, one line each. Returns a function that ends it. */
export function logConsumer({ source, clock, logger, policy }: LogOptions): () => void {
  if (logger === 'off') return () => undefined
  const ofLogger = logs.get(logger) ?? new Map<string, Log>()
  logs.set(logger, ofLogger)
  const log = ofLogger.get(source) ?? {
    end: startLog({ source, clock, logger, policy }),
    users: 0,
  }
  ofLogger.set(source, log)
  log.users += 1
  return () => {
    log.users -= 1
    if (log.users > 0) return
    log.end()
    ofLogger.delete(source)
  }
}

/** 600 characters: an error of 200 characters, two names and the sentence around them. */
const MAX_LINE = 600
/** 30 s: a consumer that joins a group has no partition until the others have released some. */
const UNASSIGNED_MS = 30_000
const UNASSIGNED: Line = {
  level: 'warn',
  text: () =>
    'No partition is assigned to this consumer: others of its group have all of them. It consumes nothing.',
}

function startLog({ source, clock, logger, policy }: LogOptions<Logger>): () => void {
  const limit = new LineLimit()
  let lastFailed: EventOf<'attempt_failed'> | undefined
  /** Ends the wait of a consumer without partitions, by its transport. */
  const cancels = new Map<object | undefined, () => void>()
  const log = (kind: string, line: Line | undefined) => {
    if (line === undefined) return
    const omitted = limit.take(kind, clock.now())
    if (omitted === undefined) return
    const rest = omitted === 0 ? '' : ` (${countOf(omitted, 'similar line')} omitted)`
    // Ids, sources and headers come from producers.
    const text = `${oneLine(`${source}: ${line.text()}`, MAX_LINE)}${rest}`
    warnOnFailure('RedriveLogger', () => logger[line.level](text))
  }
  const end = watchSource(source, (event, transport) => {
    if (event.type === 'attempt_failed') lastFailed = event
    if (event.type === 'assignment_changed') {
      cancels.get(transport)?.()
      cancels.delete(transport)
      const warn = () => log(event.type, UNASSIGNED)
      if (event.assigned === 0) cancels.set(transport, clock.after(UNASSIGNED_MS, warn))
    }
    log(kindOf(event), lineOf(event, { lastFailed, policy }))
  })
  return () => {
    for (const cancel of cancels.values()) cancel()
    end()
  }
}
