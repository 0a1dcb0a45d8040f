import type { Clock } from '../clock.ts'
import { addLog, type RedriveEvent } from '../events.ts'
import { LineLimit } from './line-limit.ts'
import { type EventOf, kindOf, lineOf } from './lines.ts'
import type { Logger } from './logger.ts'
import { countOf } from './text.ts'

/** Logs what a consumer reports, one line each. Returns a function that ends it. */
export function logConsumer(source: string, clock: Clock, logger: Logger | 'off'): () => void {
  if (logger === 'off') return () => undefined
  const limit = new LineLimit()
  let lastFailed: EventOf<'attempt_failed'> | undefined
  return addLog(source, logger, (event: RedriveEvent) => {
    if (event.type === 'attempt_failed') lastFailed = event
    const line = lineOf(event, lastFailed)
    if (line === undefined) return
    const omitted = limit.take(kindOf(event), clock.now())
    if (omitted === undefined) return
    const rest = omitted === 0 ? '' : ` (${countOf(omitted, 'similar line')} omitted)`
    write(logger, line.level, `${source}: ${line.text}${rest}`)
  })
}

/** Calls the logger. One that throws must not end the consumer, so the process warns instead. */
function write(logger: Logger, level: keyof Logger, line: string): void {
  try {
    logger[level](line)
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : new Error(String(error)), 'RedriveLogger')
  }
}
