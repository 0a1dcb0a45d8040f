/** Settings that are checked. */
export const SETTINGS: readonly string[] = [
  'archive_mode',
  'autovacuum',
  'autovacuum_freeze_max_age',
  'data_checksums',
  'fsync',
  'full_page_writes',
  'idle_in_transaction_session_timeout',
  'max_connections',
  'statement_timeout',
  'superuser_reserved_connections',
  'synchronous_commit',
  'synchronous_standby_names',
  'wal_level',
]

/** 20 of each kind: an operator starts with the worst ones. */
const MAX_ROWS = 20

export const SERVER_SQL: string = `
select current_database() as database, pg_is_in_recovery() as is_replica,
       current_setting('server_version_num')::int / 10000 as version,
       (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as used,
       pg_has_role('pg_read_all_stats', 'usage') as sees_all,
       (select age(datfrozenxid) from pg_database where datname = current_database()) as transaction_age`

export const SETTINGS_SQL: string =
  'select name, setting from pg_settings where name = any($1::text[])'

/** Reads overrides for this database or for all databases. */
export const OVERRIDES_SQL: string = `
select concat_ws(' in ',
         case when s.setrole <> 0 then 'role ' || r.rolname end,
         case when s.setdatabase <> 0 then 'database ' || d.datname end) as of,
       split_part(c, '=', 1) as name, substr(c, strpos(c, '=') + 1) as value
  from pg_db_role_setting s
  left join pg_roles r on r.oid = s.setrole
  left join pg_database d on d.oid = s.setdatabase
  cross join unnest(s.setconfig) as c
 where (s.setdatabase = 0 or d.datname = current_database()) and split_part(c, '=', 1) = any($1::text[])
 limit 1000`

export const STANDBYS_SQL: string = `select application_name as name, coalesce(sync_state, 'unknown') as sync from pg_stat_replication limit ${MAX_ROWS}`

/** Reads transactions of this database only: others do not block vacuum of its rows. */
export const TRANSACTIONS_SQL: string = `
select pid, concat_ws(' ', usename, application_name) as who, coalesce(state, 'unknown') as state,
       extract(epoch from clock_timestamp() - xact_start)::float8 * 1000 as age_ms
  from pg_stat_activity
 where xact_start is not null and datname = current_database()
   and backend_type = 'client backend' and pid <> pg_backend_pid()
 order by xact_start limit ${MAX_ROWS}`

export const PREPARED_SQL: string = `
select gid as name, extract(epoch from clock_timestamp() - prepared)::float8 * 1000 as age_ms
  from pg_prepared_xacts where database = current_database() order by prepared limit ${MAX_ROWS}`

export const SLOTS_SQL: string = `
select slot_name as name, active,
       coalesce(pg_wal_lsn_diff(
         case when pg_is_in_recovery() then pg_last_wal_receive_lsn() else pg_current_wal_lsn() end,
         restart_lsn), 0)::float8 as kept_bytes
  from pg_replication_slots order by 3 desc limit ${MAX_ROWS}`

export const SCHEMAS_SQL: string = `
select name, to_regnamespace(name) is not null as is_there from unnest($1::text[]) as name`

export const TABLES_SQL: string = `
select s.schemaname || '.' || s.relname as name, s.n_live_tup::float8 as live, s.n_dead_tup::float8 as dead,
       coalesce(not (c.reloptions && array['autovacuum_enabled=false', 'autovacuum_enabled=off', 'autovacuum_enabled=0', 'autovacuum_enabled=no']), true) as is_vacuumed
  from pg_stat_user_tables s join pg_class c on c.oid = s.relid
 where s.schemaname = any($1::text[]) order by s.n_dead_tup desc limit 1000`

/** Counts the days from today that have a partition in this schema, up to the first gap. */
export const PARTITIONS_SQL: string = `
select coalesce(min(ahead) filter (where to_regclass(quote_ident($1) || '.outbox_' || to_char((now() at time zone 'UTC')::date + ahead, 'YYYYMMDD')) is null), 8)::int as days
  from generate_series(0, 7) as ahead`

export const RETENTION_SQL: string = `
select extract(epoch from max(retention))::float8 * 1000 as retention_ms from redrive_catalog.source`
