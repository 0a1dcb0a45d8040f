import { createHash } from 'node:crypto'
import type { AlertChannel, AlertNotice } from '@redrive/alerts'
import type { Alert } from '@redrive/catalog'
import type { Pool } from 'pg'
import { runOn, type RunSql } from '../database.ts'
import type { AlertContent, DescribeAlert } from './describe.ts'
import {
  CLAIM,
  DELETE_OLD,
  RECORD_ACTIVE,
  RECORD_ENDED,
  RETURN_CLAIM,
  RETURN_MESSAGE,
  SET_DELIVERED,
  TAKE_MESSAGE,
} from './statements.ts'

export interface AlertingOptions {
  readonly pool: Pool
  readonly channels: readonly AlertChannel[]
  readonly describe: DescribeAlert
  /** Maximum number of messages with new alerts to one channel in an hour. */
  readonly perHour: number
}

/**
 * Delivers the begin and the end of each alert once to every channel. Each process calls it every minute with the
 * active alerts, also when there are none. Rejects when a delivery failed; the next call delivers the rest.
 */
export type DeliverAlerts = (alerts: readonly Alert[]) => Promise<void>

/** 10 s for a delivery, including the DNS lookup. */
const SEND_MS = 10_000

export function createAlerting(options: AlertingOptions): DeliverAlerts {
  return async (alerts) => {
    const deliveries = options.channels.map((channel) => deliverTo(options, channel, alerts))
    const results = await Promise.allSettled(deliveries)
    const errors = results.flatMap((one) =>
      one.status === 'rejected' ? [one.reason as unknown] : [],
    )
    if (errors.length > 1)
      throw new AggregateError(errors, 'Cannot deliver alerts to several channels.')
    if (errors.length === 1) throw errors[0]
  }
}

async function deliverTo(
  { pool, describe, perHour }: AlertingOptions,
  channel: AlertChannel,
  alerts: readonly Alert[],
): Promise<void> {
  const target = hash(channel.address)
  const active = new Map(alerts.map((alert) => [keyOf(alert), alert]))
  const keys = [...active.keys()]
  const run = runOn(pool)
  await recordActive(run, target, keys)
  const claimed = (mayBegin: boolean) =>
    run<ClaimedAlert>(CLAIM, [target, keys, channel.batch, mayBegin])
  const deliver = (rows: readonly ClaimedAlert[]) =>
    postClaimed(run, target, channel, rows, (row) => contentOf(row, active, describe))
  // Ends first: they are never limited, so that no incident stays open.
  for (;;) {
    const rows = await claimed(false)
    if (rows.length === 0) break
    await deliver(rows)
  }
  for (;;) {
    const rows = await claimed(true)
    if (rows.length === 0) return
    const [isWithinLimit] = await run(TAKE_MESSAGE, [target, perHour])
    if (isWithinLimit === undefined) return void (await returnClaim(run, target, rows))
    try {
      await deliver(rows)
    } catch (error) {
      await run(RETURN_MESSAGE, [target])
      throw error
    }
  }
}

interface ClaimedAlert {
  readonly key: string
  readonly id: string
  /** What was delivered when the alert began. */
  readonly content: AlertContent | null
  readonly startedAt: number
  readonly endedAt: number | null
}

/** Each statement is its own transaction: a transaction of several could not lock all rows in the order of their keys. */
async function recordActive(run: RunSql, target: string, keys: readonly string[]): Promise<void> {
  await run(RECORD_ACTIVE, [target, keys])
  await run(RECORD_ENDED, [target])
  await run(DELETE_OLD, [target])
}

const returnClaim = (run: RunSql, target: string, rows: readonly ClaimedAlert[]) =>
  run(RETURN_CLAIM, [target, rows.map(({ id }) => id)])

async function contentOf(
  { key, content, endedAt }: ClaimedAlert,
  active: ReadonlyMap<string, Alert>,
  describe: DescribeAlert,
): Promise<AlertContent> {
  return endedAt !== null && content !== null ? content : describe(active.get(key) as Alert)
}

async function postClaimed(
  run: RunSql,
  target: string,
  channel: AlertChannel,
  rows: readonly ClaimedAlert[],
  describe: (row: ClaimedAlert) => Promise<AlertContent>,
): Promise<void> {
  try {
    const contents = await Promise.all(rows.map(describe))
    const notices = rows.map((row, place) => noticeOf(row, contents[place] as AlertContent))
    await channel.send(notices, { signal: AbortSignal.timeout(SEND_MS) })
    await run(SET_DELIVERED, [
      target,
      rows.map(({ id }) => id),
      contents.map((one) => JSON.stringify(one)),
    ])
  } catch (error) {
    await returnClaim(run, target, rows)
    throw error
  }
}

function noticeOf({ id, startedAt, endedAt }: ClaimedAlert, content: AlertContent): AlertNotice {
  const status = endedAt === null ? 'firing' : 'resolved'
  const [begin, at] = [startedAt, endedAt ?? startedAt].map(Math.round) as [number, number]
  return { ...content, id, status, startedAt: begin, at }
}

/** Identifies an alert. It does not contain the numbers, which change while the alert is active. */
const keyOf = (alert: Alert): string =>
  JSON.stringify([alert.kind, alert.source, 'group' in alert ? alert.group : null])

/** Hashes a text. Addresses are stored as hashes, because they are often secrets. */
const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)
