import { msSql } from './sql.ts'

/** The current state: a group whose mute has expired is open. */
export const GROUP_STATE: string = `case when g.state = 'muted' and g.muted_until <= now() then 'open' else g.state end`

/** The handler of a group. Only its source names it when the dead letters do not. */
export const HANDLER: string = `coalesce(g.handler, s.handler)`

/** Columns that are added up over the parts of a group. */
const SUMMED = ['count', 'open_count', 'replaying_count', 'undecided_count', 'attempts'] as const

const total = (name: (typeof SUMMED)[number]) => `(g.${name} + coalesce(m.${name}, 0))`

/** The values of a group with all groups that are merged into it, in `FROM_WHOLE_GROUPS`. */
export const WHOLE: Readonly<
  Record<(typeof SUMMED)[number] | 'first_seen_at' | 'last_seen_at', string>
> = {
  count: total('count'),
  open_count: total('open_count'),
  replaying_count: total('replaying_count'),
  undecided_count: total('undecided_count'),
  attempts: total('attempts'),
  first_seen_at: 'least(g.first_seen_at, m.first_seen_at)',
  last_seen_at: 'greatest(g.last_seen_at, m.last_seen_at)',
}

export const GROUP_COLUMNS: string = `g.id, s.name as source, ${HANDLER} as handler, g.error_type, g.frame, g.signature, g.algorithm, g.class, g.code, g.name, g.title, g.sample,
    ${GROUP_STATE} as state, ${msSql('g.muted_until')} as muted_ms, g.is_regressed, ${msSql('g.regressed_at')} as regressed_ms,
    ${msSql('g.resolved_at')} as resolved_ms, g.owner, ${msSql(WHOLE.first_seen_at)} as first_ms,
    ${msSql(WHOLE.last_seen_at)} as last_ms, ${WHOLE.count}::float8 as count,
    ${WHOLE.open_count}::float8 as open_count, ${WHOLE.replaying_count}::float8 as replaying_count,
    ${WHOLE.undecided_count}::float8 as undecided_count, ${WHOLE.attempts}::float8 as attempts,
    coalesce(m.merged, 0)::float8 as merged_count, g.merged_into, g.root_id, g.merged_by, ${msSql('g.merged_at')} as merged_ms,
    g.merge_reason, g.continued_in,
    array(select o.id from redrive_catalog.failure_group o where o.continued_in = g.id order by o.id limit 20) as continues`

export const FROM_GROUPS: string = `from redrive_catalog.failure_group g join redrive_catalog.source s on s.id = g.source_id`

/** Groups with the sums of the groups that are merged into them. Few groups are merged, so these are summed on each read. */
export const FROM_WHOLE_GROUPS: string = `${FROM_GROUPS}
    left join (
      select p.group_id, count(o.merged_by) as merged, ${SUMMED.map((name) => `sum(o.${name}) as ${name}`).join(', ')},
          min(o.first_seen_at) as first_seen_at, max(o.last_seen_at) as last_seen_at
        from redrive_catalog.group_part p join redrive_catalog.failure_group o on o.id = p.part_id group by p.group_id
    ) m on m.group_id = g.id`

export const FIRST_PARTS: string = `
select dead_letter_id, part, bytes, wire, key_id, wrapped_key
  from redrive_catalog.dead_letter_payload where dead_letter_id = any($1::uuid[]) and part = 0`

export const PREVIEW: string = `
select preview from redrive_catalog.dead_letter_payload where dead_letter_id = $1::uuid and part = 0`

export const PARTS: string = `
select part, bytes, wire, key_id, wrapped_key
  from redrive_catalog.dead_letter_payload
  where dead_letter_id = $1::uuid and part >= $2 and part < $3 order by part`

/** One part of a payload. Each statement sees one version of it: a replaced payload belongs to a later cycle. */
export const PART: string = `
select p.part, p.bytes, p.wire, p.key_id, p.wrapped_key, d.cycle::text as version,
    case p.part when 0 then (select count(*) from redrive_catalog.dead_letter_payload c where c.dead_letter_id = p.dead_letter_id)::integer end as parts
  from redrive_catalog.dead_letter_payload p join redrive_catalog.dead_letter d on d.id = p.dead_letter_id
  where p.dead_letter_id = $1::uuid and p.part = $2`

/** One part of a payload before an edit. It never changes. */
export const EARLIER_PART: string = `
select p.part, p.bytes, p.wire, p.key_id, p.wrapped_key, '' as version,
    case p.part when 0 then (select count(*) from redrive_catalog.payload_before c
      where c.dead_letter_id = p.dead_letter_id and c.cycle = p.cycle)::integer end as parts
  from redrive_catalog.payload_before p
  where p.dead_letter_id = $1::uuid and p.part = $2 and p.cycle = $3`

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
