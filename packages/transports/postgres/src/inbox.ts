import { setTimeout as sleep } from 'node:timers/promises'
import type { Duration } from '@redrive/core'
import { FUNCTION, readOptions } from '@redrive/core/internal'
import type { Inbox, InboxAttempt, InboxResult } from '@redrive/runtime'
import {
  inTransaction as inPlainTransaction,
  QUERY_TIMEOUT_MS,
  sqlStateOf,
} from '@redrive/postgres-internal'
import type { Pool, PoolClient } from 'pg'
import { type BatchKeys, batched } from './inbox-batches.ts'
import { batchKeys, keyEntry } from './inbox-keys.ts'
import { readPool, RETENTION } from './options.ts'
import { type Queryable, rowsOf } from './queryable.ts'
import { inSchema, readSchema, schemaOf } from './schema.ts'
import { beginFor, DELETE_OLD_KEYS, HANDLED } from './sql/inbox.ts'

/** Options of every inbox. */
export interface CommonInboxOptions {
  /**
   * Time that a key is stored. It must not be shorter than the retention of dead letters: a later replay
   * would take effect twice. Default '30d'.
   */
  readonly retention?: Duration
  /** The schema of the inbox, as given to `migrate`. Default 'redrive'. */
  readonly schema?: string
}

/** Options for `pg`. The handler receives the client of the transaction as `context.tx`. */
export interface PgInboxOptions extends CommonInboxOptions {
  /** Pool of connections to the primary, never to a replica. Each running handler uses one. */
  readonly pool: Pool
  /**
   * Maximum number of messages that share a transaction (1–1,000). Their handlers run one after the other. If one of them
   * fails, all are rolled back, and each handler runs again in its own transaction. Therefore use it only for handlers whose
   * effects are all in `context.tx`, which do not end the transaction or change its settings, and which together take less
   * than half of the timeout. Default 1.
   */
  readonly batch?: number
}

/** Options for other database clients: how to begin a transaction, and how to query in it. */
export interface AnyInboxOptions<Tx> extends CommonInboxOptions {
  /** Runs the work in a transaction: commits when it resolves, rolls back when it rejects. */
  readonly transaction: (work: (tx: Tx) => Promise<void>, attempt?: InboxAttempt) => Promise<void>
  /** Returns a client that runs statements in the transaction. */
  readonly query: (tx: Tx) => Queryable
}

/** 30 days: two weeks of dead letters, and two more weeks to replay them. */
const RETENTION_MS = 2_592_000_000

/**
 * Creates an inbox in the table `event_handled` of the schema. The key and the effects of the handler are written in
 * one transaction, so both happen or neither does. A second delivery with the same key waits for the first.
 */
export function postgresInbox(options: PgInboxOptions): Inbox<PoolClient>
export function postgresInbox<Tx>(options: AnyInboxOptions<Tx>): Inbox<Tx>
export function postgresInbox<Tx>(options: PgInboxOptions | AnyInboxOptions<Tx>): Inbox<Tx> {
  const { retentionMs, batch, schema } = readInboxOptions(options)
  const enter = keyEntry(schema)
  const deleteOldKeys = inSchema(DELETE_OLD_KEYS, schema)
  // With a pool, Tx is PoolClient, as the overload declares.
  const { transaction, query } =
    'pool' in options ? (optionsForPool(options.pool) as unknown as AnyInboxOptions<Tx>) : options
  // A handler uses a connection while it runs; some are reserved so that the transport need not wait for one.
  const transactions =
    'pool' in options ? Math.max(1, options.pool.options.max - RESERVED_CONNECTIONS) : undefined
  const deletedAt = new Map<string, number>()

  /** Deletes old keys until none is left, one step per transaction. */
  async function deleteInSteps(consumer: string): Promise<void> {
    let deleted = KEYS_PER_STEP
    while (deleted >= KEYS_PER_STEP) {
      const startedAt = performance.now()
      await transaction(async (tx) => {
        const [row] = await rowsOf<{ deleted: string | number }>(query(tx), deleteOldKeys, [
          consumer,
          retentionMs,
        ])
        deleted = Number(row?.deleted ?? 0)
      })
      // Half of the time is left to the handlers.
      await sleep(performance.now() - startedAt, undefined, { ref: false })
    }
  }

  /** Deletes old keys once per hour, in the background. */
  function deleteOldKeysHourly(consumer: string): void {
    const now = performance.now()
    if (now < (deletedAt.get(consumer) ?? -DELETE_INTERVAL_MS) + DELETE_INTERVAL_MS) return
    deletedAt.set(consumer, now)
    const deleting = deleteInSteps(consumer)
    // An error is ignored: additional keys do no harm, and the next attempt is in an hour.
    deleting.catch(() => undefined)
  }

  const handleAlone: Inbox<Tx>['handle'] = async (entry, work, attempt) => {
    for (let tries = 1; ; tries++) {
      let result: InboxResult = 'handled'
      let isEntered = false
      try {
        await transaction(async (tx) => {
          result = await enter(query(tx), entry)
          isEntered = true
          if (result !== 'handled') throw NOT_NEW
          await work(tx)
          if (transactions === undefined) await assertCommittable(query(tx))
        }, attempt)
        return result
      } catch (error) {
        if (error === NOT_NEW) return result
        if (isEntered || tries === ENTER_TRIES || !isSerializationFailure(error)) throw error
      }
    }
  }
  const handle =
    transactions === undefined || batch === 1
      ? handleAlone
      : batched<Tx>({
          size: batch,
          transactions,
          transaction,
          // Only with a pool, so Tx is PoolClient.
          keys: batchKeys(schema) as unknown as BatchKeys<Tx>,
          handleAlone,
        })
  return {
    retentionMs,
    ...(transactions === undefined ? {} : { maxConcurrency: transactions * batch }),
    handle(entry, work, attempt) {
      deleteOldKeysHourly(entry.consumer)
      return handle(entry, work, attempt)
    },
  }
}

