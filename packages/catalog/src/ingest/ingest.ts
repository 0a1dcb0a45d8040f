import { randomUUID } from 'node:crypto'
import type { DeadLetterSource, DrainedBatch, DrainedDeadLetter } from '@redrive/runtime'
import type { Pool } from 'pg'
import { type Copy, explained, inTransaction, isDataRefused, type RunSql } from '../database.ts'
import { UnreadableHeaders } from '../dead-letter-codec.ts'
import { createByteBudget } from './byte-budget.ts'
import { Days } from './days.ts'
import { type Entry, entryOf, type KnownSource } from './entry.ts'
import type { ResolvedIngest } from './options.ts'
import { type RejectedMessage, rejectedOf, storeSetAside } from '../set-aside/store.ts'
import { failSetAside } from '../replay/outcome/fail-set-aside.ts'
import { registerSource, type Session, storeEntries } from './store.ts'
import { forgetReleased, holdUnnamed, isHeld, whenLetGo, withoutKnown } from './unidentified.ts'

/** The result of one ingest. */
export interface IngestResult {
  /** Number of dead letters that are new in the catalog. */
  readonly added: number
  /** Number of replayed dead letters that failed again. They are open again, in their next cycle. */
  readonly failedAgain: number
  /** Number of messages that the catalog already had, for example after a crash. */
  readonly known: number
  /** Number of messages that could not be catalogued as dead letters. They are kept whole: see `catalog.setAside`. */
  readonly setAside: number
}

/** 2: the server stores one batch while this process reads and hashes the next. More batches would block each other. */
const STORING_MAX = 2

/**
 * Drains the source until it is empty. Each batch is released after its commit. Drains run one after the other.
 * After an error, batches in progress are finished first.
 */
