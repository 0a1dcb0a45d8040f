import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import { hiding } from '@redrive/core/internal'
import { type Clock, type Logger, systemClock } from '@redrive/runtime'
import { watchAll } from '@redrive/runtime/internal'
import type { AlertChannel } from '../channel.ts'
import type { AlertNotice } from '../notice.ts'
import { ActiveAlerts } from './active.ts'
import { PROCESS_ALERT_KINDS, type ProcessAlertKind } from './condition.ts'
import { Outbox } from './outbox.ts'
import { ConsumerStates } from './state.ts'
import { occurrenceOf } from './occurrences.ts'

export interface AlertsOptions {
  /** Where alerts are sent. */
  readonly channels: readonly AlertChannel[]
  /** Kinds of alerts to send. Default: all. */
  readonly kinds?: readonly ProcessAlertKind[]
  /** A message that fails for this time without a known cause is an alert. Default '30m'. */
  readonly unprovenAfter?: Duration
  /** A consumer without a partition for this time is an alert. Default '5m'. */
  readonly unassignedAfter?: Duration
  /** A consumer without a connection for this time is an alert. Default '2m'. */
  readonly disconnectedAfter?: Duration
  /** A dead letter and other single events end as alerts after this time without another one. Default '15m'. */
  readonly quiet?: Duration
  /**
   * Hides personal data and secrets in a text of an error. Default: hides e-mail addresses, card numbers, IBANs,
   * tokens and private keys. `(text) => text` sends errors as they are.
   */
  readonly redact?: (text: string) => string
  /**
   * Maximum number of messages with new alerts to one channel in an hour (1–10,000, default 60). Critical alerts and
   * ends are not limited.
   */
  readonly perHour?: number
  /** Reports channels that do not accept a message. Default: `console`. */
  readonly logger?: Pick<Logger, 'error'>
  /** Time of checks and durations. Default: the system clock. */
  readonly clock?: Clock
}

/** The alerts of this process. */
export interface Alerts {
  /** Sends what waits and stops. Active alerts are not reported as ended. */
  close(): Promise<void>
}

/** 5 s: all changes in this time are one message. It is short compared with the time that people need. */
const CHECK_MS = 5_000
const PER_HOUR = 60
const PER_HOUR_MAX = 10_000

/**
 * Sends alerts about all consumers and emitters of this process. It needs no server. The state is in memory: other
 * processes send their own alerts, and a restart forgets which ones are active.
 */
export function startAlerts(options: AlertsOptions): Alerts {
  const { channels, kinds, limits, quietMs, perHour } = resolved(options)
  const { clock = systemClock, logger = console, redact = hiding() } = options
  const outboxes = channels.map((channel) => {
    const onError = (error: unknown) =>
      logger.error(`Cannot send alerts to ${channel.name}: ${String(error)}`)
    return new Outbox({ channel, perHour, onError })
  })
  const alerts = new ActiveAlerts(quietMs, (notice) => {
    const redacted = redactedNotice(notice, redact, logger)
    for (const outbox of outboxes) outbox.add(redacted)
  })
  const states = new ConsumerStates()
  const endWatch = watchAll((event) => {
    const occurrence = occurrenceOf(event)
    if (occurrence === undefined || !kinds.has(occurrence.condition.kind)) return
    alerts.occur(occurrence, clock.now())
  })
  const check = () => {
    const now = clock.now()
    const held = states.read(now, limits).filter(({ kind }) => kinds.has(kind))
    alerts.check(held, now)
    return Promise.all(outboxes.map((outbox) => outbox.send(now)))
  }
  let cancel = () => {}
  const next = () => {
    const onTime = () => {
      void check()
      next()
    }
    cancel = clock.after(CHECK_MS, onTime, { isBackground: true })
  }
  next()
  return {
    async close() {
      cancel()
      endWatch()
      await check()
      await Promise.all(channels.map((channel) => channel.close()))
    },
  }
}

/** Returns the alert with its texts redacted. A text that cannot be redacted is hidden. */
function redactedNotice(
  notice: AlertNotice,
  redact: (text: string) => string,
  logger: Pick<Logger, 'error'>,
): AlertNotice {
  const { summary, facts } = notice
  const safe = (text: string) => {
    try {
      return redact(text)
    } catch (error) {
      logger.error(`Cannot redact a text of an alert: ${String(error)}`)
      return '[hidden]'
    }
  }
  const error = facts.error === undefined ? {} : { error: safe(facts.error) }
  return { ...notice, summary: safe(summary), facts: { ...facts, ...error } }
}

function resolved(options: AlertsOptions) {
  const { channels, kinds = PROCESS_ALERT_KINDS, perHour = PER_HOUR } = options
  const problems: string[] = []
  const ms = (
    field: 'unprovenAfter' | 'unassignedAfter' | 'disconnectedAfter' | 'quiet',
    normal: Duration,
  ) => {
    const value = parseDuration(options[field] ?? normal)
    if (value === undefined) problems.push(`${field}: expected a duration such as '${normal}'`)
    return value ?? 0
  }
  const limits = {
    unprovenMs: ms('unprovenAfter', '30m'),
    unassignedMs: ms('unassignedAfter', '5m'),
    disconnectedMs: ms('disconnectedAfter', '2m'),
  }
  const quietMs = ms('quiet', '15m')
  if (channels.length === 0) problems.push('channels: expected at least one channel')
  const unknown = kinds.filter((kind) => !PROCESS_ALERT_KINDS.includes(kind))
  if (unknown.length > 0) {
    problems.push(
      `kinds: expected some of ${PROCESS_ALERT_KINDS.join(', ')}, got ${unknown.join(', ')}`,
    )
  }
  if (!Number.isInteger(perHour) || perHour < 1 || perHour > PER_HOUR_MAX) {
    problems.push(`perHour: expected a whole number from 1 to ${PER_HOUR_MAX}, got ${perHour}`)
  }
  if (problems.length > 0) {
    const message = `The options of startAlerts() are invalid:\n- ${problems.join('\n- ')}`
    throw new RedriveError('POLICY_INVALID', message, { problems })
  }
  return { channels, kinds: new Set(kinds), limits, quietMs, perHour }
}
