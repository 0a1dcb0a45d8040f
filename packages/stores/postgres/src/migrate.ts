import {
  migrate as migrateSchema,
  migrationSql as migrationSqlOf,
  missingMigrations as missingMigrationsOf,
  type SchemaMigrations,
} from '@redrive/postgres-internal'
import type { Pool } from 'pg'

/**
 * `id`, `sink`, `type` and `job` are escaped like the inside of a JSON string, because a text of PostgreSQL contains no
 * zero character and no lone surrogate. `version` changes with each save: a replay must not delete a later save.
 */
const DEAD_LETTERS = `
create sequence redrive_store.version;
create table redrive_store.dead_letter (
  store text not null,
  id text collate "C" not null,
  saved_at bigint not null,
  sink text not null,
  type text not null,
  class text not null,
  job text,
  bytes integer not null,
  content text not null,
  version bigint not null default nextval('redrive_store.version'),
  claim uuid,
  claimed_until timestamptz,
  primary key (store, id)
);
create index dead_letter_order on redrive_store.dead_letter (store, saved_at, id);
`

export const SCHEMA: SchemaMigrations = {
  name: 'redrive_store',
  migrateCall: 'migrate(pool)',
  sqlCall: 'migrationSql()',
  migrations: { '0001-dead-letters': DEAD_LETTERS },
}

/**
 * Migrates the schema `redrive_store` and returns the applied migrations. Several processes can call it
 * concurrently: one applies them, the others wait.
 */
export function migrate(pool: Pool): Promise<readonly string[]> {
  return migrateSchema(pool, SCHEMA)
}

/** Returns the migrations that `migrate` would apply. An empty list means that the schema is current or newer. */
export function missingMigrations(pool: Pool): Promise<readonly string[]> {
  return missingMigrationsOf(pool, SCHEMA)
}

/** Returns the migrations as SQL text, for a database where only an administrator may change the schema. */
export function migrationSql(): string {
  return migrationSqlOf(SCHEMA)
}
