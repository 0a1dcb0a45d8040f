import type { Policy } from '@redrive/core'
import type { Clock } from '../clock.ts'
import { type RedriveEvent, watchAll, watchSource } from '../events.ts'
import { warnOnFailure } from '../warn-on-failure.ts'
import { LineLimit } from './line-limit.ts'
import { type EventOf, kindOf, type Line, lineOf } from './lines.ts'
import type { Logger } from './logger.ts'
import { countOf, oneLine } from './text.ts'

/** A consumer whose events are logged. */
interface LogUser {
  /** Name of the consumer. */
  readonly handler: string
  /** Name of its dependency. */
  readonly dependency: string
  readonly policy: Policy
}

interface Log {
  readonly end: () => void
  /** The consumers of the source, in the order of their start. */
  readonly users: Set<LogUser>
}

/** What writes to one logger. */
interface LogsOfLogger {
  /** By source. Consumers of a source that share a logger have one log: each event is written once. */
  readonly bySource: Map<string, Log>
  /** Events of other sources that are written: several logs may have their dependency. */
  readonly written: WeakSet<RedriveEvent>
}

const logs = new WeakMap<Logger, LogsOfLogger>()

interface LogOptions<Target = Logger | 'off'> extends LogUser {
  readonly source: string
  readonly clock: Clock
  readonly logger: Target
}

/** Logs what a consumer reports, one line each. Returns a function that ends it. */
export function logConsumer(options: LogOptions): () => void {
  const { source, clock, logger, handler, dependency, policy } = options
  if (logger === 'off') return () => undefined
  const ofLogger = logs.get(logger) ?? { bySource: new Map<string, Log>(), written: new WeakSet() }
  logs.set(logger, ofLogger)
  const { bySource } = ofLogger
  const user: LogUser = { handler, dependency, policy }
  const users = bySource.get(source)?.users ?? new Set()
  users.add(user)
  const log = bySource.get(source) ?? {
    users,
    end: startLog({ source, clock, logger, users, ofLogger }),
  }
  bySource.set(source, log)
  return () => {
    log.users.delete(user)
    if (log.users.size > 0) return
    log.end()
    bySource.delete(source)
  }
}

/** 600 characters: an error of 200 characters, two names and the sentence around them. */
const MAX_LINE = 600
/** 30 s: a consumer that joins a group has no partition until the others have released some. */
const UNASSIGNED_MS = 30_000
/** 1 min: the next line of a kind reports the omitted ones. Without a next line, they are reported after this time. */
const REST_MS = 60_000
const UNASSIGNED: Line = {
  level: 'warn',
  text: () =>
    'No partition is assigned to this consumer: others of its group have all of them. It consumes nothing.',
}

interface StartOptions {
  readonly source: string
  readonly clock: Clock
  readonly logger: Logger
  readonly users: ReadonlySet<LogUser>
  readonly ofLogger: LogsOfLogger
}

function startLog({ source, clock, logger, users, ofLogger }: StartOptions): () => void {
  const limit = new LineLimit()
  /** The last omitted line of each kind. */
  const omittedLines = new Map<string, Line>()
  let cancelRest: (() => void) | undefined
  let lastFailed: EventOf<'attempt_failed'> | undefined
  /** Ends the wait of a consumer without partitions, by its transport. */
  const cancels = new Map<object | undefined, () => void>()
  const log = (kind: string, line: Line | undefined) => {
    if (line === undefined) return
    const omitted = limit.take(kind, clock.now())
    if (omitted === undefined) {
      omittedLines.set(kind, line)
      cancelRest ??= clock.after(REST_MS, writeRest, { isBackground: true })
      return
    }
    omittedLines.delete(kind)
    write(line, omitted)
  }
  const write = (line: Line, omitted: number) => {
    const rest = omitted === 0 ? '' : ` (${countOf(omitted, 'similar line')} omitted)`
    // Ids, sources and headers come from producers.
    const text = `${oneLine(`${source}: ${line.text()}`, MAX_LINE)}${rest}`
    warnOnFailure('RedriveLogger', () => logger[line.level](text))
  }
  /** Writes the last omitted line of each kind, with the number of those before it. */
  const writeRest = () => {
    cancelRest = undefined
    for (const [kind, line] of omittedLines) {
      write(line, limit.takeOmitted(kind, clock.now()) - 1)
    }
    omittedLines.clear()
  }
  const describe = (event: RedriveEvent) => {
    const policy = policyOf(event, users)
    if (policy !== undefined) log(kindOf(event), lineOf(event, { lastFailed, policy }))
  }
  const end = watchSource(source, (event, transport) => {
    if (event.type === 'attempt_failed') lastFailed = event
    if (event.type === 'assignment_changed') {
      cancels.get(transport)?.()
      cancels.delete(transport)
      const warn = () => log(event.type, UNASSIGNED)
      if (event.assigned === 0) cancels.set(transport, clock.after(UNASSIGNED_MS, warn))
    }
    describe(event)
  })
  const endOther = watchAll((event) => {
    if (!isOfOther(event, source, users)) return
    if (event.type === 'attempt_failed') lastFailed = event
    if (event.type !== 'breaker_changed') return
    const { bySource, written } = ofLogger
    if (bySource.has(event.source) || written.has(event)) return
    written.add(event)
    describe(event)
  })
  return () => {
    for (const cancel of cancels.values()) cancel()
    end()
    endOther()
    cancelRest?.()
    writeRest()
  }
}

/** Returns whether another source reports the event, and a consumer of this log has the same dependency. */
function isOfOther(
  event: RedriveEvent,
  source: string,
  users: ReadonlySet<LogUser>,
): event is EventOf<'attempt_failed' | 'breaker_changed'> {
  if (event.type !== 'attempt_failed' && event.type !== 'breaker_changed') return false
  if (event.source === source) return false
  for (const { dependency } of users) if (dependency === event.dependency) return true
  return false
}

/**
 * Returns the policy of the consumer that an event is about. Events that do not name their consumer, and those of another
 * source, get that of the first consumer with their dependency, or of the first.
 */
function policyOf(event: RedriveEvent, users: ReadonlySet<LogUser>): Policy | undefined {
  if (users.size === 1) return users.values().next().value?.policy
  const all = [...users]
  const dependency = 'dependency' in event ? event.dependency : undefined
  const handler = 'handler' in event ? event.handler : undefined
  const sameDependency = all.filter((user) => user.dependency === dependency)
  const user = sameDependency.find((one) => one.handler === handler) ?? sameDependency[0] ?? all[0]
  return user?.policy
}