export async function ingestAll(
  pool: Pool,
  source: DeadLetterSource,
  options: ResolvedIngest,
  signal: AbortSignal | undefined,
): Promise<IngestResult> {
  const known = await registerSource(pool, options)
  // Its dead letters are being put back into the broker. Draining them would delay that.
  if (known.isStopped) return NOTHING
  const work = { pool, known, options, days: new Days(pool) }
  const storing = new Set<Promise<void>>()
  const done: IngestResult[] = []
  const failures: unknown[] = []
  const fail = (error: unknown) => void failures.push(error)
  const budget = createByteBudget({ maxBytes: options.maxBytesInFlight, batch: options.batch })
  const begin = (batch: DrainedBatch) => {
    const free = budget.hold(batch.deadLetters)
    const stored = storeAndRelease(work, batch)
      .then((one) => void done.push(one), fail)
      .finally(() => {
        free()
        storing.delete(stored)
      })
    storing.add(stored)
  }
  const step = async () => {
    while (storing.size >= STORING_MAX || (budget.isFull && storing.size > 0))
      await Promise.race(storing)
    if (failures.length > 0) return false
    const batch = await source.drain({ limit: budget.limit() })
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

const sumOf = (parts: readonly IngestResult[]): IngestResult =>
  parts.reduce(
    (sum, one) => ({
      added: sum.added + one.added,
      failedAgain: sum.failedAgain + one.failedAgain,
      known: sum.known + one.known,
      setAside: sum.setAside + one.setAside,
    }),
    NOTHING,
  )

const NOTHING: IngestResult = { added: 0, failedAgain: 0, known: 0, setAside: 0 }

/** Stores a batch and releases it. If storing fails, the batch is returned to the broker. */
async function storeAndRelease(work: Work, batch: DrainedBatch): Promise<IngestResult> {
  const token = randomUUID()
  let stored: StoredBatch
  try {
    stored = await storeBatch({ ...work, batch: token }, batch.deadLetters)
  } catch (error) {
    await abandon(batch, error)
    throw explained(error)
  }
  const areIdentified = batch.deadLetters.every(({ identity }) => identity === 'stable')
  if (areIdentified) await batch.release()
  else await releaseUnidentified(work.pool, batch, { token, beganAt: stored.beganAt })
  return stored.done
}

/** Releases the batch, or returns it if the hold may end too soon. Returned messages are recognised later. */
async function releaseUnidentified(
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
      'The batch could not be stored, and could not be returned to the broker.',
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
  /** Id of the batch. */
  readonly batch: string
}

interface StoredBatch {
  readonly done: IngestResult
  /** Time before its transaction started, from `performance.now()`. */
  readonly beganAt: number
}

async function storeBatch(
  work: BatchWork,
  drained: readonly DrainedDeadLetter[],
): Promise<StoredBatch> {
  const { entries, rejected } = sorted(drained, work.options)
  await whenLetGo(work.pool, work.options.source, [...entries, ...rejected])
  await work.days.make(entries)
  const beganAt = performance.now()
  return { done: await storeOrSplit(work, entries, rejected), beganAt }
}

/** Returns the messages that can be catalogued, and the others with a reason. */
function sorted(drained: readonly DrainedDeadLetter[], options: ResolvedIngest) {
  const entries: Entry[] = []
  const rejected: RejectedMessage[] = []
  for (const one of drained) {
    const read = entryOrRejected(one, options)
    if ('reason' in read) rejected.push(read)
    else entries.push(read)
  }
  return { entries, rejected }
}

function entryOrRejected(
  drained: DrainedDeadLetter,
  options: ResolvedIngest,
): Entry | RejectedMessage {
  const { source, maxPayloadBytes } = options
  const { problem, delivery } = drained
  const size = delivery.bytes.length
  if (problem !== undefined) return rejectedOf(drained, source, problem.code, problem.message)
  if (size > maxPayloadBytes) {
    const why = `The body has ${size} bytes, more than maxPayloadBytes (${maxPayloadBytes}).`
    return rejectedOf(drained, source, 'body_too_large', why)
  }
  try {
    return entryOf(drained, options)
  } catch (error) {
    // No message may block its neighbours, whatever its headers do to the code that reads them.
    const [reason, what] =
      error instanceof UnreadableHeaders
        ? (['headers_not_storable', 'The headers cannot be stored'] as const)
        : (['unreadable', 'The message cannot be read'] as const)
    return rejectedOf(drained, source, reason, `${what}: ${textOf(error)}.`)
  }
}

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/**
 * Stores all entries in one transaction. If the database rejects a value, each half is stored separately, until
 * only the entry with that value is left. That entry is set aside and does not block the others.
 */
async function storeOrSplit(
  work: BatchWork,
  entries: readonly Entry[],
  rejected: readonly RejectedMessage[],
): Promise<IngestResult> {
  const { pool, known, options, batch } = work
  let done: IngestResult
  try {
    const store = async (run: RunSql, copy: Copy) => {
      const session = { run, copy, batch }
      const setAside = await storeRejected(session, known, rejected, options)
      const unknown = await withoutKnown(run, batch, options.source, entries)
      const { added, failedAgain } = await storeEntries(session, known, unknown, options)
      const rest = entries.length + rejected.length - added - failedAgain - setAside
      return { added, failedAgain, known: rest, setAside }
    }
    done = await inTransaction(pool, store, known.settings)
  } catch (error) {
    const [first] = entries
    if (!isDataRefused(error) || first === undefined) throw error
    if (entries.length === 1) {
      const why = `The database rejected a value: ${textOf(error)}.`
      const one = rejectedOf(first.drained, options.source, 'rejected_by_database', why)
      return storeOrSplit(work, [], [...rejected, one])
    }
    const middle = entries.length >> 1
    const before = await storeOrSplit(work, entries.slice(0, middle), rejected)
    const after = await storeOrSplit(work, entries.slice(middle), [])
    return sumOf([before, after])
  }
  // All entries are stored, so an error of this transaction is not about one of them.
  await failSetAside(pool, known, rejected)
  return done
}

/** Sets messages aside and returns how many are new. */
async function storeRejected(
  session: Session,
  known: KnownSource,
  rejected: readonly RejectedMessage[],
  { source, keys }: ResolvedIngest,
): Promise<number> {
  const { run, batch } = session
  const unknown = await withoutKnown(run, batch, source, rejected)
  const added = await storeSetAside(session, known.id, unknown, keys)
  await holdUnnamed(run, batch, source, added)
  return added.length
}
