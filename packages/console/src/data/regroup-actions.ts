import type { Group } from '@redrive/api'
import { client } from './client.ts'
import { refreshGroups } from './group-actions.ts'

interface ReasonAndKey {
  readonly reason: string
  readonly key: string
}

/** Moves the dead letters of groups, and later ones, into the group `into`. */
export async function mergeGroups(
  into: string,
  groups: readonly string[],
  { reason, key }: ReasonAndKey,
): Promise<Group> {
  const input = { params: { id: into }, body: { groups: [...groups], reason } }
  const merged = await client.call('mergeGroups', input, { idempotencyKey: key })
  await refreshGroups(into, ...groups)
  return merged
}

/** Separates a group again that was merged into the group `from`. */
export async function unmergeGroup(
  id: string,
  from: string,
  { reason, key }: ReasonAndKey,
): Promise<Group> {
  const input = { params: { id }, body: { reason } }
  const separated = await client.call('unmergeGroup', input, { idempotencyKey: key })
  await refreshGroups(id, from)
  return separated
}

/** The finished requests of a split. */
export interface SplitProgress {
  readonly requests: number
  readonly moved: number
  /** Where the next request continues. */
  readonly cursor?: string
}

/**
 * Moves the matching dead letters of a group, and later ones, into a new group. A large group needs several requests. A
 * repeated call continues after the finished ones.
 */
export async function splitGroup(
  id: string,
  { filter, name, reason, key }: ReasonAndKey & { readonly filter: string; readonly name: string },
  progress: SplitProgress,
  onProgress: (progress: SplitProgress) => void,
): Promise<{ readonly group: Group; readonly moved: number }> {
  let { requests, moved, cursor } = progress
  for (;;) {
    const body = { filter, name, reason, ...(cursor === undefined ? {} : { cursor }) }
    const done = await client.call(
      'splitGroup',
      { params: { id }, body },
      { idempotencyKey: `${key}-${requests}` },
    )
    requests += 1
    moved += done.moved
    cursor = done.nextCursor
    if (cursor === undefined) {
      await refreshGroups(id, done.group.id)
      return { group: done.group, moved }
    }
    onProgress({ requests, moved, cursor })
  }
}
