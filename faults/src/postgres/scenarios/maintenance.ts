import { setTimeout as after } from 'node:timers/promises'
import { maintain, type MaintenanceResult } from '@redrive/postgres'
import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { addLateness, judgedOf, latenessAt } from '../../evidence/lateness.ts'
import { POLICY } from '../../harness/consumer-options.ts'
import { openDatabase } from '../../harness/effects.ts'
import { ready } from '../../harness/fleet.ts'
import { atScale, type ByScale, type Scale } from '../../harness/scenario.ts'
import { LONG_LEASE_MS, type PostgresScenario, type PostgresWorld } from '../world.ts'

const RATE = 500
/** The first sixth of the messages is sent without maintenance, to compare with. */
const SHARE_ALONE = 6
/**
 * 100 ms for the slowest add: the time that a lock of the maintenance and the disk may add; three times that on a busy
 * machine, where the first sixth is too short to see the slowest.
 */
const MORE_MS: ByScale<number> = { quick: 300, full: 100 }

const QUEUE = 'old'
const RETENTION = { queue: QUEUE, deliveredRetention: '2d', deadLetterRetention: '14d' } as const
/** Old rows are in the days from the third to the tenth before today, which end before the retention. */
const DAYS = { from: 3, to: 10 } as const
/** Rows of one statement; limits its memory. */
const STATEMENT = 500_000
/** 60 s for the day that the reader kept, and for days that autovacuum kept. */
const LAST_MS = 60_000

interface OldRows {
  readonly delivered: number
  readonly dead: number
  /** Delivered, in the default partition: their day has no partition. */
  readonly stray: number
}

const OLD_ROWS: ByScale<OldRows> = {
  quick: { delivered: 200_000, dead: 10_000, stray: 20_000 },
  full: { delivered: 5_000_000, dead: 200_000, stray: 500_000 },
}

export const maintenance: PostgresScenario = {
  name: 'maintenance',
  story: `maintenance removes old days of the table while ${RATE} events per second are added and a reader keeps a day`,
  service: 'postgres',
  messages: { quick: 24 * RATE, full: 720 * RATE },
  async play(world) {
    const { database, messages } = world
    const fleet = world.fleet({
      policy: { ...POLICY, concurrency: 10, adaptiveConcurrency: 'off' },
      lease: LONG_LEASE_MS,
    })
    // Their own maintenance runs at their start, when nothing is old.
    fleet.start()
    fleet.start()
    await ready(fleet, 2)
    await addOldRows(world)
    const alone = Math.ceil(messages / SHARE_ALONE)
    await world.produce({ ratePerSecond: RATE, messages: alone, part: ALONE })
    const end = world.fault('maintenance')
    const endReader = await openReader(world)
    const sent = new AbortController()
    const maintaining = maintainUntil(world, sent.signal)
    await world.produce({ ratePerSecond: RATE, messages: messages - alone, part: MAINTAINED })
    sent.abort()
    await maintaining
    await endReader()
    await removeTheLast(world)
    await measureLeft(world)
    end()
    // The checker knows only the events of the producer.
    await database.pool.query('delete from redrive.outbox where queue = $1', [QUEUE])
    world.heal()
  },
  summarize(evidence) {
    const [alone, maintained] = [addsOf(evidence, ALONE), addsOf(evidence, MAINTAINED)]
    const took = (adds: typeof alone) =>
      `${latenessAt(adds, 99)} ms at p99 and ${latenessAt(adds, 100)} ms at most`
    const removed = `${measured(evidence, 'days dropped')} days dropped, ${measured(evidence, 'rows deleted')} rows deleted`
    return `adds took ${took(alone)} before, ${took(maintained)} during maintenance, ${removed}`
  },
  check: (evidence, { scale }) => [
    ...checkAdds(evidence, atScale(MORE_MS, scale)),
    ...checkLeft(evidence, scale),
  ],
}

const ALONE = '-alone'
const MAINTAINED = '-maintained'

// ---- old rows ---------------------------------------------------------------------------------

/** The time at which a row was added, and reached its end. */
const SOME_DAY = `now() - interval '${DAYS.from} days' - random() * interval '${DAYS.to - DAYS.from} days'`
/** No partition of that day exists. */
const LONG_AGO = `now() - interval '30 days' - random() * interval '5 days'`

const INSERT = (end: 'delivered' | 'failed', time: string) => `
  insert into redrive.outbox (id, queue, status, due_at, created_at, ${end}_at, lease_token, payload)
  select redrive.uuid_v7(at), '${QUEUE}', '${end}', null, at, at, 1, '{}'
  from (select ${time} as at from generate_series(1, $1)) as times`

