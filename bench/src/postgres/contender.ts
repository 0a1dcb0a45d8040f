// One candidate in a separate database: filled before each sample, counted after it.
import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import type { Pool } from 'pg'
import { failing, type Handler, succeeding, Tally } from '../handlers.ts'
import type { Candidate } from '../harness.ts'
import { openEach } from '../opening.ts'
import { patiently } from '../patience.ts'
import { type Database, emptied, ownDatabase, undisturbed, withoutAutovacuum } from './database.ts'

/** Everything that a candidate needs. */
export interface Stage {
  readonly database: Database
  readonly handler: Handler
  readonly fate: Fate
}

/** The outcome of every message of a sample after one attempt. */
export type Fate = 'done' | 'failed'

/** A program that handles messages: connected once, receiving only during a sample. */
export interface Contender {
  readonly table: string
  readonly rows: RowConditions
  /** Puts `count` messages of 1 KB into the table. */
  fill(count: number): Promise<void>
  start(): Promise<void> | void
  /** Stops receiving; resolves when the results of all handled messages are written. */
  stop(): Promise<void> | void
  close(): Promise<void>
}

interface RowConditions {
  /** Condition for the messages of the sample. Default: all rows. */
  readonly own?: string
  /** Condition for done messages; undefined when they are deleted. */
  readonly done: string | undefined
  /** Condition for dead-lettered messages with their error. */
  readonly failed: string
}

export interface Entrant {
  readonly name: string
  readonly open: (stage: Stage) => Promise<Contender>
  /**
   * Runs untimed before each sample and leaves `count` messages in the table. Default: only these,
   * analyzed.
   */
  readonly prepare?: (contender: Contender, pool: Pool, count: number) => Promise<void>
}

/** Candidates; the others are compared with the first. */
export type Entrants = readonly [Entrant, ...Entrant[]]

/** Opens all candidates, or none if one fails. */
export async function openAll(entrants: readonly Entrant[], fate: Fate): Promise<Candidate[]> {
  return openEach(entrants, (entrant) => inItsOwnDatabase(entrant, fate))
}

async function inItsOwnDatabase(entrant: Entrant, fate: Fate): Promise<Candidate> {
  const database = await ownDatabase()
  try {
    return await candidateIn(database, entrant, fate)
  } catch (error) {
    await database.drop()
    throw error
  }
}

async function candidateIn(
  database: Database,
  { name, open, prepare = prepared }: Entrant,
  fate: Fate,
): Promise<Candidate> {
  const { pool } = database
  const tally = new Tally()
  const handler = fate === 'done' ? succeeding(tally) : failing(tally)
  const contender = await open({ database, handler, fate })
  await withoutAutovacuum(pool, contender.table)

  return {
    name,
    async prepare(count) {
      await prepare(contender, pool, count)
      await undisturbed(pool)
      // Collects the garbage from filling, which is not the candidate's. Only the young generation:
      // a full collection also removes compiled code, and every sample would start cold.
      await nextLoopTurn()
      globalThis.gc?.({ type: 'minor' })
    },
    async run(count) {
      const handled = tally.expect(count)
      await contender.start()
      await patiently(handled, () => `${tally.calls} of ${count} calls`)
      await contender.stop()
    },
    async verify(count) {
      if (tally.calls !== count) throw new Error(`${tally.calls} calls instead of ${count}`)
      await expectRows(pool, contender, fate, count)
    },
    async close() {
      try {
        await contender.close()
      } finally {
        await database.drop()
      }
    },
  }
}

async function expectRows(
  pool: Pool,
  { table, rows }: Contender,
  fate: Fate,
  count: number,
): Promise<void> {
  const { own = 'true', [fate]: ended } = rows
  const counted = await pool.query<{ all: number; ended: number }>(
    `select count(*)::int as all, (count(*) filter (where ${ended ?? 'false'}))::int as ended
    from ${table} where ${own}`,
  )
  const { all = 0, ended: found = 0 } = counted.rows[0] ?? {}
  const expected = ended === undefined ? 0 : count
  if (all !== expected || found !== expected) {
    throw new Error(`${found} of ${all} rows are ${fate} instead of ${expected}`)
  }
}

async function prepared(contender: Contender, pool: Pool, count: number): Promise<void> {
  await emptied(pool, contender.table)
  await contender.fill(count)
  await pool.query(`vacuum analyze ${contender.table}`)
}
