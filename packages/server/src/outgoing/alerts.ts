import { createHash } from 'node:crypto'
import type { Alert } from '@redrive/catalog'
import type { OutboundEvent, Sink } from '@redrive/runtime'
import type { Pool } from 'pg'
import { inTransaction, runOn, type Run } from '../database.ts'

/** Someone who is told. */
export interface Listener {
  /** Tells them apart. It often is a secret, so only its hash is kept. */
  readonly url: string
  /** A sink of its own for each time: no connection that was made for another is used again. */
  open(): Sink
}

export interface AlertingOptions {
  readonly pool: Pool
  readonly listeners: readonly Listener[]
  /** Where the server is, for whoever is told. */
  readonly publicUrl: string
}

/**
 * Told what holds, once a minute by each process; tells everyone once for each time that something begins
 * to hold. Rejects when one could not be told: asked again, it tells what is left.
 */
export type TellAlerts = (alerts: readonly Alert[]) => Promise<void>

/** 5 min not seen: it is over. Alerts are looked at every minute, and a restart takes a while. */
const OVER_MS = 300_000
/** 1 min: longer than any post may take. Who died with a claim has it no longer then. */
const CLAIM_MS = 60_000
/** 10 s to be told, from the first question for an address on. */
const SEND_MS = 10_000
/** 100 in one post: more at once are one trouble and not many. The rest goes in the next. */
const POST_MAX = 100
/** A day: what does not hold any more is forgotten. */
const FORGET = '1 day'

export function createAlerting(options: AlertingOptions): TellAlerts {
  return async (alerts) => {
    const told = options.listeners.map((listener) => tell(options, listener, alerts))
    const results = await Promise.allSettled(told)
    const errors = results.flatMap((one) =>
      one.status === 'rejected' ? [one.reason as unknown] : [],
    )
    if (errors.length > 1) throw new AggregateError(errors, 'Several could not be told of alerts.')
    if (errors.length === 1) throw errors[0]
  }
}

async function tell(
  { pool, publicUrl }: AlertingOptions,
  listener: Listener,
  alerts: readonly Alert[],
): Promise<void> {
  const target = hash(listener.url)
  const byKey = new Map(alerts.map((alert) => [keyOf(alert), alert]))
  await inTransaction(pool, (run) => hold(run, target, [...byKey.keys()]))
  for (;;) {
    const claimed = await claim(runOn(pool), target, [...byKey.keys()])
    if (claimed.length === 0) return
    const held = claimed.map(({ key, id }) => ({ id, ...(byKey.get(key) as Alert) }))
    await postClaimed(pool, target, claimed, () => send(listener, publicUrl, held))
  }
}

interface Claimed {
  readonly key: string
  readonly id: string
}

/** In the order of keys, so that two of us do not wait for each other in a circle. */
const HOLD = `insert into redrive_server.alert as held (target, key)
select $1, key from unnest($2::text[]) as key order by key
on conflict (target, key) do update set held_at = now(),
  id = case when ${isOver('held')} then gen_random_uuid() else held.id end,
  told_at = case when ${isOver('held')} then null else held.told_at end`

function isOver(table: string): string {
  return `${table}.held_at < now() - ${OVER_MS} * interval '1 ms'`
}

async function hold(run: Run, target: string, keys: readonly string[]): Promise<void> {
  await run(HOLD, [target, keys])
  await run(
    `delete from redrive_server.alert where target = $1 and held_at < now() - interval '${FORGET}'`,
    [target],
  )
}

/** Whoever has the claim tells. */
const CLAIM = `update redrive_server.alert set claimed_until = now() + ${CLAIM_MS} * interval '1 ms'
where (target, key) in (
  select target, key from redrive_server.alert
  where target = $1 and key = any($2) and told_at is null and coalesce(claimed_until < now(), true)
  order by key limit ${POST_MAX} for update skip locked)
returning key, id`

const claim = (run: Run, target: string, keys: readonly string[]) =>
  run<Claimed>(CLAIM, [target, keys])

async function postClaimed(
  pool: Pool,
  target: string,
  claimed: readonly Claimed[],
  work: () => Promise<void>,
): Promise<void> {
  const set = (what: string) =>
    runOn(pool)(`update redrive_server.alert set ${what} where target = $1 and id = any($2)`, [
      target,
      claimed.map(({ id }) => id),
    ])
  try {
    await work()
  } catch (error) {
    await set('claimed_until = null')
    throw error
  }
  await set('told_at = now(), claimed_until = null')
}

async function send(
  listener: Listener,
  publicUrl: string,
  alerts: readonly (Alert & { readonly id: string })[],
): Promise<void> {
  const sink = listener.open()
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
  // The same for the same alerts: who is told twice can see it.
  const ids = alerts.map((alert) => alert.id).sort()
  const id = hash(ids.join())
  const type = 'redrive.alerts'
  const bytes = Buffer.from(JSON.stringify({ type, at, server: publicUrl, alerts }))
  const contentType = 'application/json'
  return { id, key: id, type, lane: undefined, at, bytes, contentType, headers: {} }
}

/** What makes it the same alert although its numbers change. */
const keyOf = (alert: Alert): string =>
  JSON.stringify([alert.kind, alert.source, 'group' in alert ? alert.group : null])

/** A URL often is a secret, so it is not kept as it is. */
const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)
