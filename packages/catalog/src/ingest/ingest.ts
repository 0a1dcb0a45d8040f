import { randomUUID } from 'node:crypto'
import type { DeadLetterSource, DrainedBatch, DrainedDeadLetter } from '@redrive/runtime'
import type { Pool } from 'pg'
import { type Copy, explained, inTransaction, isDataRefused, type Run } from '../database.ts'
import { UnreadableHeaders } from '../wire.ts'
import { Days } from './days.ts'
import { type Entry, entryOf, type KnownSource } from './entry.ts'
import type { ResolvedIngest } from './options.ts'
import { type Refused, refusedOf, storeRefused } from './quarantine.ts'
import { registerSource, storeEntries } from './store.ts'
import { forgetReleased, isHeld, whenLetGo, withoutKnown } from './unnamed.ts'

/** What an ingest did. */
export interface Ingested {
  /** Dead letters that are in the catalog now and were not before. */
  readonly added: number
  /** Those that were replayed and failed again: open once more, in their next cycle. */
  readonly refailed: number
  /** Those that were in it already: drained again after a crash. */
  readonly known: number
  /** Those that could not be kept as dead letters. */
  readonly quarantined: number
}

/** 2: the server stores one batch while the other is read and hashed here. More would wait for each other. */
const STORING_MOST = 2

/**
 * Drains the source until it has nothing left; each batch is released when it is committed. Drains come
 * one after the other. When something fails, what is begun is finished first.
 */
export async function ingestAll(
  pool: Pool,
  source: DeadLetterSource,
  options: ResolvedIngest,
  signal: AbortSignal | undefined,
): Promise<Ingested> {
  const known = await registerSource(pool, options)
  const work = { pool, known, options, days: new Days(pool) }
  const storing = new Set<Promise<void>>()
  const done: Ingested[] = []
  const failures: unknown[] = []
  const fail = (error: unknown) => void failures.push(error)
  const begin = (batch: DrainedBatch) => {
    const stored = keep(work, batch)
      .then((one) => void done.push(one), fail)
      .finally(() => storing.delete(stored))
    storing.add(stored)
  }
  const step = async () => {
    if (storing.size >= STORING_MOST) await Promise.race(storing)
    if (failures.length > 0) return false
    const batch = await source.drain({ most: options.batch })
    const isMore = batch.deadLetters.length > 0
    if (isMore) begin(batch)
    else await batch.release()
    return isMore
  }
  while (signal?.aborted !== true && (await step().catch(fail)) === true);
  await Promise.all(storing)
  if (failures.length > 0) throw failures.length === 1 ? failures[0] : manyFailed(failures)
  return sumOf(done)
}

const manyFailed = (failures: readonly unknown[]) =>
  new AggregateError(failures, 'Several batches could not be stored.')

const sumOf = (parts: readonly Ingested[]): Ingested =>
  parts.reduce(
    (sum, one) => ({
      added: sum.added + one.added,
      refailed: sum.refailed + one.refailed,
      known: sum.known + one.known,
      quarantined: sum.quarantined + one.quarantined,
    }),
    NOTHING,
  )

const NOTHING: Ingested = { added: 0, refailed: 0, known: 0, quarantined: 0 }

/** Releases what was stored, and leaves in the broker what was not. */
async function keep(work: Work, batch: DrainedBatch): Promise<Ingested> {
  const token = randomUUID()
  let stored: StoredBatch
  try {
    stored = await storeBatch({ ...work, batch: token }, batch.deadLetters)
  } catch (error) {
    await abandon(batch, error)
    throw explained(error)
  }
  const areNamed = batch.deadLetters.every(({ naming }) => naming === 'named')
  if (areNamed) await batch.release()
  else await releaseUnnamed(work.pool, batch, { token, beganAt: stored.beganAt })
  return stored.done
}

/** Given back when it is too late to release them: drained again, they are known. */
async function releaseUnnamed(
  pool: Pool,
  batch: DrainedBatch,
  { token, beganAt }: { readonly token: string; readonly beganAt: number },
): Promise<void> {
  if (!isHeld(beganAt)) return batch.abandon()
  await batch.release()
  await forgetReleased(pool, token)
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

interface BatchWork extends Work {
  /** Names the batch. */
  readonly batch: string
}

interface StoredBatch {
  readonly done: Ingested
  /** Before its transaction. */
  readonly beganAt: number
}

async function storeBatch(
  work: BatchWork,
  drained: readonly DrainedDeadLetter[],
): Promise<StoredBatch> {
  const { entries, refused } = sorted(drained, work.options)
  await whenLetGo(work.pool, work.options.source, entries)
  await work.days.make(entries)
  const beganAt = performance.now()
  return { done: await storeOrSplit(work, entries, refused), beganAt }
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
  work: BatchWork,
  entries: readonly Entry[],
  refused: readonly Refused[],
): Promise<Ingested> {
  const { pool, known, options, batch } = work
  try {
    const store = async (run: Run, copy: Copy) => {
      await storeRefused(run, known.id, refused)
      const unknown = await withoutKnown(run, batch, options.source, entries)
      const session = { run, copy, batch }
      const { added, refailed } = await storeEntries(session, known, unknown, options)
      const rest = entries.length - added - refailed
      return { added, refailed, known: rest, quarantined: refused.length }
    }
    return await inTransaction(pool, store, known.settings)
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
    return sumOf([before, after])
  }
}