/** Checks the options. */
function readInboxOptions(options: unknown): {
  readonly retentionMs: number
  readonly batch: number
  readonly schema: string
} {
  return readOptions('postgresInbox()', options, (top) => {
    const isAny = top.raw('transaction') !== undefined || top.raw('query') !== undefined
    if (isAny) {
      top.required('transaction', FUNCTION)
      top.required('query', FUNCTION)
    } else readPool(top)
    const retentionMs = top.duration('retention', RETENTION_MS, { ...RETENTION, min: 1 })
    const batch = isAny ? 1 : top.integer('batch', 1, BATCH)
    return { retentionMs, batch, schema: readSchema(top) }
  })
}

/** 1,000: more would hold locks for long and save nothing measurable. */
const BATCH = { min: 1, max: 1_000 }

/** 3 connections for a transport on the same pool: one for its turns, one to listen, one for maintenance. */
const RESERVED_CONNECTIONS = 3

/**
 * 5 transactions to insert the key. At an isolation level above "read committed", an insert fails when another
 * transaction committed the key during it. The next transaction finds the key. The handler has not run by then.
 */
const ENTER_TRIES = 5

/** Returns whether the server asks to repeat the transaction. Some clients wrap its error. */
function isSerializationFailure(error: unknown): boolean {
  const { cause } = (error ?? {}) as { readonly cause?: unknown }
  return (sqlStateOf(error) ?? sqlStateOf(cause)) === '40001'
}

/** Thrown to roll the transaction back. */
const NOT_NEW = new Error('The key was handled before.')

/** 10,000 keys, the limit of `inbox_forget`: with as many deleted, there are probably more. */
const KEYS_PER_STEP = 10_000

/** 1 hour. */
const DELETE_INTERVAL_MS = 3_600_000
/** The keys of a consumer to look up. */
export interface HandledKeysQuery {
  /** Name of the consumer in the inbox: the option `name` of `consume`, or the source without it. */
  readonly consumer: string
  readonly keys: readonly string[]
  /** The schema of the inbox. Default 'redrive'. */
  readonly schema?: string
}

/**
 * Returns the keys that are in the inbox: handled, or replaced by a handled key, so that they no longer take
 * effect. A missing key was not handled within the retention of the inbox.
 */
export async function handledKeys(
  pool: Pool,
  { consumer, keys, schema }: HandledKeysQuery,
): Promise<ReadonlySet<string>> {
  const text = inSchema(HANDLED, schemaOf('handledKeys()', schema))
  const rows = await rowsOf<{ key: string }>(pool, text, [consumer, keys])
  return new Set(rows.map(({ key }) => key))
}

/**
 * Throws when the transaction is aborted. After a failed statement, PostgreSQL responds to a commit with a rollback,
 * and some clients treat this as success. A handler that ignored the failure must not count as successful.
 */
async function assertCommittable(tx: Queryable): Promise<void> {
  try {
    await rowsOf(tx, 'select 1', [])
  } catch (cause) {
    throw new Error(
      'The transaction cannot be committed: a statement in it failed, and the handler ignored the error. Rethrow the error, or use a savepoint.',
      { cause },
    )
  }
}

function optionsForPool(pool: Pool): AnyInboxOptions<PoolClient> {
  return {
    transaction: (work, attempt) => inTransaction(pool, work, attempt),
    query: (client) => client,
  }
}

/**
 * Runs the work in a separate transaction: commits when it resolves, rolls back when it rejects. Returns the
 * connection to the pool if it is reusable. With an attempt, the transaction ends with it: a connection without
 * an answer would lock the key for all other consumers.
 */
export function inTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
  attempt?: InboxAttempt,
): Promise<T> {
  const workInside = async (client: PoolClient): Promise<T> => {
    const result = await work(client)
    if (client.getTransactionStatus() === 'I') throw new Error(ENDED_BY_HANDLER)
    return result
  }
  return inPlainTransaction(pool, workInside, {
    timeoutMs: QUERY_TIMEOUT_MS,
    signal: attempt?.signal,
    ...(attempt === undefined ? {} : { begin: beginFor(attempt.timeoutMs + GRACE_MS) }),
  })
}

const ENDED_BY_HANDLER =
  'The transaction of the inbox was ended by the handler. Do not run commit or rollback on context.tx, and use savepoints for a part.'

const GRACE_MS = 5_000