async function addOldRows(world: PostgresWorld): Promise<void> {
  const { delivered, dead, stray } = atScale(OLD_ROWS, world.scale)
  await world.database.pool.query(
    `select redrive.outbox_make_partition((now() at time zone 'UTC')::date - day)
     from generate_series(${DAYS.from}, ${DAYS.to}) as day`,
  )
  await insert(world, INSERT('delivered', SOME_DAY), delivered)
  await insert(world, INSERT('failed', SOME_DAY), dead)
  await insert(world, INSERT('delivered', LONG_AGO), stray)
}

async function insert(world: PostgresWorld, text: string, count: number): Promise<void> {
  for (let left = count; left > 0; left -= STATEMENT) {
    world.say(`${left} old rows to add`)
    await world.database.pool.query(text, [Math.min(left, STATEMENT)])
  }
}

// ---- maintenance ------------------------------------------------------------------------------

/** Reads a day in a transaction that stays open, so that the day cannot be detached. Returns a function that ends it. */
async function openReader(world: PostgresWorld): Promise<() => Promise<unknown>> {
  const pool = openDatabase(world.database.url, { connections: 1 })
  world.atEnd(() => pool.end())
  const client = await pool.connect()
  let isOpen = true
  const end = async () => {
    if (isOpen) client.release(true)
    isOpen = false
  }
  world.atEnd(end)
  await client.query('begin isolation level repeatable read')
  const { rows } = await client.query<{ name: string }>(
    `select 'redrive.outbox_' || to_char((now() at time zone 'UTC')::date - ${DAYS.from}, 'YYYYMMDD') as name`,
  )
  await client.query(`select count(*) from ${rows[0]?.name}`)
  return end
}

/** Consumers do it once an hour. Here it begins again when it has ended. */
async function maintainUntil(world: PostgresWorld, signal: AbortSignal): Promise<void> {
  do {
    record(world, await maintain(world.database.pool, RETENTION))
    await after(100)
  } while (!signal.aborted)
}

async function removeTheLast(world: PostgresWorld): Promise<void> {
  const { pool } = world.database
  const startedAt = performance.now()
  let skipped: readonly string[]
  do {
    const result = await maintain(pool, RETENTION)
    record(world, result)
    skipped = result.skipped
  } while (skipped.length > 0 && performance.now() - startedAt < LAST_MS)
}

function record({ history }: PostgresWorld, result: MaintenanceResult): void {
  const { partitionsDropped, rowsDeleted } = result
  history.write({ what: 'measured', name: 'days dropped', value: partitionsDropped })
  history.write({ what: 'measured', name: 'rows deleted', value: rowsDeleted })
}

const LEFT = `
select count(*) filter (where status = 'failed')::int as dead, count(*) filter (where status = 'delivered')::int as delivered
from redrive.outbox where queue = $1`

async function measureLeft({ database: { pool }, history }: PostgresWorld): Promise<void> {
  const { rows } = await pool.query<{ dead: number; delivered: number }>(LEFT, [QUEUE])
  for (const [name, value] of Object.entries(rows[0] ?? {}))
    history.write({ what: 'measured', name: `${name} left`, value })
}

// ---- checks -----------------------------------------------------------------------------------

/** Returns the sum of all measurements with this name. */
const measured = ({ entries }: Evidence, name: string): number =>
  entries.reduce(
    (sum, entry) => (entry.what === 'measured' && entry.name === name ? sum + entry.value : sum),
    0,
  )

const addsOf = (evidence: Evidence, part: string) =>
  addLateness(evidence, (id) => id.includes(`${part}/`))

/** Compares the slowest adds of both parts, without those during a stall of the machine. */
function checkAdds(evidence: Evidence, moreMs: number): readonly Violation[] {
  const slowestOf = (part: string) => latenessAt(judgedOf(addsOf(evidence, part), moreMs), 100)
  const most = slowestOf(ALONE) + moreMs
  const slowest = slowestOf(MAINTAINED)
  return slowest <= most ? [] : [violation(`an add took ${slowest} ms, allowed are ${most} ms`)]
}

function checkLeft(evidence: Evidence, scale: Scale): readonly Violation[] {
  const { dead } = atScale(OLD_ROWS, scale)
  const left = {
    dead: measured(evidence, 'dead left'),
    delivered: measured(evidence, 'delivered left'),
  }
  return [
    ...(left.dead === dead ? [] : [violation(`${left.dead} of ${dead} old dead letters are left`)]),
    ...(left.delivered === 0 ? [] : [violation(`${left.delivered} old delivered rows are left`)]),
  ]
}

const violation = (text: string): Violation => ({ rule: 'scenario', text })
