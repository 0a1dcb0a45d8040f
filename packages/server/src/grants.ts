import { RedriveError } from '@redrive/core'

/** PostgreSQL truncates longer names, so the statements would name another role. */
const NAME_BYTES = 63

const SCHEMAS = ['redrive', 'redrive_catalog', 'redrive_server'] as const

/** Rights on single tables that the role must not have, although it may read and write the other tables. */
const WITHHELD: Readonly<Record<string, string>> = {
  'redrive.migration': 'insert, update, delete',
  'redrive_catalog.migration': 'insert, update, delete',
  'redrive_server.migration': 'insert, update, delete',
  // The audit log only grows. Triggers refuse other changes, too, but an owner can drop triggers.
  'redrive_server.audit': 'update, delete',
  'redrive_server.audit_head': 'insert, delete',
  'redrive_server.audit_key': 'insert, update, delete',
}

/** It and the functions that it calls run as the owner. */
const MAINTAIN = 'redrive.outbox_maintenance_step(interval, interval, text[])'

/**
 * Returns the SQL that lets a role run the server without owning the tables. The owner runs it after each migration,
 * because new tables need it. It is safe to run more than once.
 */
export function grantsSql(role: string): string {
  if (role === '' || role.includes('\0') || Buffer.byteLength(role) > NAME_BYTES) {
    const text = `--print-grants: expected the name of a role with 1 to ${NAME_BYTES} bytes, got '${role}'.`
    throw new RedriveError('POLICY_INVALID', text)
  }
  const name = `"${role.replaceAll('"', '""')}"`
  const literal = `'${role.replaceAll("'", "''")}'`
  const schemas = SCHEMAS.join(', ')
  const withheld = Object.entries(WITHHELD).map(
    ([table, privileges]) => `revoke ${privileges} on ${table} from ${name};\n`,
  )
  return `-- Run this as the owner of the schemas, after each \`redrive migrate\`.
begin;
select set_config('redrive.granted_role', ${literal}, true);
do $check$ begin
  if exists (select from pg_namespace n join pg_roles r on r.oid = n.nspowner
    where n.nspname in (${SCHEMAS.map((one) => `'${one}'`).join(', ')}) and r.rolname = current_setting('redrive.granted_role')) then
    raise exception 'The role "%" owns the tables. Choose another role for the server.', current_setting('redrive.granted_role');
  end if;
end $check$;
grant usage on schema ${schemas} to ${name};
revoke all on all tables in schema ${schemas} from ${name};
grant select, insert, update, delete on all tables in schema ${schemas} to ${name};
grant usage on all sequences in schema ${schemas} to ${name};
${withheld.join('')}-- Only an owner can create and drop partitions. These functions run as the owner.
grant execute on function ${MAINTAIN} to ${name};
commit;
`
}
