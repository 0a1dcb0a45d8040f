import type { Group, Output } from '@redrive/api'
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

/** Discards the frozen dead letters. The reason becomes a comment of each group, where readers look for it. */
export async function discardFrozen(
  { id, hash }: Output<'selectDeadLetters'>,
  groups: readonly string[],
  { reason, key }: { readonly reason: string; readonly key: string },
): Promise<number> {
  const body = { selection: id, hash }
  const { changed } = await client.call('discard', { body }, { idempotencyKey: key })
  if (reason !== '') {
    const text = `Discarded ${changed} messages: ${reason}`
    for (const group of groups) await commentGroup(group, text, `${key}-${group}`)
  }
  await refreshGroups(...groups)
  return changed
}

async function refreshGroups(...ids: readonly string[]): Promise<void> {
  const keys = [['groups'], ['overview'], ['messages'], ...ids.map((id) => ['group', id])]
  await Promise.all(keys.map((queryKey) => queryClient.invalidateQueries({ queryKey })))
}
