import { formatDuration } from '@redrive/core'
import type { RedriveEvent } from '@redrive/runtime'

type Level = 'info' | 'warn' | 'error'
type Fields = Readonly<Record<string, unknown>>

/** Writes one line in logfmt: `level=warn event=breaker_changed from=closed to=open`. */
export function log(level: Level, event: string, fields: Fields = {}): void {
  const known = Object.entries({ level, event, ...fields }).filter(
    ([, value]) => value !== undefined,
  )
  console.log(known.map(([name, value]) => `${name}=${shown(value)}`).join(' '))
}

function shown(value: unknown): string {
  const text = value instanceof Error ? value.message : String(value)
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text)
}

/** A listener for `onEvent` that logs important events. The profile service has a longer one. */
export function logEvent(event: RedriveEvent): void {
  const { type, source } = event
  switch (type) {
    case 'attempt_failed': {
      const { deliveryId: id, class: kind, code, counted } = event
      return log('warn', type, { queue: source, id, class: kind, code, counted })
    }
    case 'breaker_changed': {
      const { from, to, until, at } = event
      const wait = until === undefined ? undefined : formatDuration(until - at)
      return log('warn', type, { queue: source, from, to, for: wait })
    }
    case 'inline_retry':
      return log('info', 'retry', {
        queue: source,
        id: event.deliveryId,
        in: formatDuration(event.delayMs),
      })
    case 'enacted':
      return logEnacted(event)
    case 'connection_lost':
    case 'hand_off_stuck':
    case 'user_code_failed':
      return log('error', type, { queue: source, error: event.error })
    default:
  }
}

function logEnacted(event: Extract<RedriveEvent, { type: 'enacted' }>): void {
  const { source: queue, deliveryId: id, decision, enactment } = event
  if (enactment.kind !== 'done') return log('warn', `hand_off_${enactment.kind}`, { queue, id })
  const { reason } = decision
  if (decision.kind === 'retryAt') {
    return log('info', 'retry', { queue, id, in: formatDuration(decision.delayMs), reason })
  }
  if (reason === 'already_handled') return log('info', reason, { queue, id })
  if (enactment.destination === 'dead_letter' || enactment.destination === 'quarantine') {
    log('error', enactment.destination, { queue, id, reason })
  }
}
