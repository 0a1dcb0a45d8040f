/** 60 s: enough for the largest plan, but not unlimited. */
export const SETTINGS: string = `set transaction isolation level repeatable read; set local statement_timeout = '60s';
  set local enable_seqscan = off; set local enable_bitmapscan = off; set local jit = off`

export const SOURCE_NAME: string = `
select name from redrive_catalog.source where id = $1`

export const HAS_CONFIRMED: string = `
select confirmed_at is not null as has_confirmed from redrive_catalog.source where name = $1`

const CANDIDATES = `
select d.id, d.status, d.version, d.cycle, d.type, d.payload_bytes, d.is_quarantined, d.source_id, d.origin, d.reason,
    extract(epoch from now() - d.first_failed_at)::float8 * 1000 as age_ms,
    extract(epoch from now() - d.last_failed_at)::float8 * 1000 as since_last_ms,
    (select i.run_id from redrive_catalog.replay_item i where i.dead_letter_id = d.id
      and i.state in ('queued', 'claimed', 'publishing', 'published', 'unknown')) as run_id,
    -- By signature, too: a rule, a split or an apply may have moved it to another group since.
    coalesce((select coalesce(b.root_id, c.group_id) = coalesce(a.root_id, d.group_id)
        or c.history -> -1 ->> 'signature' = d.history -> -1 ->> 'signature'
      from redrive_catalog.failure_cycle c left join redrive_catalog.failure_group b on b.id = c.group_id
        left join redrive_catalog.failure_group a on a.id = d.group_id
      where c.dead_letter_id = d.id and c.cycle = d.cycle - 1), false) as is_same_failure`

export const CANDIDATES_BY_ID: string = `${CANDIDATES}
  from redrive_catalog.dead_letter d
  where d.id = any($1::uuid[])
  order by d.id`

/** Returns the statement for the dead letters that another statement finds. */
export const candidatesMatching = (matching: string): string => `${CANDIDATES}
  from (select q.id from (${matching}) q) f join redrive_catalog.dead_letter d on d.id = f.id
  order by d.id`

export const RUN_OF_REQUEST: string = `
select id from redrive_catalog.replay_run where request = $1`

export const INSERT_RUN: string = `
insert into redrive_catalog.replay_run
    (id, source_id, request, hash, asked, options, change, note, planned_by, planned, skipped)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

export const INSERT_ITEMS: string = `
insert into redrive_catalog.replay_item
    (run_id, place, dead_letter_id, replay_id, cycle, version, state, reason, other_run, content_sha256)
  select $1, i.place, i.dead_letter_id, i.replay_id, i.cycle, i.version, i.state, i.reason, i.other_run,
      decode(i.content, 'hex')
    from unnest($2::integer[], $3::uuid[], $4::uuid[], $5::integer[], $6::integer[], $7::text[], $8::text[],
      $9::uuid[], $10::text[]) as i (place, dead_letter_id, replay_id, cycle, version, state, reason, other_run, content)`

/** Counts earlier replays of each dead letter in its current cycle. An intended second replay gets a new id. */
export const REPEATS: string = `
select dead_letter_id as id, count(*)::integer as times
  from redrive_catalog.replay_item i join unnest($1::uuid[], $2::integer[]) as c (id, cycle)
    on i.dead_letter_id = c.id and i.cycle = c.cycle
  where i.state not in ('planned', 'skipped', 'cancelled') group by 1`

export const SCHEMAS: string = `
select type, schema from redrive_catalog.source_schema where source_id = $1`

export const STORE_SCHEMA: string = `
insert into redrive_catalog.source_schema (source_id, type, schema)
  select id, $2, $3 from redrive_catalog.source where name = $1
  on conflict (source_id, type) do update set schema = excluded.schema, captured_at = now()
  returning source_id`
