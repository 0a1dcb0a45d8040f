/** Replays of dead letters, and the view that lists them. */
export const REPLAY_FUNCTIONS: string = String.raw`
-- Closes the cycle of a failed row, adds it to the history and opens the next one. Id, key, lane, position
-- and bytes stay.
create function redrive.outbox_reopen(event_id uuid, new_generation bigint, replayed_by text, new_replay_id text) returns void
language sql as $$
  update redrive.outbox o set
    failure_history = o.failure_history || jsonb_build_object(
      'number', jsonb_array_length(o.failure_history) + 1,
      'attempts', o.attempts,
      'firstFailedAt', (extract(epoch from o.first_failed_at) * 1000)::bigint,
      'failedAt', (extract(epoch from o.failed_at) * 1000)::bigint,
      'lastDelayMs', coalesce(o.cycle -> 'lastDelayMs', '0'),
      'notBefore', null,
      'history', coalesce(o.cycle -> 'history', '[]'),
      'reason', o.reason,
      'lastError', o.last_error,
      'generation', o.generation,
      'replayId', o.replay_id,
      'replayedAt', (extract(epoch from clock_timestamp()) * 1000)::bigint,
      'replayedBy', replayed_by),
    status = 'pending', due_at = clock_timestamp(), attempts = 0, lapses = 0, generation = new_generation,
    replay_id = new_replay_id, lease_until = null, lease_token = null, first_failed_at = null, failed_at = null,
    deleted_at = null, last_error = null, reason = null, cycle = null
  where o.id = event_id
$$;

-- Replays a dead letter, for example from psql:
--   select redrive.outbox_replay(id, generation + 1, 'me@example.com') from redrive.outbox_dead_letter where …
-- The caller chooses the generation, which must be higher than the last one: the same command, run twice or
-- by two users, replays once. Returns 'replayed', or the reason against it: 'not_failed', 'not_newer',
-- 'not_found'.
create function redrive.outbox_replay(event_id uuid, new_generation bigint, replayed_by text) returns text
language plpgsql as $$
declare
  was record;
begin
  select o.status, o.generation into was from redrive.outbox o where o.id = event_id for update;
  if not found then return 'not_found'; end if;
  if was.status <> 'failed' then return 'not_failed'; end if;
  if new_generation <= was.generation then return 'not_newer'; end if;
  -- A repeated request for the same replay has the same id.
  perform redrive.outbox_reopen(event_id, new_generation, replayed_by,
    md5(event_id || ':' || new_generation)::uuid::text);
  return 'replayed';
end
$$;

-- A replay by the control plane. A repeated replay has no effect, even after the row has failed again. A row
-- that was dropped with its partition is created again from the data of the control plane.
create function redrive.outbox_republish(event_id uuid, new_replay_id text, copy jsonb, replayed_by text) returns void
language plpgsql as $$
declare
  was record;
begin
  select o.status, o.generation, o.replay_id, o.failure_history into was
    from redrive.outbox o where o.id = event_id for update;
  if not found then
    insert into redrive.outbox
      (id, queue, type, lane, key, content_type, headers, payload, generation, failure_history, replay_id)
      select event_id, c.queue, c.type, c.lane, c.key, c.content_type, c.headers, decode(c.payload, 'base64'),
        c.generation + 1,
        c.failure_history || (c.closed || jsonb_build_object(
          'replayedAt', (extract(epoch from clock_timestamp()) * 1000)::bigint, 'replayedBy', replayed_by)),
        new_replay_id
      from jsonb_to_record(copy) as c (queue text, type text, lane text, key text, content_type text,
        headers jsonb, payload text, generation bigint, failure_history jsonb, closed jsonb)
      on conflict do nothing;
  elsif was.status = 'failed' and was.replay_id is distinct from new_replay_id
    and not was.failure_history @> jsonb_build_array(jsonb_build_object('replayId', new_replay_id)) then
    perform redrive.outbox_reopen(event_id, was.generation + 1, replayed_by, new_replay_id);
  end if;
end
$$;

-- An overview of the dead letters for operators.
create view redrive.outbox_dead_letter as
  select id, queue, type, coalesce(key, id::text) as key, reason,
    cycle -> 'history' -> -1 ->> 'class' as class,
    cycle -> 'history' -> -1 ->> 'signature' as signature,
    last_error, attempts, first_failed_at, failed_at,
    jsonb_array_length(failure_history) + 1 as cycle_number, generation, lane, headers
  from redrive.outbox
  where failed_at is not null and deleted_at is null;
comment on view redrive.outbox_dead_letter is 'Dead letters, without their payload.';
`
