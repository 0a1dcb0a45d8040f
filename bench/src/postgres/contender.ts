// One candidate in its own database: filled before each sample, counted after it.
import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import type { Pool } from 'pg'
import { failing, type Handler, succeeding, Tally } from '../handlers.ts'
import type { Candidate } from '../harness.ts'
import { patiently } from '../patience.ts'
import { type Database, emptied, ownDatabase, undisturbed, withoutAutovacuum } from './database.ts'

/** What a candidate gets to work with. */
export interface Stage {
  readonly database: Database
  readonly handler: Handler
  readonly fate: Fate
}

/** What happens to every message of a sample: one attempt, and then this. */
export type Fate = 'done' | 'failed'

/** Whatever handles: connected once, receiving only during a sample. */
export interface Contender {
  readonly table: string
  readonly rows: RowConditions
  /** Puts `count` messages of 1 KB into the table. */
  fill(count: number): Promise<void>
  start(): Promise<void> | void
  /** Stops receiving, and comes back when all that was handled is written. */
  stop(): Promise<void> | void
  close(): Promise<void>
}

interface RowConditions {
  /** The messages of the sample. Default: all rows. */
  readonly own?: string
  /** Undefined: those are deleted. */
  readonly done: string | undefined
  /** Given up, with its error. */
  readonly failed: string
}

export interface Entrant {
  readonly name: string
  readonly open: (stage: Stage) => Promise<Contender>
  /** Untimed, before each sample: leaves `count` messages in the table. Default: only them, analyzed. */
  readonly prepare?: (contender: Contender, pool: Pool, count: number) => Promise<void>
}

/** The first is what the others are compared with. */
export type Entrants = readonly [Entrant, ...Entrant[]]

/** Opens all or none: a failure halfway must not leave databases behind. */
export async function openAll(entrants: readonly Entrant[], fate: Fate): Promise<Candidate[]> {
  const opened: Candidate[] = []
  try {
    for (const entrant of entrants) opened.push(await inItsOwnDatabase(entrant, fate))
    return opened
  } catch (error) {
    for (const candidate of opened) await candidate.close?.()
    throw error
  }
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
      // The garbage of filling is ours, not the candidate's. Only the young: a full collection also
      // throws away compiled code, and every sample would begin cold.
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
