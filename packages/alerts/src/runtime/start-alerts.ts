import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import { type Clock, type Logger, systemClock } from '@redrive/runtime'
import { watchAll } from '@redrive/runtime/internal'
import type { AlertChannel } from '../channel.ts'
import { ActiveAlerts } from './active.ts'
import { PROCESS_ALERT_KINDS, type ProcessAlertKind } from './condition.ts'
import { Outbox } from './outbox.ts'
import { ConsumerStates } from './state.ts'
import { transitionOf } from './transitions.ts'

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
  /** Maximum number of messages with new alerts to one channel in an hour (1–10,000, default 60). */
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
  const { clock = systemClock, logger = console } = options
  const outboxes = channels.map((channel) => {
    const onError = (error: unknown) =>
      logger.error(`Cannot send alerts to ${channel.name}: ${String(error)}`)
    return new Outbox({ channel, perHour, onError })
  })
  const alerts = new ActiveAlerts(quietMs, (notice) => {
    for (const outbox of outboxes) outbox.add(notice)
  })
  const states = new ConsumerStates()
  const endWatch = watchAll((event) => {
    const transition = transitionOf(event)
    if (transition === undefined) return
    const { kind } = Object.values(transition)[0] as { readonly kind: ProcessAlertKind }
    if (kinds.has(kind)) alerts.apply(transition, clock.now())
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
