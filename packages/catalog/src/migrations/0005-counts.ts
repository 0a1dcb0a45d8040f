/** Counts: one round trip for each batch, with plans that are made once. */
export const COUNTS: string = String.raw`
-- Adds what a batch added: for each group and minute how many, their attempts, their first and last failure;
-- for each day of the first failure how many. left_groups are groups that lose an open one, as often as they
-- do: one that is replayed and fails in another way is no longer an open one of the group it was in.
create function redrive_catalog.add_to_counts(of_source integer, groups uuid[], minutes timestamptz[], counts integer[],
  attempts bigint[], firsts timestamptz[], lasts timestamptz[], days date[], day_counts integer[], left_groups uuid[])
returns void language plpgsql as $$
begin
  -- In the order of ids: two that update the same groups wait for each other, and never both. Whoever has
  -- them goes through the rest in any order.
  perform from redrive_catalog.failure_group g
    where g.id = any(groups || left_groups) order by g.id for no key update;
  update redrive_catalog.failure_group g set open_count = g.open_count - l.count
    from (select id, count(*) from unnest(left_groups) as id group by id) l where g.id = l.id;
  -- A group that someone called resolved is open again. It is regressed when the failure is younger than
  -- that; an older one only came late.
  update redrive_catalog.failure_group g set
      count = g.count + a.count, open_count = g.open_count + a.count, attempts = g.attempts + a.attempts,
      first_seen_at = least(g.first_seen_at, a.first), last_seen_at = greatest(g.last_seen_at, a.last),
      is_regressed = g.is_regressed or coalesce(a.last > g.resolved_at, false),
      regressed_at = case when a.last > g.resolved_at then now() else g.regressed_at end,
      resolved_at = null,
      state = case g.state when 'resolved' then 'open' else g.state end
    from (select u.id, sum(u.count) as count, sum(u.attempts) as attempts, min(u.first) as first, max(u.last) as last
      from unnest(groups, counts, attempts, firsts, lasts) as u (id, count, attempts, first, last)
      group by u.id) a
    where g.id = a.id;
  insert into redrive_catalog.group_minute as r (group_id, minute, count)
    select * from unnest(groups, minutes, counts)
    on conflict (group_id, minute) do update set count = r.count + excluded.count;
  insert into redrive_catalog.group_hour as r (group_id, hour, count)
    select u.id, date_trunc('hour', u.minute, 'UTC'), sum(u.count)
      from unnest(groups, minutes, counts) as u (id, minute, count) group by 1, 2
    on conflict (group_id, hour) do update set count = r.count + excluded.count;
  insert into redrive_catalog.source_day as s (source_id, day, count, last_ingested_at)
    select of_source, d.day, d.count, now() from unnest(days, day_counts) as d (day, count) order by d.day
    -- By the clock: upkeep may have called the day over since this transaction began.
    on conflict (source_id, day) do update set count = s.count + excluded.count, last_ingested_at = clock_timestamp();
end
$$;
`
