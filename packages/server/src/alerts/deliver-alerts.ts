import { createHash } from 'node:crypto'
import type { Alert } from '@redrive/catalog'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import type { Pool } from 'pg'
import { inTransaction, runOn, type RunSql } from '../database.ts'
import { CLAIM, DELETE_OLD, RECORD_ACTIVE, RETURN_CLAIM, SET_DELIVERED } from './statements.ts'

/** A webhook that receives alerts. */
export interface AlertTarget {
  /** Identifies the target. The URL is often a secret, so only its hash is stored. */
  readonly url: string
  /** Opens a new sink for each delivery, so that deliveries do not share connections. */
  open(): Sink
}

export interface AlertingOptions {
  readonly pool: Pool
  readonly listeners: readonly AlertTarget[]
  /** URL of the server, for the receivers of alerts. */
  readonly publicUrl: string
}

/**
 * Delivers each new alert once to every target. Each process calls it every minute with the active alerts.
 * Rejects when a delivery failed; the next call delivers the rest.
 */
export type DeliverAlerts = (alerts: readonly Alert[]) => Promise<void>

/** 10 s for a delivery, including the DNS lookup. */
const SEND_MS = 10_000

export function createAlerting(options: AlertingOptions): DeliverAlerts {
  return async (alerts) => {
    const deliveries = options.listeners.map((target) => deliverTo(options, target, alerts))
    const results = await Promise.allSettled(deliveries)
    const errors = results.flatMap((one) =>
      one.status === 'rejected' ? [one.reason as unknown] : [],
    )
    if (errors.length > 1)
      throw new AggregateError(errors, 'Cannot deliver alerts to several targets.')
    if (errors.length === 1) throw errors[0]
  }
}

async function deliverTo(
  { pool, publicUrl }: AlertingOptions,
  alertTarget: AlertTarget,
  alerts: readonly Alert[],
): Promise<void> {
  const target = hash(alertTarget.url)
  const byKey = new Map(alerts.map((alert) => [keyOf(alert), alert]))
  await inTransaction(pool, (run) => recordActive(run, target, [...byKey.keys()]))
  for (;;) {
    const claimed = await claim(runOn(pool), target, [...byKey.keys()])
    if (claimed.length === 0) return
    const claimedAlerts = claimed.map(({ key, id }) => ({ id, ...(byKey.get(key) as Alert) }))
    await postClaimed(pool, target, claimed, () => send(alertTarget, publicUrl, claimedAlerts))
  }
}

interface ClaimedAlert {
  readonly key: string
  readonly id: string
}

async function recordActive(run: RunSql, target: string, keys: readonly string[]): Promise<void> {
  await run(RECORD_ACTIVE, [target, keys])
  await run(DELETE_OLD, [target])
}

const claim = (run: RunSql, target: string, keys: readonly string[]) =>
  run<ClaimedAlert>(CLAIM, [target, keys])

async function postClaimed(
  pool: Pool,
  target: string,
  claimed: readonly ClaimedAlert[],
  post: () => Promise<void>,
): Promise<void> {
  const update = (statement: string) =>
    runOn(pool)(statement, [target, claimed.map(({ id }) => id)])
  try {
    await post()
  } catch (error) {
    await update(RETURN_CLAIM)
    throw error
  }
  await update(SET_DELIVERED)
}

async function send(
  target: AlertTarget,
  publicUrl: string,
  alerts: readonly (Alert & { readonly id: string })[],
): Promise<void> {
  const sink = target.open()
  try {
    const signal = AbortSignal.timeout(SEND_MS)
    await sink.send([eventOf(publicUrl, alerts)], { signal })
  } finally {
    await sink.close()
  }
}

function eventOf(
  publicUrl: string,
  alerts: readonly (Alert & { readonly id: string })[],
): OutboundEvent {
  const at = Date.now()
  // The same for the same alerts, so that a receiver can detect a repeated delivery.
  const ids = alerts.map((alert) => alert.id).sort()
  const id = hash(ids.join())
  const type = 'redrive.alerts'
  const bytes = Buffer.from(JSON.stringify({ type, at, server: publicUrl, alerts }))
  const contentType = 'application/json'
  return { id, key: id, type, lane: undefined, at, bytes, contentType, headers: {} }
}

/** Identifies an alert. It does not contain the numbers, which change while the alert is active. */
const keyOf = (alert: Alert): string =>
  JSON.stringify([alert.kind, alert.source, 'group' in alert ? alert.group : null])

/** Hashes a text. URLs are stored as hashes, because they are often secrets. */
const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)
