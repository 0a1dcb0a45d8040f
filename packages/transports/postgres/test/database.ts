import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { createDatabase, dropDatabase, poolOn } from '@redrive/dev-support'
import type { Pool, PoolClient } from 'pg'
import { migrate } from '../src/index.ts'
import type { Rig } from './rig.ts'

export interface Database {
  readonly url: string
  readonly pool: Pool
}

/** Creates a separate empty database, for tests that would disturb others. */
export async function emptyDatabase(rig: Rig, url: string): Promise<Database> {
  const own = await createDatabase(url, `redrive_tests_${randomBytes(6).toString('hex')}`)
  rig.atEnd(() => dropDatabase(own))
  const pool = poolOn(own, 10)
  rig.atEnd(() => pool.end())
  return { url: own, pool }
}

/** Creates a separate database with the schema. */
export async function ownDatabase(rig: Rig, url: string): Promise<Database> {
  const database = await emptyDatabase(rig, url)
  await migrate(database.pool)
  return database
}

/** Returns the output of psql, one line per row. Rejects when a statement fails. */
export async function psql(url: string, text: string): Promise<readonly string[]> {
  const asking = promisify(execFile)('psql', ['-XqAt', '-v', 'ON_ERROR_STOP=1', url])
  asking.child.stdin?.end(text)
  const { stdout } = await asking
  return stdout.split('\n').filter((line) => line !== '')
}

/** The cost of a statement. */
export interface Cost {
  /** Number of pages read. */
  readonly buffers: number
  /** Log bytes without full pages, which the first change after a checkpoint writes. */
  readonly walBytes: number
  readonly rows: number
}

const PAGE_BYTES = 8_192

/** Runs the statement and returns its cost. The numbers are exact, because they count this statement only. */
export async function costOf(
  client: Pool | PoolClient,
  text: string,
  values: readonly unknown[],
): Promise<Cost> {
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
    `explain (analyze, buffers, wal, format json) ${text}`,
    [...values],
  )
  const plan = rows[0]?.['QUERY PLAN'][0].Plan ?? {}
  return {
    buffers: (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0),
    walBytes: Math.max(0, (plan['WAL Bytes'] ?? 0) - (plan['WAL FPI'] ?? 0) * PAGE_BYTES),
    rows: plan['Actual Rows'] ?? 0,
  }
}

/** A turn as SQL, for tests that act as a consumer. */
export const TURN_SQL = `
select id::text, token::text from redrive.outbox_turn($1::uuid[], $2::bigint[], $3::jsonb, $4, $5, $6, $7, $8)`

/**
 * Returns the cost of a turn, which is rolled back. The minimum of four runs counts: the first run plans the
 * statements, and so does the first one after an automatic analyze.
 */
export async function costOfTurn(pool: Pool, queue: string, options: TurnOptions): Promise<Cost> {
  const client = await pool.connect()
  const once = async () => {
    await client.query('begin')
    const cost = await costOf(client, TURN_SQL, turnValues(queue, options))
    await client.query('rollback')
    return cost
  }
  try {
    const costs: Cost[] = []
    for (let time = 0; time < 4; time++) costs.push(await once())
    return costs.toSorted((one, other) => one.buffers - other.buffers)[0] as Cost
  } finally {
    client.release()
  }
}

export interface TurnOptions {
  readonly done?: readonly Claim[]
  readonly most?: number
  readonly leaseMs?: number
  readonly floor?: string
  /** The lane to start after; absent without lane order. */
  readonly after?: string
}

export interface Claim {
  readonly id: string
  readonly token: string
}

export const turnValues = (
  queue: string,
  { done = [], most = 0, leaseMs = 60_000, floor = '-infinity', after }: TurnOptions,
): unknown[] => [
  done.map(({ id }) => id),
  done.map(({ token }) => token),
  null,
  queue,
  most,
  leaseMs,
  floor,
  after ?? null,
]

/** Runs one turn and returns the claimed rows. */
export async function turn(
  client: Pool | PoolClient,
  queue: string,
  options: TurnOptions,
): Promise<readonly Claim[]> {
  const { rows } = await client.query<Claim>(TURN_SQL, turnValues(queue, options))
  return rows.filter(({ token }) => token !== null)
}

/** Returns the id of an event that was added at that time. */
export function idAt(atMs: number): string {
  const hex = Math.floor(atMs).toString(16).padStart(12, '0')
  const random = randomBytes(10).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6, 18)}`
}

/** Returns the smallest id of that time. */
export const floorAt = (atMs: number): string => {
  const hex = Math.floor(atMs).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}
