import { isRedriveError, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { explainErrors, explainSqlState, reportUnreachable, type SchemaInfo } from './sqlstate.ts'
import { inTransaction, type RunSql, runSqlOn } from './transaction.ts'

/** A schema and the migrations that create it. The table `migration` in it lists the applied ones. */
export interface SchemaMigrations extends SchemaInfo {
  /** SQL texts by name, in order. New ones are added at the end; a released one never changes. */
  readonly migrations: Readonly<Record<string, string>>
  /** Statement that runs after the migrations, for example to create partitions. It must not delete rows. */
  readonly afterwards?: string
}

/** One process migrates at a time, whatever the schema. No other lock of Redrive has this number. */
const LOCK = 'pg_advisory_xact_lock(7265647269766505)'

/** The table of the applied migrations. Quoted, because the name of the schema can be a reserved word. */
const ledgerOf = ({ name }: Pick<SchemaInfo, 'name'>): string => `"${name}".migration`

/** A migration must see what another process committed while this one waited for the lock. */
const BEGIN = 'begin isolation level read committed'

/**
 * Settings of the migrating transaction, so that those of the server, database and role have no effect. Objects
 * of the session's search_path must not get into the schema, and no timeout may end a long migration.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  search_path: 'pg_catalog, pg_temp',
  standard_conforming_strings: 'on',
  statement_timeout: '0',
  lock_timeout: '0',
}

const SET_ALL = Object.entries(SETTINGS)
  .map(([name, value]) => `perform pg_catalog.set_config('${name}', '${value}', true);`)
  .join('\n')

/**
 * Applies the missing migrations in one transaction and returns their names. Several processes can call it
 * concurrently: one applies them, the others wait.
 */
export async function migrate(pool: Pool, schema: SchemaMigrations): Promise<readonly string[]> {
  // Without missing migrations, a role that may not create tables can call it.
  if ((await missingMigrations(pool, schema)).length === 0) return []
  try {
    const applied = await inTransaction(
      pool,
      (client) => applyMissing(runSqlOn(client, reportUnreachable), schema),
      { begin: BEGIN, call: reportUnreachable },
    )
    if (applied.length > 0 && schema.afterwards !== undefined) await pool.query(schema.afterwards)
    return applied
  } catch (error) {
    throw cannotMigrate(error, schema)
  }
}

async function applyMissing(run: RunSql, schema: SchemaMigrations): Promise<readonly string[]> {
  await run(`do $settings$ begin\n${SET_ALL}\nend $settings$`)
  await run(createLedger(schema))
  const missing = await missingIn(run, schema)
  for (const name of missing) {
    await run(schema.migrations[name] as string)
    await run(`insert into ${ledgerOf(schema)} (name) values ($1)`, [name])
  }
  return missing
}

async function missingIn(run: RunSql, schema: SchemaMigrations): Promise<readonly string[]> {
  const applied = await run<{ name: string }>(`select name from ${ledgerOf(schema)}`)
  const names = new Set(applied.map(({ name }) => name))
  return Object.keys(schema.migrations).filter((name) => !names.has(name))
}

/** Returns the migrations that `migrate` would apply. An empty list means that the schema is current or newer. */
export async function missingMigrations(
  pool: Pool,
  schema: SchemaMigrations,
): Promise<readonly string[]> {
  const run = runSqlOn(pool, explainErrors(schema))
  const [ledger] = await run(`select where to_regclass('${ledgerOf(schema)}') is not null`)
  return ledger === undefined ? Object.keys(schema.migrations) : missingIn(run, schema)
}

/**
 * Returns the migrations as SQL text, for a database where only an administrator may change the schema. It can be
 * run again with every release, also while a process migrates: it skips applied migrations.
 */
export function migrationSql(schema: SchemaMigrations): string {
  const parts = Object.entries(schema.migrations).map(([name, sql]) => applyOnce(schema, name, sql))
  const afterwards = schema.afterwards === undefined ? [] : [`${schema.afterwards};\n`]
  return [createLedger(schema), ...parts, ...afterwards].join('\n')
}

/**
 * Creates the schema and the list of applied migrations. The lock is held until the transaction ends.
 *
 * The checks read the catalog tables with a query. `to_regnamespace` and `create schema if not exists` use the
 * session's cache, which an advisory lock does not renew: after the wait they miss the schema that another process
 * created during it. The checks also save a role that may not create from needing that privilege.
 */
const createLedger = ({ name }: SchemaInfo): string => `do $ledger$ begin
${SET_ALL}
perform ${LOCK};
if not exists (select from pg_namespace where nspname = '${name}') then
  create schema "${name}";
end if;
if not exists (select from pg_tables where schemaname = '${name}' and tablename = 'migration') then
  create table ${ledgerOf({ name })} (name text primary key, applied_at timestamptz not null default now());
end if;
end $ledger$;
`

const applyOnce = (schema: SchemaInfo, name: string, sql: string): string => `do $migration$ begin
${SET_ALL}
perform ${LOCK};
if exists (select from ${ledgerOf(schema)} where name = '${name}') then return; end if;
insert into ${ledgerOf(schema)} (name) values ('${name}');
execute $sql$${sql}$sql$;
end $migration$;
`

function cannotMigrate(cause: unknown, schema: SchemaInfo): RedriveError {
  const explained = explainSqlState(cause, schema)
  if (isRedriveError(explained, 'UNREACHABLE')) return explained
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new RedriveError(
    'TOPOLOGY_MISMATCH',
    `Cannot migrate the schema "${schema.name}": ${reason}. Grant the database role CREATE on this database, or ask an administrator to run the output of ${schema.sqlCall}.`,
    { cause },
  )
}
