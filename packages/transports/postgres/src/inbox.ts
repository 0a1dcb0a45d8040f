import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { Inbox, InboxAnswer, InboxAttempt, InboxEntry } from '@redrive/runtime'
import type { Pool, PoolClient } from 'pg'
import { askIn, borrowed, guard } from './ask.ts'
import { type Queryable, rowsOf } from './query.ts'

interface CommonInboxOptions {
  /**
   * How long a key is remembered. Must not be shorter than dead letters are kept: a replay after that
   * would look new. Default '30d'.
   */
  readonly keep?: Duration
}

/** With `pg`: the handler gets the client of the transaction as `context.tx`. */
export interface PgInboxOptions extends CommonInboxOptions {
  readonly pool: Pool
}

/** With anything else: say how it begins a transaction, and how to query in it. */
export interface AnyInboxOptions<Tx> extends CommonInboxOptions {
  /** Runs the work in a transaction: commits when it resolves, rolls back when it rejects. */
  readonly transaction: (work: (tx: Tx) => Promise<void>, attempt?: InboxAttempt) => Promise<void>
  readonly query: (tx: Tx) => Queryable
}

/** 30 days: two weeks of dead letters, and as long again to replay them. */
const KEEP_MS = 2_592_000_000

/**
 * An inbox in the table `redrive.event_handled`. The key is written in the same transaction as what the
 * handler does, so both happen or neither does; a second one with the same key waits for the first.
 */
export function postgresInbox(options: PgInboxOptions): Inbox<PoolClient>
export function postgresInbox<Tx>(options: AnyInboxOptions<Tx>): Inbox<Tx>
export function postgresInbox<Tx>(options: PgInboxOptions | AnyInboxOptions<Tx>): Inbox<Tx> {
  const keepMs = parseDuration(options.keep ?? KEEP_MS)
  if (keepMs === undefined || keepMs === 0) {
    const message = `keep: expected a duration such as '30d', got ${options.keep}`
    throw new RedriveError('POLICY_INVALID', message)
  }
  // With a pool, a client is what queries: that Tx is PoolClient is what the overload says.
  const { transaction, query } =
    'pool' in options ? (ofPool(options.pool) as unknown as AnyInboxOptions<Tx>) : options
  // A handler holds a connection for as long as it runs; the transport must not have to wait for one.
  const atOnce = 'pool' in options ? Math.max(1, options.pool.options.max - SPARE) : undefined
  const forgotAt = new Map<string, number>()

  /** Once an hour, by whoever comes by; the handler does not wait for it. */
  function forgetSometimes(consumer: string): void {
    const now = performance.now()
    if (now < (forgotAt.get(consumer) ?? -FORGET_MS) + FORGET_MS) return
    forgotAt.set(consumer, now)
    const forgetting = transaction(async (tx) => {
      await rowsOf(query(tx), FORGET, [consumer, keepMs])
    })
    // Too many keys kept are no harm, and in an hour it is tried again.
    forgetting.catch(() => undefined)
  }

  return {
    keepMs,
    ...(atOnce === undefined ? {} : { atOnce }),
    async handle(entry, work, attempt) {
      forgetSometimes(entry.consumer)
      let answer: InboxAnswer = 'handled'
      try {
        await transaction(async (tx) => {
          answer = await enter(query(tx), entry)
          if (answer !== 'handled') throw NOT_NEW
          await work(tx)
          if (atOnce === undefined) await stillAlive(query(tx))
        }, attempt)
      } catch (error) {
        if (error !== NOT_NEW) throw error
      }
      return answer
    },
  }
}

/** 3 connections, for a transport on the same pool: one for its turns, one to listen, one for upkeep. */
const SPARE = 3

/** Ends the transaction without anything in it. */
const NOT_NEW = new Error('The key was handled before.')

const ENTER = `
insert into redrive.event_handled (consumer, key, fingerprint) values ($1, $2, $3)
on conflict do nothing returning key`

/** An hour. */
const FORGET_MS = 3_600_000
const FORGET = `select redrive.inbox_forget($1::text, $2::double precision * interval '1 millisecond')`

const SEEN = 'select fingerprint from redrive.event_handled where consumer = $1 and key = $2'

/**
 * An edited one enters under both keys, always in the same order: two that wait for each other would
 * never end.
 */
