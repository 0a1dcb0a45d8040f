/** What the ingest needs to know of a source `s`. */
const KNOWN = `s.id, s.ingest_stopped_at is not null as is_stopped, coalesce((select 'lz4' = any(enumvals) from pg_settings
    where name = 'default_toast_compression'), false) as has_lz4`

/** Returns the source if the options change nothing of it. So a poll without dead letters writes nothing. */
export const UNCHANGED_SOURCE: string = `
select ${KNOWN} from redrive_catalog.source s
  where s.name = $1 and s.handler is not distinct from coalesce($2, s.handler)
    and s.retention = coalesce($3::float8 * interval '1 millisecond', s.retention)
    and s.open_retention = coalesce($4::float8 * interval '1 millisecond', s.open_retention)`

/** Registers a source. Options that are not set keep their stored value. */
export const REGISTER_SOURCE: string = `
insert into redrive_catalog.source as s (name, handler, retention, open_retention)
  values ($1, $2, coalesce($3::float8, $4::float8) * interval '1 millisecond',
    coalesce($5::float8, $6::float8) * interval '1 millisecond')
  on conflict (name) do update set handler = coalesce($2, s.handler),
    retention = coalesce($3::float8 * interval '1 millisecond', s.retention),
    open_retention = coalesce($5::float8 * interval '1 millisecond', s.open_retention)
  returning ${KNOWN}`

/** Starts a transaction that stores a batch. `begin` sends it, so it needs no round trip. */
export const beginIngest = (sourceId: number): string =>
  `select redrive_catalog.begin_ingest(${sourceId})`

/** Stores payloads in a third less time than PostgreSQL's default (pglz), at the same size. Not every server has it. */
export const USE_LZ4: string = `set local default_toast_compression = 'lz4'`

/** Writes existing rows again without a change. This locks them, so that maintenance cannot delete them now. */
export const SEE_UNDATED: string = `
insert into redrive_catalog.undated as u (identity)
  select distinct identity from unnest($1::uuid[]) as identity order by identity
  on conflict (identity) do update set seen_at = u.seen_at
  returning identity, (extract(epoch from seen_at) * 1000)::bigint as at`

/** The ids that exist already. */
export const KNOWN_DEAD_LETTERS: string = `
select id from redrive_catalog.dead_letter where id = any($1::uuid[])`

export const KNOWN_GROUPS: string = `
select id, error_type is null as lacks_type, handler is null as lacks_handler
  from redrive_catalog.failure_group where id = any($1::uuid[])`

/** Adds what older releases did not store. Locks in the order of ids, as all writers do. */
export const COMPLETE_GROUPS: string = `
with locked as (
  select id from redrive_catalog.failure_group where id = any($1::uuid[]) order by id for no key update)
update redrive_catalog.failure_group g set error_type = coalesce(g.error_type, n.error_type),
    handler = coalesce(g.handler, n.handler), frame = coalesce(g.frame, n.frame)
  from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as n (id, error_type, handler, frame)
  where g.id = n.id and g.id in (select id from locked)`

export const COUNT_GROUPS: string = `
select count(*)::integer as count from redrive_catalog.failure_group where source_id = $1`

export const INSERT_GROUPS: string = `
insert into redrive_catalog.failure_group
    (id, source_id, algorithm, signature, class, code, title, sample, error_type, handler, frame, name,
      first_seen_at, last_seen_at)
  select g.id, $1, g.algorithm, g.signature, g.class, g.code, g.title, g.sample, g.error_type, g.handler, g.frame, g.name,
      to_timestamp(g.at_ms / 1000.0), to_timestamp(g.at_ms / 1000.0)
    from unnest($2::uuid[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
        $10::text[], $11::text[], $12::text[], $13::text[])
      as g (id, algorithm, signature, class, code, title, sample, at_ms, error_type, handler, frame, name)
    order by g.id
  on conflict (id) do nothing`

/** Adds parts to their named groups, and to all groups that those are merged into. */
export const ATTACH_PARTS: string = `
insert into redrive_catalog.group_part (group_id, part_id)
  select n.root, n.id from unnest($1::uuid[], $2::uuid[]) as n (id, root)
  union select a.group_id, n.id from unnest($1::uuid[], $2::uuid[]) as n (id, root)
    join redrive_catalog.group_part a on a.part_id = n.root
  on conflict do nothing`

export const SET_PARENTS: string = `
update redrive_catalog.failure_group g set merged_into = n.root, root_id = coalesce(r.root_id, r.id)
  from unnest($1::uuid[], $2::uuid[]) as n (id, root) join redrive_catalog.failure_group r on r.id = n.root
  where g.id = n.id and g.merged_into is null`

/**
 * New groups (n) with the groups of earlier rules (o) that may have the same failures. A column that an older release left
 * empty matches any value. The caller compares the samples.
 */
