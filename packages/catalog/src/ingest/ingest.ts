import type { DeadLetterSource, DrainedBatch, DrainedDeadLetter } from '@redrive/runtime'
import type { Pool } from 'pg'
import { explained, inTransaction, isDataRefused } from '../database.ts'
import { UnreadableHeaders } from '../wire.ts'
import { Days } from './days.ts'
import { type Entry, entryOf, type KnownSource } from './entry.ts'
import type { ResolvedIngest } from './options.ts'
import { type Refused, refusedOf, storeRefused } from './quarantine.ts'
import { registerSource, storeEntries } from './store.ts'

/** What an ingest did. */
export interface Ingested {
  /** Dead letters that are in the catalog now and were not before. */
  readonly added: number
  /** Those that were in it already: drained again after a crash. */
  readonly known: number
  /** Those that could not be kept as dead letters. */
  readonly quarantined: number
}

/** Drains the source until it has nothing left; each batch is released when it is committed. */
export async function ingestAll(
  pool: Pool,
  source: DeadLetterSource,
  options: ResolvedIngest,
  signal: AbortSignal | undefined,
): Promise<Ingested> {
  const known = await registerSource(pool, options)
  const days = new Days(pool)
  const total = { added: 0, known: 0, quarantined: 0 }
  while (signal?.aborted !== true) {
    const batch = await source.drain({ most: options.batch })
    const { length } = batch.deadLetters
    if (length > 0) {
      const done = await keep(batch, () =>
        storeBatch({ pool, known, options, days }, batch.deadLetters),
      )
      total.added += done.added
      total.known += done.known
      total.quarantined += done.quarantined
    } else {
      await batch.release()
      break
    }
  }
  return total
}

/** Releases what was stored, and leaves in the broker what was not. */
async function keep(batch: DrainedBatch, store: () => Promise<Ingested>): Promise<Ingested> {
  let done: Ingested
  try {
    done = await store()
  } catch (error) {
    await abandon(batch, error)
    throw explained(error)
  }
  await batch.release()
  return done
}

async function abandon(batch: DrainedBatch, because: unknown): Promise<void> {
  try {
    await batch.abandon()
  } catch (error) {
    throw new AggregateError(
      [explained(because), error],
      'The batch could neither be stored nor given back.',
    )
  }
}

interface Work {
  readonly pool: Pool
  readonly known: KnownSource
  readonly options: ResolvedIngest
  readonly days: Days
}

async function storeBatch(work: Work, drained: readonly DrainedDeadLetter[]): Promise<Ingested> {
  const { entries, refused } = sorted(drained, work.options)
  await work.days.make(entries)
  return storeOrSplit(work, entries, refused)
}

/** Those that can be kept, and the others with the reason why not. */
function sorted(drained: readonly DrainedDeadLetter[], options: ResolvedIngest) {
  const entries: Entry[] = []
  const refused: Refused[] = []
  for (const one of drained) {
    const size = one.delivery.bytes.length
    if (size > options.maxPayloadBytes) {
      refused.push(
        refusedOf(one, options, `its body has ${size} bytes, more than ${options.maxPayloadBytes}`),
      )
      continue
    }
    try {
      entries.push(entryOf(one, options))
    } catch (error) {
      if (!(error instanceof UnreadableHeaders)) throw error
      refused.push(refusedOf(one, options, `its headers cannot be kept: ${error.message}`))
    }
  }
  return { entries, refused }
}

/**
 * All in one transaction. When the database refuses a value, the halves are tried by themselves until
 * the one at fault is alone: it is set aside, and holds nobody else up.
 */
async function storeOrSplit(
  work: Work,
  entries: readonly Entry[],
  refused: readonly Refused[],
): Promise<Ingested> {
  const { pool, known, options } = work
  try {
    return await inTransaction(pool, async (run) => {
      await storeRefused(run, known.id, refused)
      const added = await storeEntries(run, known, entries, options)
      return { added, known: entries.length - added, quarantined: refused.length }
    })
  } catch (error) {
    const [first] = entries
    if (!isDataRefused(error) || first === undefined) throw error
    if (entries.length === 1) {
      const why = `the database refused it: ${(error as Error).message}`
      return storeOrSplit(work, [], [...refused, refusedOf(first.drained, options, why)])
    }
    const middle = entries.length >> 1
    const before = await storeOrSplit(work, entries.slice(0, middle), refused)
    const after = await storeOrSplit(work, entries.slice(middle), [])
    return {
      added: before.added + after.added,
      known: before.known + after.known,
      quarantined: before.quarantined + after.quarantined,
    }
  }
}
