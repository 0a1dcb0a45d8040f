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

/** An empty database of the test's own, for what would disturb others in a shared one. */
export async function emptyDatabase(rig: Rig, url: string): Promise<Database> {
  const own = await createDatabase(url, `redrive_tests_${randomBytes(6).toString('hex')}`)
  rig.atEnd(() => dropDatabase(own))
  const pool = poolOn(own, 10)
  rig.atEnd(() => pool.end())
  return { url: own, pool }
}

/** The same with the schema in it. */
export async function ownDatabase(rig: Rig, url: string): Promise<Database> {
  const database = await emptyDatabase(rig, url)
  await migrate(database.pool)
  return database
}

/** What psql prints, one line for each row. A failed statement rejects. */
export async function psql(url: string, text: string): Promise<readonly string[]> {
  const asking = promisify(execFile)('psql', ['-XqAt', '-v', 'ON_ERROR_STOP=1', url])
  asking.child.stdin?.end(text)
  const { stdout } = await asking
  return stdout.split('\n').filter((line) => line !== '')
}

/** What running a statement cost the server. */
export interface Cost {
  /** Pages of the database that were looked at. */
  readonly buffers: number
  /** Without pages that are written whole because it is the first change after a checkpoint. */
  readonly walBytes: number
  readonly rows: number
}

const PAGE_BYTES = 8_192

/** Runs the statement and counts: exact whatever else goes on, because it is counted for this one alone. */
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

/** A turn as SQL, for what a test does in the consumer's place. */
export const TURN_SQL = `
select id::text, token::text from redrive.outbox_turn($1::uuid[], $2::bigint[], $3::jsonb, $4, $5, $6, $7, $8)`

/**
 * What a turn costs, undone. The cheapest of four: the first on a connection makes the plans, and so
 * does the first after the table was analyzed, which the server does whenever it likes.
 */
export async function costOfTurn(pool: Pool, queue: string, parts: TurnParts): Promise<Cost> {
  const client = await pool.connect()
  const once = async () => {
    await client.query('begin')
    const cost = await costOf(client, TURN_SQL, turnValues(queue, parts))
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

export interface TurnParts {
  readonly done?: readonly Claim[]
  readonly most?: number
  readonly leaseMs?: number
  readonly floor?: string
  /** Absent: without regard to lanes. */
  readonly after?: string
}

export interface Claim {
  readonly id: string
  readonly token: string
}

export const turnValues = (
  queue: string,
  { done = [], most = 0, leaseMs = 60_000, floor = '-infinity', after }: TurnParts,
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

/** One turn; answers what was taken. */
export async function turn(
  client: Pool | PoolClient,
  queue: string,
  parts: TurnParts,
): Promise<readonly Claim[]> {
  const { rows } = await client.query<Claim>(TURN_SQL, turnValues(queue, parts))
  return rows.filter(({ token }) => token !== null)
}

/** The id of an event that was added at that moment. */
export function idAt(atMs: number): string {
  const hex = Math.floor(atMs).toString(16).padStart(12, '0')
  const random = randomBytes(10).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6, 18)}`
}

/** The smallest id of that moment. */
export const floorAt = (atMs: number): string => {
  const hex = Math.floor(atMs).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}
