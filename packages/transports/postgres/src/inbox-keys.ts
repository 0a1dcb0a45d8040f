import type { InboxEntry, InboxResult } from '@redrive/runtime'
import { type Queryable, rowsOf } from './queryable.ts'
import { ENTER, ENTER_ALL, STORED_FINGERPRINT } from './sql/inbox.ts'

/**
 * Inserts the key. An edited message inserts both its new and its old key, always in the same order, to avoid
 * deadlocks.
 */
export async function enter(tx: Queryable, entry: InboxEntry): Promise<InboxResult> {
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

/** Prefix that replaces the fingerprint, which has no colon: this key no longer takes effect, whatever its content. */
const REPLACED_BY = 'replaced-by:'

async function enterOne(
  tx: Queryable,
  { consumer, key, fingerprint }: InboxEntry,
): Promise<InboxResult> {
  const entered = await rowsOf(tx, ENTER, [consumer, key, fingerprint])
  if (entered.length > 0) return 'handled'
  const [stored] = await rowsOf<{ fingerprint: string }>(tx, STORED_FINGERPRINT, [consumer, key])
  // The key was deleted in between.
  if (stored === undefined) return enterOne(tx, { consumer, key, fingerprint })
  const isSame = stored.fingerprint === fingerprint || stored.fingerprint.startsWith(REPLACED_BY)
  return isSame ? 'already_handled' : 'conflict'
}

/** Inserts the keys of several entries of one consumer. Returns the keys that were new. */
export async function enterAll(
  tx: Queryable,
  consumer: string,
  entries: readonly InboxEntry[],
): Promise<ReadonlySet<string>> {
  const keys = entries.map(({ key }) => key)
  const fingerprints = entries.map(({ fingerprint }) => fingerprint)
  const entered = await rowsOf<{ key: string }>(tx, ENTER_ALL, [consumer, keys, fingerprints])
  return new Set(entered.map(({ key }) => key))
}
