import { createHash } from 'node:crypto'
import { setTimeout as after } from 'node:timers/promises'
import type { AlertChannel } from '@redrive/alerts'
import type { Alert } from '@redrive/catalog'
import type { Pool } from 'pg'
import { runOn, type RunSql } from '../database.ts'
import { deliverTo } from './deliver-to.ts'
import type { DescribeAlert } from './describe.ts'
import {
  DELETE_OLD,
  DELETE_REMOVED,
  DELETE_REMOVED_LIMITS,
  RECORD_ACTIVE,
  RECORD_ENDED,
} from './statements.ts'

export interface AlertingOptions {
  readonly pool: Pool
  readonly channels: readonly AlertChannel[]
  readonly describe: DescribeAlert
  /** Maximum number of messages with new alerts to one channel in an hour. Critical alerts are not limited. */
  readonly perHour: number
  /** Receives each failed delivery. A later call repeats it. */
  readonly onFailure: (channel: AlertChannel, error: unknown) => void
  /** How long a call waits for slow deliveries, in ms (default 30,000). They continue without it. */
  readonly waitMs?: number
}

/**
 * Delivers the begin and the end of each alert once to every channel. Each process calls it every minute with the
 * active alerts, also when there are none. A failed delivery does not reject: the job that calls it would be retried
 * within seconds.
 */
export type DeliverAlerts = (alerts: readonly Alert[]) => Promise<void>

/** 30 s: half of the timeout of the calling job. */
const WAIT_MS = 30_000

export function createAlerting(options: AlertingOptions): DeliverAlerts {
  const { pool, channels, onFailure, waitMs = WAIT_MS } = options
  const run = runOn(pool)
  const targets = new Map(channels.map((channel) => [channel, hash(channel.address)]))
  const running = new Map<AlertChannel, Promise<void>>()
  return async (alerts) => {
    const active = new Map(alerts.map((alert) => [keyOf(alert), alert]))
    await run(DELETE_REMOVED, [[...targets.values()]])
    await run(DELETE_REMOVED_LIMITS, [[...targets.values()]])
    for (const [channel, target] of targets) {
      await recordActive(run, target, [...active.keys()])
      if (running.has(channel)) continue
      const delivery = deliverTo({ ...options, run, channel, target }, active)
        .catch((error: unknown) => onFailure(channel, error))
        .finally(() => running.delete(channel))
      running.set(channel, delivery)
    }
    await atMost(waitMs, Promise.all(running.values()))
  }
}

/** Each statement is its own transaction: a transaction of several could not lock all rows in the order of their keys. */
async function recordActive(run: RunSql, target: string, keys: readonly string[]): Promise<void> {
  await run(RECORD_ACTIVE, [target, keys])
  await run(RECORD_ENDED, [target])
  await run(DELETE_OLD, [target])
}

/** Waits for the work, and no longer than the time. */
async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  const timer = new AbortController()
  const timeout = after(ms, undefined, { signal: timer.signal }).catch(() => undefined)
  await Promise.race([work, timeout])
  timer.abort()
}

/** Identifies an alert. It does not contain the numbers, which change while the alert is active. */
const keyOf = (alert: Alert): string =>
  JSON.stringify([alert.kind, alert.source, 'group' in alert ? alert.group : null])

/** Hashes a text. Addresses are stored as hashes, because they are often secrets. */
const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)
