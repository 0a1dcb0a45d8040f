import { msSql } from './sql.ts'

/** The current state: a group whose mute has expired is open. */
export const GROUP_STATE: string = `case when g.state = 'muted' and g.muted_until <= now() then 'open' else g.state end`

/** The handler of a group. Only its source names it when the dead letters do not. */
export const HANDLER: string = `coalesce(g.handler, s.handler)`

export const GROUP_COLUMNS: string = `g.id, s.name as source, ${HANDLER} as handler, g.error_type, g.frame, g.signature, g.algorithm, g.class, g.code, g.title, g.sample,
    ${GROUP_STATE} as state, ${msSql('g.muted_until')} as muted_ms, g.is_regressed, ${msSql('g.regressed_at')} as regressed_ms,
    ${msSql('g.resolved_at')} as resolved_ms, g.owner, ${msSql('g.first_seen_at')} as first_ms,
    ${msSql('g.last_seen_at')} as last_ms, g.count::float8 as count, g.open_count::float8 as open_count,
    g.replaying_count::float8 as replaying_count, g.undecided_count::float8 as undecided_count,
    g.attempts::float8 as attempts`

export const FROM_GROUPS: string = `from redrive_catalog.failure_group g join redrive_catalog.source s on s.id = g.source_id`

export const FIRST_PARTS: string = `
select dead_letter_id, part, bytes, wire, key_id, wrapped_key
  from redrive_catalog.dead_letter_payload where dead_letter_id = any($1::uuid[]) and part = 0`

export const PREVIEW: string = `
select preview from redrive_catalog.dead_letter_payload where dead_letter_id = $1::uuid and part = 0`

export const PARTS: string = `
select part, bytes, wire, key_id, wrapped_key
  from redrive_catalog.dead_letter_payload
  where dead_letter_id = $1::uuid and part >= $2 and part < $3 order by part`

export const SOURCE_NAMES: string = `
select name from redrive_catalog.source order by name`

const sourcesOf = (table: string) => `
select o.id, s.name
  from redrive_catalog.${table} o join redrive_catalog.source s on s.id = o.source_id
  where o.id = any($1::uuid[])`

/** Selects the source name of each id, by the kind of resource. */
export const SOURCES_OF: Readonly<Record<'deadLetter' | 'group' | 'run' | 'setAside', string>> = {
  deadLetter: sourcesOf('dead_letter'),
  group: sourcesOf('failure_group'),
  run: sourcesOf('replay_run'),
  setAside: sourcesOf('set_aside'),
}

/** Returns the statement for a trend. Reads by primary key, group by group. There are thousands of groups at most. */
export const trendOf = (
  per: 'minute' | 'hour',
  inTime: readonly string[],
  ofGroups: readonly string[],
): string => `
select ${msSql(`r.${per}`)} as at, sum(r.count)::float8 as count
  from redrive_catalog.failure_group g join redrive_catalog.source s on s.id = g.source_id
  cross join lateral (
    select r.${per}, r.count from redrive_catalog.group_${per} r
      where ${['r.group_id = g.id', ...inTime].join(' and ')}
  ) r
  where ${['true', ...ofGroups].join(' and ')}
  group by r.${per} order by r.${per}`