async function enter(tx: Queryable, entry: InboxEntry): Promise<InboxAnswer> {
  const { consumer, key, replaces } = entry
  if (replaces === undefined || replaces === key) return enterOne(tx, entry)
  const replaced = { consumer, key: replaces, fingerprint: `${REPLACED_BY}${key}` }
  const both = key < replaces ? [entry, replaced] : [replaced, entry]
  let answer: InboxAnswer = 'handled'
  for (const one of both) {
    const found = await enterOne(tx, one)
    if (found === 'handled' || answer === 'conflict') continue
    // Of the one it stands in for only that counts, not with which content.
    answer = one === replaced ? 'already_handled' : found
  }
  return answer
}

/** In place of a fingerprint, which has no colon: this key takes no effect any more, whatever its content. */
const REPLACED_BY = 'replaced-by:'

async function enterOne(
  tx: Queryable,
  { consumer, key, fingerprint }: InboxEntry,
): Promise<InboxAnswer> {
  const entered = await rowsOf(tx, ENTER, [consumer, key, fingerprint])
  if (entered.length > 0) return 'handled'
  const [seen] = await rowsOf<{ fingerprint: string }>(tx, SEEN, [consumer, key])
  // Forgotten in between.
  if (seen === undefined) return enterOne(tx, { consumer, key, fingerprint })
  const isSame = seen.fingerprint === fingerprint || seen.fingerprint.startsWith(REPLACED_BY)
  return isSame ? 'already_handled' : 'conflict'
}

/** Which keys, of which consumer. */
export interface HandledKeysQuery {
  /** Its name in the inbox: the `name` given to `consume`, or else the source. */
  readonly consumer: string
  readonly keys: readonly string[]
}

const HANDLED =
  'select key from redrive.event_handled where consumer = $1 and key = any($2::text[])'

/**
 * Those of the keys that the inbox has: handled, or replaced by one that was handled, so that they take
 * no effect any more. One that it does not have was not handled within the time the inbox remembers.
 */
export async function handledKeys(
  pool: Pool,
  { consumer, keys }: HandledKeysQuery,
): Promise<ReadonlySet<string>> {
  const rows = await rowsOf<{ key: string }>(pool, HANDLED, [consumer, keys])
  return new Set(rows.map(({ key }) => key))
}

/**
 * After a failed statement PostgreSQL answers a commit with a rollback, and some clients take that for a
 * success. A handler that went on in spite of the failure must not count as having handled anything.
 */
async function stillAlive(tx: Queryable): Promise<void> {
  try {
    await rowsOf(tx, 'select 1', [])
  } catch (cause) {
    throw new Error(
      'Nothing of this transaction can be committed: a statement in it failed and the handler went on. Let the error through, or use a savepoint.',
      { cause },
    )
  }
}

function ofPool(pool: Pool): AnyInboxOptions<PoolClient> {
  return {
    transaction: (work, attempt) => inTransaction(pool, work, attempt),
    query: (client) => client,
  }
}

/**
 * Runs the work in a transaction of its own: commits when it resolves, rolls back when it rejects. The
 * connection goes back to the pool if it is fit for others. With an attempt, it ends with it: a
 * connection that is silent would keep the key, here and at the server, from everyone else.
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
  attempt?: InboxAttempt,
): Promise<T> {
  const { client, giveBack } = borrowed(await guard(pool).connect())
  const leave = () => giveBack(false)
  attempt?.signal.addEventListener('abort', leave)
  try {
    // It may have been over before there was a connection.
    attempt?.signal.throwIfAborted()
    await askIn(client, 'begin', [])
    if (attempt !== undefined) await askIn(client, GIVE_UP, [String(attempt.timeoutMs + GRACE_MS)])
    const result = await work(client)
    await stillAlive(client)
    await askIn(client, 'commit', [])
    giveBack(true)
    return result
  } catch (error) {
    giveBack(!attempt?.signal.aborted && (await canRollBack(client)))
    throw error
  } finally {
    attempt?.signal.removeEventListener('abort', leave)
  }
}

/** Until the server ends a transaction of which it hears nothing; the attempt is over by then. */
const GIVE_UP = `select set_config('idle_in_transaction_session_timeout', $1, true)`
const GRACE_MS = 5_000

/** A connection whose transaction cannot be ended is not fit for anyone else. */
async function canRollBack(client: PoolClient): Promise<boolean> {
  try {
    await askIn(client, 'rollback', [])
    return true
  } catch {
    return false
  }
}
