import type { Group, Output } from '@redrive/api'
import { discardText } from '../words/group-sentence.ts'
import { client } from './client.ts'
import { queryClient } from './query-client.ts'

type GroupChange = { state?: Group['state']; mutedUntil?: number; owner?: string | null }

/**
 * Changes a group. `etag` is the version that the user saw; a list passes none, because its rows are current. The key
 * stays the same when the user repeats a click, so that the change is applied once.
 */
export async function changeGroup(
  id: string,
  body: GroupChange,
  { etag, key }: { readonly etag?: string | undefined; readonly key: string },
): Promise<Group> {
  const ifMatch = etag ?? (await client.ask('getGroup', { params: { id } })).etag ?? ''
  const input = { params: { id }, body, ifMatch }
  const changed = await client.call('changeGroup', input, { idempotencyKey: key })
  await refreshGroups(id)
  return changed
}

export async function commentGroup(id: string, text: string, key: string): Promise<void> {
  const input = { params: { id }, body: { text } }
  await client.call('commentGroup', input, { idempotencyKey: key })
  await queryClient.invalidateQueries({ queryKey: ['comments', id] })
}

/** Freezes the open dead letters of groups, so that later failures are not discarded with them. */
export const freezeForDiscard = (
  groups: readonly string[],
): Promise<Output<'selectDeadLetters'>> => {
  const filter = groups.map((id) => `group:${id}`).join(' ')
  return client.call('selectDeadLetters', { body: { action: 'discard', filter } })
}

/** The finished steps of a discard. A repeated call continues after them. */
export interface DiscardProgress {
  /** Number of discarded messages. Undefined: nothing is discarded yet. */
  readonly changed?: number
  /** Groups that have the comment. */
  readonly commented: readonly string[]
}

/**
 * Discards the frozen dead letters. The reason becomes a comment of each group, where readers look for it. After a failure,
 * a second call with the progress stores only the missing comments, because the messages are discarded already.
 */
export async function discardFrozen(
  { id, hash }: Output<'selectDeadLetters'>,
  groups: readonly string[],
  { reason, key }: { readonly reason: string; readonly key: string },
  progress: DiscardProgress,
  onProgress: (progress: DiscardProgress) => void,
): Promise<number> {
  const body = { selection: id, hash }
  let { changed, commented } = progress
  if (changed === undefined) {
    changed = (await client.call('discard', { body }, { idempotencyKey: key })).changed
    onProgress({ changed, commented })
    // A comment may fail, and the page behind the dialog must not show the old counts. The list of groups waits: without
    // its rows, the list would also remove the dialog and the reason in it.
    await refresh([['overview'], ['messages'], ...keysOf(groups)])
  }
  const text = discardText(changed, reason)
  for (const group of reason === '' ? [] : groups) {
    if (commented.includes(group)) continue
    await commentGroup(group, text, `${key}-${group}`)
    commented = [...commented, group]
    onProgress({ changed, commented })
  }
  await refreshGroups(...groups)
  return changed
}

/** Reads groups and everything that counts their messages again. */
export const refreshGroups = (...ids: readonly string[]): Promise<void> =>
  refresh([['groups'], ['overview'], ['messages'], ...keysOf(ids)])

const keysOf = (groups: readonly string[]) => groups.map((id) => ['group', id])

async function refresh(keys: readonly (readonly string[])[]): Promise<void> {
  await Promise.all(keys.map((queryKey) => queryClient.invalidateQueries({ queryKey })))
}