const WITH_EARLIER_GROUPS = `from redrive_catalog.failure_group n join redrive_catalog.failure_group o on o.source_id = n.source_id
    and o.algorithm between 1 and n.algorithm - 1 and o.class = n.class and o.code is not distinct from n.code
    and (o.error_type is null or o.error_type = n.error_type) and (o.handler is null or o.handler = n.handler)
    and (o.frame is null or n.frame is null or o.frame = n.frame)
  where n.source_id = $1 and n.id = any($2::uuid[])`

export const OLDER_GROUPS: string = `
select n.id as newer, o.id as older, n.sample as newer_sample, o.sample as older_sample
  ${WITH_EARLIER_GROUPS} and o.continued_in is null
  order by n.id, o.id limit 10000`

/** Links groups of earlier rules ($1) to new groups ($2). Locks in the order of ids, as all writers do. */
export const LINK_GROUPS: string = `
with link as (
  select * from unnest($1::uuid[], $2::uuid[]) as l (older, newer)
), locked as (
  select id from redrive_catalog.failure_group where id in (select older from link) order by id for no key update
), linked as (
  update redrive_catalog.failure_group o set continued_in = l.newer
    from link l where o.id = l.older and o.continued_in is null and o.id in (select id from locked)
    returning l.newer, o.owner, o.state, o.muted_until, o.last_seen_at
), earlier as (
  select newer, (array_agg(owner order by last_seen_at desc) filter (where owner is not null))[1] as owner,
      bool_and(state = 'muted' and coalesce(muted_until > now(), true)) as is_muted,
      case when bool_and(muted_until is not null) then max(muted_until) end as muted_until
    from linked group by newer
)
update redrive_catalog.failure_group n set owner = e.owner,
    state = case when e.is_muted then 'muted' else n.state end,
    muted_until = case when e.is_muted then e.muted_until end
  from earlier e where n.id = e.newer`

/** The same, but only groups that users merged or split. */
export const EARLIER_MERGES: string = `
select n.id as newer, o.id as older, coalesce(o.merged_into, o.id) as parent, n.sample as newer_sample,
    o.sample as older_sample
  ${WITH_EARLIER_GROUPS} and n.merged_into is null
    and (o.merged_by is not null
      or exists (select from redrive_catalog.group_part p where p.group_id = o.id)
      or exists (select from redrive_catalog.group_split t where t.group_id = o.id))
  order by n.id, o.id limit 10000`

/** Merges new groups as the groups of earlier rules were. A target of merges, or a group with splits, takes the new one in. */
export const CARRY_MERGES: string = `
update redrive_catalog.failure_group g set merged_into = c.parent, root_id = coalesce(r.root_id, r.id),
    merged_by = coalesce(o.merged_by, 'redrive'), merged_at = coalesce(o.merged_at, clock_timestamp()),
    merge_reason = coalesce(o.merge_reason, 'the same failures, by later rules')
  from unnest($1::uuid[], $2::uuid[], $3::uuid[]) as c (id, parent, older)
    join redrive_catalog.failure_group r on r.id = c.parent join redrive_catalog.failure_group o on o.id = c.older
  where g.id = c.id and g.merged_into is null`

export const ADD_TO_COUNTS: string = `
select redrive_catalog.add_to_counts($1, $2::uuid[], $3::timestamptz[], $4::integer[], $5::bigint[],
  $6::timestamptz[], $7::timestamptz[], $8::date[], $9::integer[], $10::uuid[])`

/**
 * Creates partitions up to 90 days back and 7 days ahead. A date further away comes from a wrong clock; such
 * rows go to the default partition. Today is always created, for dead letters without a failure time.
 */
export const MAKE_DAYS_OF_BATCH: string = `
select redrive_catalog.make_days(array(
  select day from unnest($1::date[]) as day where day between t.today - 90 and t.today + 7
  union select t.today))
  from (select (now() at time zone 'UTC')::date as today) t`

/** 10 s: a release directly follows its commit. */
export const HOLD_MS = 10_000
const HELD_UNTIL = `clock_timestamp() + interval '${HOLD_MS} milliseconds'`

export const IS_HELD: string = `
select from redrive_catalog.unreleased
  where content = any($1::uuid[]) and held_until > clock_timestamp() limit 1`

/** Matches at most one row for each redelivered message. Skips locked rows. */
export const MATCH: string = `
update redrive_catalog.unreleased u set batch = $1, held_until = ${HELD_UNTIL}
  from (select content, count(*) as most from unnest($2::uuid[]) as content group by content) w
  cross join lateral (select f.batch, f.dead_letter_id from redrive_catalog.unreleased f
    where f.content = w.content and f.held_until <= clock_timestamp()
    limit w.most for update skip locked) f
  where u.batch = f.batch and u.dead_letter_id = f.dead_letter_id
  returning u.content`

export const HOLD: string = `
insert into redrive_catalog.unreleased (batch, dead_letter_id, content, held_until)
  select $1, u.id, u.content, ${HELD_UNTIL} from unnest($2::uuid[], $3::uuid[]) as u (id, content)`

export const DELETE_RELEASED: string = `
delete from redrive_catalog.unreleased where batch = $1`
