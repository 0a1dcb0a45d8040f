/** Functions that look up names when they run. The others are bound when they are created. */
const PINNED = [
  'outbox_settle_partition(regclass)',
  'outbox_make_partition(date)',
  'outbox_make_partitions()',
  'outbox_turn(uuid[], bigint[], jsonb, text, integer, double precision, timestamptz, text)',
  'outbox_keep(uuid[], bigint[], double precision)',
  'outbox_reopen(uuid, bigint, text, text)',
  'outbox_replay(uuid, bigint, text)',
  'outbox_republish(uuid, text, jsonb, text)',
  'outbox_maintain(interval, interval, text)',
  'outbox_drop_partition(regclass, interval, interval)',
  'inbox_forget(text, interval)',
]

/**
 * Makes the schema independent of the settings of a session. A search_path with other schemas before
 * pg_catalog can replace functions such as now().
 */
export const SETTINGS: string = String.raw`
${PINNED.map((name) => `alter function redrive.${name} set search_path = pg_catalog, pg_temp;`).join('\n')}
-- Its text has backslashes, which mean something else with standard_conforming_strings = off.
alter function redrive.outbox_maintain(interval, interval, text) set standard_conforming_strings = on;

-- Bound when they are created. A pinned search_path would cost more, because these two are inlined.
create or replace function redrive.uuid_v7(moment timestamptz default clock_timestamp()) returns uuid
language sql volatile parallel safe
begin atomic
  select encode(
    set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid())
        placing substring(int8send((extract(epoch from moment) * 1000)::bigint) from 3)
        from 1 for 6),
      52, 1), 53, 1),
    'hex')::uuid;
end;

create or replace function redrive.uuid_floor(moment timestamptz) returns uuid
language sql stable parallel safe
begin atomic
  select rpad(lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0'), 32, '0')::uuid;
end;

-- Consumers with manually granted privileges store their retention too.
do $grants$
declare
  given record;
begin
  for given in
    select a.privilege_type as privilege, coalesce(quote_ident(r.rolname), 'public') as role
      from pg_class c cross join lateral aclexplode(c.relacl) a left join pg_roles r on r.oid = a.grantee
      where c.oid = 'redrive.outbox'::regclass and a.grantee <> c.relowner
  loop
    execute format('grant %s on redrive.outbox_retention to %s', given.privilege, given.role);
  end loop;
end
$grants$;

-- Stores the retention of a queue. Every consumer does this when it starts, so that any process can run
-- the maintenance of all queues.
create function redrive.outbox_retain(of_queue text, keep_delivered interval, keep_failed interval) returns void
language sql
begin atomic
  insert into redrive.outbox_retention as r (queue, keep_delivered, keep_failed)
    values (of_queue, keep_delivered, keep_failed)
    on conflict (queue) do update
      set keep_delivered = excluded.keep_delivered, keep_failed = excluded.keep_failed
      where (r.keep_delivered, r.keep_failed) is distinct from (excluded.keep_delivered, excluded.keep_failed);
end;
`
