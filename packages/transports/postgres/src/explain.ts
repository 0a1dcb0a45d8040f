import type { RedriveError } from '@redrive/core'
import { explainSqlState, readOnlyServer, schemaMissing } from '@redrive/postgres-internal'
import { schemaInfo } from './schema.ts'

/** Returns an error that explains what to do, or the same error when no explanation is known. */
export const explained = (error: unknown, schema: string): unknown =>
  explainSqlState(error, schemaInfo(schema))

export const notMigrated = (schema: string): RedriveError => schemaMissing(schemaInfo(schema))

export const readOnly = (): RedriveError => readOnlyServer()
