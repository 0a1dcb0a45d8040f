import { signatureParts } from '@redrive/core'
import type { Run } from '../database.ts'
import type { DatedEntry, KnownSource, NewGroup } from './entry.ts'
import { groupId } from './identity.ts'
import { MESSAGE_MAX, storable } from '../text.ts'

/** 10,000 kinds of failures in one source: more is an error text that never repeats, or an attack. */
const GROUPS_MAX = 10_000

const KNOWN = 'select id from redrive_catalog.failure_group where id = any($1::uuid[])'
const COUNT =
  'select count(*)::integer as count from redrive_catalog.failure_group where source_id = $1'

const INSERT = `
insert into redrive_catalog.failure_group
    (id, source_id, algorithm, signature, class, code, title, sample, first_seen_at, last_seen_at)
  select g.id, $1, g.algorithm, g.signature, g.class, g.code, g.title, g.sample,
      to_timestamp(g.at_ms / 1000.0), to_timestamp(g.at_ms / 1000.0)
    from unnest($2::uuid[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[])
      as g (id, algorithm, signature, class, code, title, sample, at_ms)
    order by g.id
  on conflict (id) do nothing`

/** The groups of these entries, made where there are none; where there is no room, the one for the rest. */
export async function knownGroups(
  run: Run,
  source: KnownSource,
  entries: readonly DatedEntry[],
): Promise<ReadonlyMap<string, NewGroup>> {
  const wanted = new Map(
    entries.map(({ group, lastFailedAt }) => [group.id, { group, at: lastFailedAt }]),
  )
  const rows = await run<{ id: string }>(KNOWN, [[...wanted.keys()]])
  const known = new Set(rows.map(({ id }) => id))
  const missing = [...wanted.values()].filter(({ group }) => !known.has(group.id))
  if (missing.length === 0) return new Map()
  const [counted] = await run<{ count: number }>(COUNT, [source.id])
  const room = Math.max(0, GROUPS_MAX - (counted?.count ?? 0))
  const overflow = overflowOf(source)
  const rest = missing.slice(room)
  const made = missing.slice(0, room)
  const at = rest[0]?.at
  if (at !== undefined) made.push({ group: overflow, at })
  await insert(run, source.id, made)
  return new Map(rest.map(({ group }) => [group.id, overflow]))
}

const OVERFLOW = 'overflow'

function overflowOf({ name }: KnownSource): NewGroup {
  const title = `Every failure after the first ${GROUPS_MAX} kinds of this source`
  return {
    id: groupId(name, OVERFLOW),
    signature: OVERFLOW,
    algorithm: 0,
    class: 'unknown',
    code: null,
    sample: title,
  }
}

/** The message with its ids, numbers and quoted values replaced. */
function titleOf({ class: kind, signature, sample: message }: NewGroup): string {
  if (signature === OVERFLOW) return message
  const input = { class: kind, type: '', code: undefined, stack: undefined, handler: '' }
  return storable(signatureParts({ ...input, message }).message, MESSAGE_MAX)
}

async function insert(
  run: Run,
  sourceId: number,
  made: readonly { readonly group: NewGroup; readonly at: number }[],
): Promise<void> {
  await run(INSERT, [
    sourceId,
    made.map(({ group }) => group.id),
    made.map(({ group }) => group.algorithm),
    made.map(({ group }) => group.signature),
    made.map(({ group }) => group.class),
    made.map(({ group }) => group.code),
    made.map(({ group }) => titleOf(group)),
    made.map(({ group }) => group.sample),
    made.map(({ at }) => at),
  ])
}
