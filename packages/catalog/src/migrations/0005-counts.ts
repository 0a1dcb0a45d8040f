/** A function that updates all counts of a batch in one round trip, with cached plans. */
export const COUNTS: string = String.raw`
-- Adds a batch to the counts: for each group and minute the number, the attempts, the first and the last failure, and
-- for each day of the first failure the number. left_groups lists a group once for each open dead letter that it
-- loses: a replay that fails in another way moves to another group.
create function redrive_catalog.add_to_counts(of_source integer, groups uuid[], minutes timestamptz[], counts integer[],
  attempts bigint[], firsts timestamptz[], lasts timestamptz[], days date[], day_counts integer[], left_groups uuid[])
returns void language plpgsql as $$
begin
  -- Locks the groups in the order of ids, so that two batches with the same groups cannot deadlock. With these locks,
  -- the order of the other updates does not matter.
  perform from redrive_catalog.failure_group g
    where g.id = any(groups || left_groups) order by g.id for no key update;
  update redrive_catalog.failure_group g set open_count = g.open_count - l.count
    from (select id, count(*) from unnest(left_groups) as id group by id) l where g.id = l.id;
  -- A resolved group becomes open again. It is regressed if the failure is newer than the resolution; an older
  -- failure only arrived late.
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
    -- Uses the current clock: maintenance may have marked the day as expired since this transaction started.
    on conflict (source_id, day) do update set count = s.count + excluded.count, last_ingested_at = clock_timestamp();
end
$$;
`
