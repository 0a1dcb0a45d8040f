import { signatureParts } from '@redrive/core/internal'
import type { RunSql } from '../database.ts'
import type { DatedEntry, KnownSource } from './entry.ts'
import type { NewGroup } from './new-group.ts'
import { carryMerges } from './carry-merges.ts'
import { groupId } from './identity.ts'
import { withoutHandler } from '../regrouping/named.ts'
import { linkOlderGroups } from './link-groups.ts'
import { MESSAGE_MAX, storable } from '../text.ts'
import {
  ATTACH_PARTS,
  COMPLETE_GROUPS,
  COUNT_GROUPS,
  INSERT_GROUPS,
  KNOWN_GROUPS,
  SET_PARENTS,
} from './statements.ts'

/** 10,000 groups per source: more groups come from error texts that never repeat, or from an attack. */
export const GROUPS_MAX = 10_000

/**
 * Creates the missing groups of these entries. Above the limit, entries share the overflow group.
 */
export async function knownGroups(
  run: RunSql,
  source: KnownSource,
  entries: readonly DatedEntry[],
): Promise<KnownGroups> {
  const wanted = new Map(
    entries.map(({ group, lastFailedAt }) => [group.id, { group, at: lastFailedAt }]),
  )
  const rows = await run<KnownGroup>(KNOWN_GROUPS, [[...wanted.keys()]])
  const known = new Set(rows.map(({ id }) => id))
  await complete(
    run,
    rows.flatMap((row) => moreAbout(row, wanted.get(row.id)?.group) ?? []),
  )
  const missing = [...wanted.values()].filter(({ group }) => !known.has(group.id))
  if (missing.length === 0) return { overflow: new Map(), isCarried: false }
  const { created, overflow } = await addWithinLimit(run, source, missing)
  await linkOlderGroups(run, source.id, created)
  const isCarried = await carryMerges(
    run,
    source.id,
    created
      .filter(({ root, signature }) => root === undefined && signature !== OVERFLOW)
      .map(({ id }) => id),
  )
  return { overflow, isCarried }
}

/** The groups that were created, and what to use instead of the others. */
interface LimitedGroups {
  readonly created: readonly NewGroup[]
  /** The group to use instead of each group that was not created, by its id. */
  readonly overflow: ReadonlyMap<string, NewGroup>
}

/** Creates missing groups up to the limit of a source. */
async function addWithinLimit(
  run: RunSql,
  source: Pick<KnownSource, 'id' | 'name'>,
  missing: readonly CreatedGroup[],
): Promise<LimitedGroups> {
  const [counted] = await run<{ count: number }>(COUNT_GROUPS, [source.id])
  const room = Math.max(0, GROUPS_MAX - (counted?.count ?? 0))
  const overflow = overflowOf(source)
  // Named groups first: rules for them reduce the number of groups.
  const named = missing.filter(({ group }) => group.root !== undefined)
  const others = missing.filter(({ group }) => group.root === undefined)
  const otherRoom = Math.max(0, room - named.length)
  const excess = others.slice(otherRoom)
  // Messages contain the handler, so the parts of a named group by handler need a limit, too. A part without one has room.
  const shared = named.slice(room).map(({ group, at }) => ({
    from: group.id,
    at,
    group: withoutHandler(source.name, group),
  }))
  const created = [...named.slice(0, room), ...shared, ...others.slice(0, otherRoom)]
  const at = excess[0]?.at
  if (at !== undefined) created.push({ group: overflow, at })
  await addGroups(run, source.id, created)
  const replaced = [
    ...shared.map(({ from, group }) => [from, group] as const),
    ...excess.map(({ group }) => [group.id, overflow] as const),
  ]
  return { created: created.map(({ group }) => group), overflow: new Map(replaced) }
}

/** Creates the groups that do not exist, up to the limit. Returns what to use instead of the others, by their ids. */
export async function addMissingGroups(
  run: RunSql,
  source: Pick<KnownSource, 'id' | 'name'>,
  wanted: readonly CreatedGroup[],
): Promise<ReadonlyMap<string, NewGroup>> {
  const rows = await run<KnownGroup>(KNOWN_GROUPS, [wanted.map(({ group }) => group.id)])
  const known = new Set(rows.map(({ id }) => id))
  const missing = wanted.filter(({ group }) => !known.has(group.id))
  if (missing.length === 0) return new Map()
  return (await addWithinLimit(run, source, missing)).overflow
}

