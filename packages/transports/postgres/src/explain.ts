import type { RedriveError } from '@redrive/core'
import {
  explainSqlState,
  readOnlyServer,
  type SchemaInfo,
  schemaMissing,
} from '@redrive/postgres-internal'

export const SCHEMA: SchemaInfo = {
  name: 'redrive',
  migrateCall: 'migrate(pool)',
  sqlCall: 'migrationSql()',
}

/** Returns an error that explains what to do, or the same error when no explanation is known. */
export const explained = (error: unknown): unknown => explainSqlState(error, SCHEMA)

export const notMigrated = (): RedriveError => schemaMissing(SCHEMA)

export const readOnly = (): RedriveError => readOnlyServer()
