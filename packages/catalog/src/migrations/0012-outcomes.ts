/** The state of a replay to consumers that confirm nothing: it was not dead-lettered again within the stated time. */
export const OUTCOMES: string = String.raw`
-- Not validated: existing rows have one of the earlier values, and a check of all rows would lock the table.
alter table redrive_catalog.dead_letter drop constraint dead_letter_status;
alter table redrive_catalog.dead_letter add constraint dead_letter_status check (status in
  ('open', 'replaying', 'unknown', 'resolved', 'discarded', 'expired', 'not_returned')) not valid;

alter table redrive_catalog.replay_run add column not_returned integer not null default 0;
alter table redrive_catalog.replay_item drop constraint replay_item_state;
alter table redrive_catalog.replay_item add constraint replay_item_state check (state in ('planned', 'skipped', 'queued',
  'claimed', 'publishing', 'published', 'resolved', 'failed_again', 'unknown', 'expired', 'cancelled', 'not_returned'))
  not valid;
-- A replay id is published for one item only.
drop index redrive_catalog.replay_item_replay;
create unique index replay_item_replay on redrive_catalog.replay_item (replay_id)
  where state in ('queued', 'claimed', 'publishing', 'published', 'resolved', 'failed_again', 'unknown', 'expired',
    'not_returned');
-- Finds the replay of a message that came back without the headers of Redrive.
create index replay_item_content on redrive_catalog.replay_item (content_sha256)
  where state in ('publishing', 'published', 'unknown', 'not_returned');

alter table redrive_catalog.source add column confirmed_at timestamptz;
comment on column redrive_catalog.source.confirmed_at is 'When its consumers confirmed a replay for the first time. If it is null, they never did.';
update redrive_catalog.source s set confirmed_at = r.at
  from (select r.source_id, min(i.settled_at) as at from redrive_catalog.replay_item i
      join redrive_catalog.replay_run r on r.id = i.run_id where i.proof = 'confirmation' group by 1) r
  where r.source_id = s.id;

create or replace function redrive_catalog.count_items() returns trigger
language plpgsql as $$
begin
  -- Locks in the order of ids, as everywhere: updates of several runs must not deadlock.
  perform from redrive_catalog.replay_run
    where id in (select run_id from was union select run_id from becomes) order by id for no key update;
  update redrive_catalog.replay_run r set
      planned = r.planned + d.planned, skipped = r.skipped + d.skipped, queued = r.queued + d.queued,
      claimed = r.claimed + d.claimed, publishing = r.publishing + d.publishing,
      published = r.published + d.published, resolved = r.resolved + d.resolved,
      failed_again = r.failed_again + d.failed_again, unknown = r.unknown + d.unknown,
      expired = r.expired + d.expired, cancelled = r.cancelled + d.cancelled,
      not_returned = r.not_returned + d.not_returned
    from (
      select run_id,
          sum(n) filter (where state = 'planned') as planned, sum(n) filter (where state = 'skipped') as skipped,
          sum(n) filter (where state = 'queued') as queued, sum(n) filter (where state = 'claimed') as claimed,
          sum(n) filter (where state = 'publishing') as publishing,
          sum(n) filter (where state = 'published') as published,
          sum(n) filter (where state = 'resolved') as resolved,
          sum(n) filter (where state = 'failed_again') as failed_again,
          sum(n) filter (where state = 'unknown') as unknown,
          sum(n) filter (where state = 'expired') as expired,
          sum(n) filter (where state = 'cancelled') as cancelled,
          sum(n) filter (where state = 'not_returned') as not_returned
        from (
          select run_id, state, 1 as n from becomes union all select run_id, state, -1 from was
          -- A zero for every state, so that no sum is null.
          union all select run_id, s.state, 0 from (select run_id from becomes union select run_id from was) r
            cross join unnest(array['planned', 'skipped', 'queued', 'claimed', 'publishing', 'published', 'resolved',
              'failed_again', 'unknown', 'expired', 'cancelled', 'not_returned']) as s (state)
        ) moves
        group by run_id
    ) d
    where r.id = d.run_id;
  return null;
end
$$;
`
