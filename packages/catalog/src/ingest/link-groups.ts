import { normaliseMessage } from '@redrive/core/internal'
import type { RunSql } from '../database.ts'
import type { NewGroup } from './new-group.ts'
import { LINK_GROUPS, OLDER_GROUPS } from './statements.ts'

/** A new group, and a group of earlier rules with the same class, code, type, handler and function. */
export interface EarlierGroup {
  readonly newer: string
  readonly older: string
  readonly newer_sample: string
  readonly older_sample: string
}

/**
 * Links groups of earlier rules to the new groups with the same failures: the first messages of both have the same
 * keywords. A new group takes over the owner, and the mute if all earlier groups are muted.
 */
export async function linkOlderGroups(
  run: RunSql,
  sourceId: number,
  created: readonly NewGroup[],
): Promise<void> {
  // Signatures without a version, such as that of a crash loop, are the same in all releases.
  const versioned = created.filter(({ algorithm }) => algorithm > 1)
  if (versioned.length === 0) return
  const candidates = await run<EarlierGroup>(OLDER_GROUPS, [
    sourceId,
    versioned.map(({ id }) => id),
  ])
  const links = new Map(
    candidates.filter(hasSameFailures).map(({ older, newer }) => [older, newer]),
  )
  if (links.size > 0) await run(LINK_GROUPS, [[...links.keys()], [...links.values()]])
}

/** Whether the first messages of both groups have the same keywords by the current rules. */
function hasSameFailures({ newer_sample, older_sample }: EarlierGroup): boolean {
  return normaliseMessage(newer_sample, true) === normaliseMessage(older_sample, true)
}
