/** Keys that sign replay ids. They prevent forged confirmations and forged failed copies of a replay. */
export const REPLAY_KEYS: string = String.raw`
create table redrive_catalog.replay_key (
  id integer generated always as identity primary key,
  secret bytea not null check (octet_length(secret) = 32),
  created_at timestamptz not null default clock_timestamp()
);
comment on table redrive_catalog.replay_key is 'Keys that sign replay ids. The newest signs new replays. An older one is needed until the replays that it signed are deleted.';

-- Adds a key and returns its id. Replays that are already published stay valid. Two random UUIDs have 244 random bits.
create function redrive_catalog.rotate_replay_key() returns integer
language sql as $$
  insert into redrive_catalog.replay_key (secret)
    values (decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex')) returning id
$$;
select redrive_catalog.rotate_replay_key();

alter table redrive_catalog.replay_item add column key_id integer;
comment on column redrive_catalog.replay_item.key_id is 'The key that signed its replay id. Null: not published yet, or published by a release without keys.';

alter table redrive_catalog.source add column mismatches bigint not null default 0, add column mismatched_at timestamptz;
comment on column redrive_catalog.source.mismatches is 'Number of confirmations and returned messages with a replay id that does not belong to them.';

-- Only roles that change dead letters may read the keys. A role that only reads could forge replay ids with them.
do $grants$
declare
  given record;
begin
  for given in
    select coalesce(quote_ident(r.rolname), 'public') as role
      from pg_class c cross join lateral aclexplode(c.relacl) a left join pg_roles r on r.oid = a.grantee
      where c.oid = 'redrive_catalog.dead_letter'::regclass and a.grantee <> c.relowner and a.privilege_type = 'UPDATE'
  loop
    execute format('grant select, insert, delete on redrive_catalog.replay_key to %s', given.role);
  end loop;
end
$grants$;
`
