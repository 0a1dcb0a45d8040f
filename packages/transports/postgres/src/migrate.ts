import {
  migrate as migrateSchema,
  migrationSql as migrationSqlOf,
  missingMigrations as missingMigrationsOf,
  type SchemaMigrations,
} from '@redrive/postgres-internal'
import { readOptions } from '@redrive/core/internal'
import type { Pool } from 'pg'
import { OUTBOX } from './migrations/0001-outbox.ts'
import { FUNCTIONS } from './migrations/0002-functions.ts'
import { REPLAYS } from './migrations/0003-replays.ts'
import { RETENTION } from './migrations/0004-retention.ts'
import { SETTINGS } from './migrations/0005-settings.ts'
import { MAINTENANCE_STEPS } from './migrations/0006-maintenance.ts'
import { ADD_FUNCTION } from './migrations/0007-add.ts'
import { TURN } from './migrations/0008-turn.ts'
import { inSchema, readSchema, schemaInfo } from './schema.ts'

const MIGRATIONS = {
  '0001-outbox': OUTBOX,
  '0002-functions': FUNCTIONS,
  '0003-replays': REPLAYS,
  '0004-retention': RETENTION,
  '0005-settings': SETTINGS,
  '0006-maintenance': MAINTENANCE_STEPS,
  '0007-add': ADD_FUNCTION,
  '0008-turn': TURN,
}

/**
 * Creates the first partitions, so that the first event does not go to the default one. A migration must not run the
 * maintenance: that deletes rows, and only consumers have the retention of each queue.
 */
const AFTERWARDS = 'select redrive.outbox_make_partitions()'

export interface SchemaOptions {
  /**
   * The schema of the outbox and the inbox. The transport, the outbox, the inbox and the control plane need the same
   * name. Default 'redrive'.
   */
  readonly schema?: string
}

function migrationsOf(call: string, options: SchemaOptions): SchemaMigrations {
  const schema = readOptions(call, options, readSchema)
  const migrations = Object.entries(MIGRATIONS).map(([name, sql]) => [name, inSchema(sql, schema)])
  return {
    ...schemaInfo(schema),
    migrations: Object.fromEntries(migrations) as SchemaMigrations['migrations'],
    afterwards: inSchema(AFTERWARDS, schema),
  }
}

/**
 * Migrates the schema and returns the applied migrations. Several processes can call it concurrently: one applies
 * them, the others wait.
 */
export async function migrate(pool: Pool, options: SchemaOptions = {}): Promise<readonly string[]> {
  return migrateSchema(pool, migrationsOf('migrate()', options))
}

/** Returns the migrations that `migrate` would apply. An empty list means that the schema is current or newer. */
export async function missingMigrations(
  pool: Pool,
  options: SchemaOptions = {},
): Promise<readonly string[]> {
  return missingMigrationsOf(pool, migrationsOf('missingMigrations()', options))
}

/**
 * Returns the migrations as SQL text, for a database where only an administrator may change the schema. It can be
 * run again with every release: it skips applied migrations and deletes no rows.
 */
export function migrationSql(options: SchemaOptions = {}): string {
  return migrationSqlOf(migrationsOf('migrationSql()', options))
}
