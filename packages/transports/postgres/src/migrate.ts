import { isRedriveError, RedriveError } from '@redrive/core'
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type { Pool } from 'pg'
import { explained } from './explain.ts'
import { OUTBOX } from './migrations/0001-outbox.ts'
import { FUNCTIONS } from './migrations/0002-functions.ts'
import { REPLAYS } from './migrations/0003-replays.ts'
import { RETENTION } from './migrations/0004-retention.ts'

/** Only ever added to: what is released is never changed. */
const MIGRATIONS: Readonly<Record<string, string>> = {
  '0001-outbox': OUTBOX,
  '0002-functions': FUNCTIONS,
  '0003-replays': REPLAYS,
  '0004-retention': RETENTION,
}

const SCHEMA = 'redrive'

/**
 * Brings the schema `redrive` up to date and answers what was applied. Safe when several processes
 * start at once: one applies, the others wait for it.
 */
export async function migrate(pool: Pool): Promise<readonly string[]> {
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: borrowed(pool) }) })
  const migrator = new Migrator({
    db,
    provider: { getMigrations: () => Promise.resolve(asMigrations()) },
    migrationTableSchema: SCHEMA,
    migrationTableName: 'migration',
    migrationLockTableName: 'migration_lock',
  })
  try {
    const { error, results = [] } = await migrator.migrateToLatest()
    if (error !== undefined) throw cannotMigrate(error)
    const applied = results.map(({ migrationName }) => migrationName)
    if (applied.length > 0) await pool.query(MAKE_PARTITIONS)
    return applied
  } finally {
    await db.destroy()
  }
}

/** What `migrate` would apply. None: the schema is of this release, or of a later one. */
export async function missingMigrations(pool: Pool): Promise<readonly string[]> {
  try {
    const { rowCount } = await pool.query(LEDGER_EXISTS)
    const applied = rowCount === 0 ? [] : (await pool.query<{ name: string }>(APPLIED)).rows
    const names = new Set(applied.map(({ name }) => name))
    return Object.keys(MIGRATIONS).filter((name) => !names.has(name))
  } catch (error) {
    throw explained(error)
  }
}

const LEDGER_EXISTS = `select where to_regclass('redrive.migration') is not null`
const APPLIED = 'select name from redrive.migration'

/**
 * Creates the first partitions, so that the first event does not go to the default one. A migration must
 * not run `outbox_maintain`: that deletes rows, and only consumers have the retention of each queue.
 */
const MAKE_PARTITIONS = 'select redrive.outbox_make_partitions()'

/**
 * Returns the same as text, for a database where only an administrator may change the schema. It can be
 * run again with every release: it skips applied migrations and deletes no rows.
 */
export function migrationSql(): string {
  const parts = Object.entries(MIGRATIONS).map(
    ([name, sql]) => `do $migration$ begin
if exists (select from redrive.migration where name = '${name}') then return; end if;
insert into redrive.migration values ('${name}', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'));
execute $sql$${sql}$sql$;
end $migration$;
`,
  )
  return [LEDGER, ...parts, `${MAKE_PARTITIONS};\n`].join('\n')
}

/** Where the migrator keeps what was applied. */
const LEDGER = `create schema if not exists redrive;
create table if not exists redrive.migration (name varchar(255) primary key, timestamp varchar(255) not null);
create table if not exists redrive.migration_lock (id varchar(255) primary key, is_locked integer not null default 0);
insert into redrive.migration_lock values ('migration_lock', 0) on conflict do nothing;
`

function asMigrations(): Record<string, Migration> {
  return Object.fromEntries(
    Object.entries(MIGRATIONS).map(([name, sql]): [string, Migration] => [
      name,
      { up: async (db: Kysely<unknown>) => void (await db.executeQuery(CompiledQuery.raw(sql))) },
    ]),
  )
}

/** The pool is the caller's: the end of a migration must not end it. */
function borrowed(pool: Pool): Pick<Pool, 'connect' | 'end' | 'options'> {
  return { connect: () => pool.connect(), end: () => Promise.resolve(), options: pool.options }
}

function cannotMigrate(cause: unknown): RedriveError {
  const known = explained(cause)
  if (isRedriveError(known, 'UNREACHABLE')) return known
  const why = cause instanceof Error ? cause.message : String(cause)
  return new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The schema redrive could not be brought up to date: ${why}. The role needs the right to create in this database; or let an administrator run what migrationSql() prints.`,
    { cause },
  )
}
