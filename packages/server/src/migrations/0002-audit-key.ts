/** The key of values in the audit log. Readers of the audit log do not see it, so they cannot try values. */
export const AUDIT_KEY: string = String.raw`
create table redrive_server.audit_key (
  only_one boolean primary key default true check (only_one),
  key bytea not null
);
-- Two random UUIDs: 244 random bits, without an extension.
insert into redrive_server.audit_key (key)
values (decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));
`
