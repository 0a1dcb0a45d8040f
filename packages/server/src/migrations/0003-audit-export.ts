/** How far the audit log was exported. It is in the database, so that a restart or another process continues there. */
export const AUDIT_EXPORT: string = String.raw`
create table redrive_server.audit_export (
  -- Hash of the file or URL. A URL is often a secret.
  target text collate "C" primary key,
  -- The last entry that the target has accepted.
  sequence bigint not null default 0,
  -- The claim of the process that exports to the target now. It expires if the process crashes.
  claim uuid,
  claimed_until timestamptz
);
`
