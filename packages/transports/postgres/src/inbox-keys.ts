import type { InboxEntry, InboxResult } from '@redrive/runtime'
import type { PoolClient } from 'pg'
import type { BatchKeys } from './inbox-batches.ts'
import { type Queryable, rowsOf } from './queryable.ts'
import { inSchema } from './schema.ts'
import { BEGIN_BATCH, ENTER, ENTER_ALL, STORED_FINGERPRINT } from './sql/inbox.ts'

/** Inserts the key of a message in its transaction. */
export type KeyEntry = (tx: Queryable, entry: InboxEntry) => Promise<InboxResult>

/** Prefix that replaces the fingerprint, which has no colon: this key no longer takes effect, whatever its content. */
const REPLACED_BY = 'replaced-by:'

/** Returns the function that inserts keys in this schema. */
export function keyEntry(schema: string): KeyEntry {
  const insert = inSchema(ENTER, schema)
  const read = inSchema(STORED_FINGERPRINT, schema)

  async function enterOne(tx: Queryable, entry: InboxEntry): Promise<InboxResult> {
    const { consumer, key, fingerprint } = entry
    const entered = await rowsOf(tx, insert, [consumer, key, fingerprint])
    if (entered.length > 0) return 'handled'
    const [stored] = await rowsOf<{ fingerprint: string }>(tx, read, [consumer, key])
    // The key was deleted in between.
    if (stored === undefined) return enterOne(tx, entry)
    const isSame = stored.fingerprint === fingerprint || stored.fingerprint.startsWith(REPLACED_BY)
    return isSame ? 'already_handled' : 'conflict'
  }

  // An edited message inserts both its new and its old key, always in the same order, to avoid deadlocks.
  return async (tx, entry) => {
    const { consumer, key, replaces } = entry
    if (replaces === undefined || replaces === key) return enterOne(tx, entry)
    const replaced = { consumer, key: replaces, fingerprint: `${REPLACED_BY}${key}` }
    const both = key < replaces ? [entry, replaced] : [replaced, entry]
    let result: InboxResult = 'handled'
    for (const one of both) {
      const found = await enterOne(tx, one)
      if (found === 'handled' || result === 'conflict') continue
      // For the replaced key, only its existence counts, not its content.
      result = one === replaced ? 'already_handled' : found
    }
    return result
  }
}

/** Returns the statements of a batch of entries of one consumer. */
export function batchKeys(schema: string): BatchKeys<PoolClient> {
  const begin = inSchema(BEGIN_BATCH, schema)
  const insert = inSchema(ENTER_ALL, schema)
  return {
    async begin(tx, entries, timeoutMs) {
      const values = [consumerOf(entries), keysOf(entries), timeoutMs]
      const known = await rowsOf<{ key: string | null }>(tx, begin, values)
      return new Set(known.flatMap(({ key }) => key ?? []))
    },
    check(tx) {
      if (tx.getTransactionStatus() !== IN_TRANSACTION)
        throw new Error('The transaction of the batch has failed or was ended by a handler.')
    },
    async insert(tx, entries) {
      const fingerprints = entries.map(({ fingerprint }) => fingerprint)
      const values = [consumerOf(entries), keysOf(entries), fingerprints]
      const entered = await rowsOf(tx, insert, values)
      if (entered.length < entries.length) throw new Error('A key of the batch exists already.')
    },
  }
}

const IN_TRANSACTION = 'T'

const consumerOf = ([first]: readonly InboxEntry[]) => first?.consumer
const keysOf = (entries: readonly InboxEntry[]) => entries.map(({ key }) => key)
