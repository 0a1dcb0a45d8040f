import type { RunSql } from '../database.ts'
import type { DatedEntry } from '../ingest/entry.ts'
import type { NewGroup } from '../ingest/new-group.ts'
import { NAME_MAX, storableOrNull } from '../text.ts'
import { type Conditions, isMatch, type Traits } from './match.ts'
import { namedGroup } from './named.ts'
import { PARTS_OF_SOURCE, SPLITS } from './statements.ts'

/** A split of a group by a user. */
export interface Split {
  /** The group that was split. */
  readonly group_id: string
  /** Name of the new group. */
  readonly name: string
  readonly conditions: Conditions
}

/** The splits of a source, and the groups that each of its groups is part of. */
export interface SourceSplits {
  readonly splits: readonly Split[]
  readonly groupsOf: ReadonlyMap<string, readonly string[]>
}

/** Reads the splits of a source, oldest first. Most sources have none. */
export async function readSplits(run: RunSql, source: string): Promise<SourceSplits> {
  const splits = await run<Split>(SPLITS, [source])
  if (splits.length === 0) return { splits, groupsOf: new Map() }
  const parts = await run<{ part_id: string; groups: string[] }>(PARTS_OF_SOURCE, [source])
  return { splits, groupsOf: new Map(parts.map(({ part_id, groups }) => [part_id, groups])) }
}

/** A dead letter whose group the splits change. */
export interface SplitLetter {
  readonly source: string
  readonly traits: Traits
  /** The handler of the dead letter itself, without the handler of its source. */
  readonly ownHandler: string | null
}

/**
 * Returns the group of a dead letter after all splits of its group; undefined: no split matches. The new group can be
 * split again, so the search continues with it. Each split is used once: after a merge of the new group into the old one,
 * the search would not end otherwise.
 */
export function splitGroup(
  group: Pick<NewGroup, 'id' | 'root'>,
  { splits, groupsOf }: SourceSplits,
  { source, traits, ownHandler }: SplitLetter,
): NewGroup | undefined {
  let rest = splits
  let found: NewGroup | undefined
  for (let current = group; ; ) {
    const ids = [current.id, ...(current.root === undefined ? [] : [current.root.id])]
    const names = new Set(ids.flatMap((id) => [id, ...(groupsOf.get(id) ?? [])]))
    const split = rest.find((one) => names.has(one.group_id) && isMatch(one.conditions, traits))
    if (split === undefined) return found
    rest = rest.filter((one) => one !== split)
    found = namedGroup(source, split.name, { ...traits, ownHandler })
    current = found
  }
}

/** Moves new dead letters to the groups of the splits. */
export async function splitEntries(
  run: RunSql,
  source: string,
  entries: readonly DatedEntry[],
  handler: string | undefined,
): Promise<readonly DatedEntry[]> {
  const known = await readSplits(run, source)
  if (known.splits.length === 0) return entries
  return entries.map((entry) => {
    const { group } = entry
    const letter = { source, ownHandler: group.handler, traits: traitsOf(entry, handler) }
    const split = splitGroup(group, known, letter)
    return split === undefined ? entry : { ...entry, group: split }
  })
}

function traitsOf(
  { group, last, drained, headers }: DatedEntry,
  handler: string | undefined,
): Traits {
  return {
    class: last.class,
    code: storableOrNull(last.code, NAME_MAX),
    type: storableOrNull(drained.delivery.type, NAME_MAX),
    errorType: storableOrNull(drained.delivery.cycle.history.at(-1)?.type, NAME_MAX),
    handler: group.handler ?? handler ?? null,
    message: group.sample,
    headers: () => JSON.parse(headers) as Readonly<Record<string, unknown>>,
  }
}
