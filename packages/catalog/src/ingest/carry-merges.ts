import { normaliseMessage } from '@redrive/core/internal'
import type { RunSql } from '../database.ts'
import type { EarlierGroup } from './link-groups.ts'
import { ATTACH_PARTS, CARRY_MERGES, EARLIER_MERGES } from './statements.ts'

interface EarlierMerge extends EarlierGroup {
  /** The group that the older one is part of, or itself. */
  readonly parent: string
}

/**
 * Adds new groups to the merged groups that had their failures by earlier rules, so that a correction by hand survives new
 * rules. The first messages of both groups are compared by the current rules. Splits of the older group apply, too.
 * Returns whether a group was added.
 */
export async function carryMerges(
  run: RunSql,
  sourceId: number,
  created: readonly string[],
): Promise<boolean> {
  const earlier = await run<EarlierMerge>(EARLIER_MERGES, [sourceId, created])
  const same = earlier.filter(isSame)
  const found = [...new Map(same.map((one) => [one.newer, one])).values()]
  if (found.length === 0) return false
  const [newer, parents] = [found.map((one) => one.newer), found.map(({ parent }) => parent)]
  await run(ATTACH_PARTS, [newer, parents])
  await run(CARRY_MERGES, [newer, parents, found.map(({ older }) => older)])
  return true
}

/** Compares the whole messages. Links compare only keywords: a wrong link moves nothing, and a wrong merge does. */
const isSame = ({ newer_sample, older_sample }: EarlierMerge) =>
  normaliseMessage(newer_sample) === normaliseMessage(older_sample)
