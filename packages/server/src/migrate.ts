import {
  migrate,
  migrationSql,
  missingMigrations,
  type SchemaMigrations,
} from '@redrive/postgres-internal'
import type { Pool } from 'pg'
import { SCHEMA } from './database.ts'
import { TABLES } from './migrations/0001-tables.ts'
import { AUDIT_KEY } from './migrations/0002-audit-key.ts'
import { AUDIT_EXPORT } from './migrations/0003-audit-export.ts'
import { AUDIT_UNMASKED } from './migrations/0004-audit-unmasked.ts'
import { ALERT_ENDS } from './migrations/0005-alert-ends.ts'
import { ALERT_FAILURES } from './migrations/0006-alert-failures.ts'

const MIGRATIONS: SchemaMigrations = {
  ...SCHEMA,
  migrations: {
    '0001-tables': TABLES,
    '0002-audit-key': AUDIT_KEY,
    '0003-audit-export': AUDIT_EXPORT,
    '0004-audit-unmasked': AUDIT_UNMASKED,
    '0005-alert-ends': ALERT_ENDS,
    '0006-alert-failures': ALERT_FAILURES,
  },
}

/**
 * Applies the missing migrations of the schema `redrive_server` and returns their names. It is safe to run in
 * several processes concurrently: one applies the migrations and the others wait.
 */
export function migrateServer(pool: Pool): Promise<readonly string[]> {
  return migrate(pool, MIGRATIONS)
}

/** Returns the migrations that `migrateServer` would apply. The list is empty for this release and later ones. */
export function missingServerMigrations(pool: Pool): Promise<readonly string[]> {
  return missingMigrations(pool, MIGRATIONS)
}

/**
 * Returns the SQL of the migrations, for a database where only an administrator may change the schema. It skips
 * applied migrations, so it is safe to run more than once and with any release.
 */
export function serverMigrationSql(): string {
  return migrationSql(MIGRATIONS)
}