export interface KnownGroups {
  /** The group to use instead of each group that was not created, by its id. */
  readonly overflow: ReadonlyMap<string, NewGroup>
  /** Whether a new group joined a merged or split group of earlier rules. */
  readonly isCarried: boolean
}

interface KnownGroup {
  readonly id: string
  readonly lacks_type: boolean
  readonly lacks_handler: boolean
}

/** Returns the group of a dead letter when it contains more than the stored one, which an older release wrote. */
function moreAbout(row: KnownGroup, group: NewGroup | undefined): NewGroup | undefined {
  if (group === undefined) return undefined
  const isMore =
    (row.lacks_type && group.errorType !== null) || (row.lacks_handler && group.handler !== null)
  return isMore ? group : undefined
}

async function complete(run: RunSql, groups: readonly NewGroup[]): Promise<void> {
  if (groups.length === 0) return
  await run(COMPLETE_GROUPS, [
    groups.map(({ id }) => id),
    groups.map(({ errorType }) => errorType),
    groups.map(({ handler }) => handler),
    groups.map(({ frame }) => frame),
  ])
}

const OVERFLOW = 'overflow'

function overflowOf({ name }: Pick<KnownSource, 'name'>): NewGroup {
  const title = `All failures beyond the first ${GROUPS_MAX} groups of this source`
  return {
    id: groupId(name, OVERFLOW),
    signature: OVERFLOW,
    algorithm: 0,
    class: 'unknown',
    code: null,
    errorType: null,
    handler: null,
    frame: null,
    sample: title,
  }
}

/**
 * The failure of a message that the broker dead-lettered, by its reason. It contains nothing to replace, but the rules
 * take a word with a hyphen for a value.
 */
const BROKER_DEATH = /^the broker dead-lettered it: \w{1,40}$/

/** Returns the name, or the message with its ids, numbers and quoted values replaced. */
function titleOf({ class: kind, signature, sample: message, name }: NewGroup): string {
  if (name !== undefined) return name
  if (signature === OVERFLOW || BROKER_DEATH.test(message)) return message
  const input = { class: kind, type: '', code: undefined, stack: undefined, handler: '' }
  return storable(signatureParts({ ...input, message }).message, MESSAGE_MAX)
}

/** A group to create. */
export interface CreatedGroup {
  readonly group: NewGroup
  /** The time of its first failure. */
  readonly at: number
}

/** Creates the groups that do not exist, and the named groups that they are parts of. */
export async function addGroups(
  run: RunSql,
  sourceId: number,
  created: readonly CreatedGroup[],
): Promise<void> {
  const roots = created.flatMap(({ group: { root }, at }) =>
    root === undefined ? [] : [{ group: root, at }],
  )
  const all = new Map([...created, ...roots].map((one) => [one.group.id, one]))
  await insert(run, sourceId, [...all.values()])
  const parts = created.flatMap(({ group: { id, root } }) =>
    root === undefined ? [] : [{ id, root: root.id }],
  )
  if (parts.length === 0) return
  const values = [parts.map(({ id }) => id), parts.map(({ root }) => root)]
  await run(ATTACH_PARTS, values)
  await run(SET_PARENTS, values)
}

async function insert(
  run: RunSql,
  sourceId: number,
  created: readonly CreatedGroup[],
): Promise<void> {
  await run(INSERT_GROUPS, [
    sourceId,
    created.map(({ group }) => group.id),
    created.map(({ group }) => group.algorithm),
    created.map(({ group }) => group.signature),
    created.map(({ group }) => group.class),
    created.map(({ group }) => group.code),
    created.map(({ group }) => titleOf(group)),
    created.map(({ group }) => group.sample),
    created.map(({ at }) => at),
    created.map(({ group }) => group.errorType),
    created.map(({ group }) => group.handler),
    created.map(({ group }) => group.frame),
    created.map(({ group }) => group.name ?? null),
  ])
}
