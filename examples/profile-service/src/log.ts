import { formatDuration } from '@redrive/core'
import type { RedriveEvent } from '@redrive/runtime'

export interface Entry {
  readonly level: 'info' | 'warn' | 'error'
  readonly event: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** Writes one line in logfmt: `at=… level=warn event=breaker_changed from=closed to=open`. */
export function log(level: Entry['level'], event: string, fields: Entry['fields'] = {}): void {
  const all = Object.entries({ at: new Date().toISOString(), level, event, ...fields })
  const known = all.filter(([, value]) => value !== undefined)
  console.log(known.map(([name, value]) => `${name}=${shown(value)}`).join(' '))
}

function shown(value: unknown): string {
  const text = value instanceof Error ? value.message : String(value)
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text)
}

/** A listener for `onEvent`. */
export function logEvent(event: RedriveEvent): void {
  const entry = entryOf(event)
  if (entry !== undefined) log(entry.level, entry.event, entry.fields)
}

/**
 * Returns a log entry for important events. Handled and returned messages get none, because there
 * are many.
 */
export function entryOf(event: RedriveEvent): Entry | undefined {
  switch (event.type) {
    case 'enacted':
      return enacted(event)
    case 'attempt_failed': {
      const { deliveryId: id, attemptNumber: attempt, class: kind, code, counted } = event
      return entry('warn', event.type, { id, attempt, class: kind, code, counted })
    }
    case 'breaker_changed': {
      const { from, to, until, at } = event
      return entry('warn', event.type, { from, to, for: until && formatDuration(until - at) })
    }
    case 'consumer_paused':
      return entry('warn', event.type, { reason: event.reason })
    case 'inline_retry':
      return entry('info', event.type, { id: event.deliveryId, in: formatDuration(event.delayMs) })
    case 'connection_lost':
    case 'hand_off_stuck':
    case 'user_code_failed':
      return entry('error', event.type, { error: event.error })
    default: {
      const { type, at: _, source: __, ...fields } = event
      return entry('info', type, fields)
    }
  }
}

type Enacted = Extract<RedriveEvent, { type: 'enacted' }>

function enacted({ deliveryId: id, decision, enactment }: Enacted): Entry | undefined {
  if (enactment.kind === 'unknown') {
    return entry('warn', 'hand_off_unknown', { id, error: enactment.error })
  }
  switch (decision.kind) {
    case 'retryAt': {
      const { delayMs, reason } = decision
      return entry('info', 'retry', { id, in: formatDuration(delayMs), reason })
    }
    case 'deadLetter':
    case 'quarantine':
    case 'drop': {
      const { class: kind, message } = decision.failure
      const place = enactment.kind === 'done' ? enactment.destination : enactment.kind
      return entry('error', place, { id, reason: decision.reason, class: kind, message })
    }
    default:
      return undefined
  }
}

function entry(level: Entry['level'], event: string, fields: Entry['fields']): Entry {
  return { level, event, fields }
}
