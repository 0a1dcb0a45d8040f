import { type Check, readOptions, type Section } from '@redrive/core/internal'
import type { SchemaInfo } from '@redrive/postgres-internal'
import type { Pool } from 'pg'

/** The schema without the option `schema`. The texts of all statements name it. */
export const DEFAULT_SCHEMA = 'redrive'

/** A database and the schema in it that has the tables. */
export interface Tables {
  readonly pool: Pool
  readonly schema: string
}

/** Names that are the same with and without quotes. PostgreSQL reserves `pg_` and truncates after 63 characters. */
const NAME = /^(?!pg_)[a-z_][a-z0-9_]{0,62}$/

const SCHEMA: Check = {
  isValid: (value) => typeof value === 'string' && NAME.test(value),
  expected:
    "the name of a schema with at most 63 lower-case letters, digits and '_', which does not start with 'pg_'",
}

/** Reads the option `schema`. */
export const readSchema = (top: Section): string =>
  top.ifGiven<string>('schema', SCHEMA) ?? DEFAULT_SCHEMA

/** Checks the name given to a call that has no other options to check. */
export const schemaOf = (call: string, schema: string | undefined): string =>
  readOptions(call, { schema }, readSchema)

/** The qualifier of a name, and the name of the schema itself as a value. */
const REFERENCE = new RegExp(String.raw`\b${DEFAULT_SCHEMA}(?=\.|'::regnamespace)`, 'g')

/** Returns the SQL text for another schema. */
export function inSchema(text: string, schema: string): string {
  // Quoted, because the name can be a reserved word.
  return schema === DEFAULT_SCHEMA ? text : text.replaceAll(REFERENCE, `"${schema}"`)
}

/** Describes the schema in error messages. */
export function schemaInfo(schema: string): SchemaInfo {
  const isDefault = schema === DEFAULT_SCHEMA
  const option = `{ schema: '${schema}' }`
  return {
    name: schema,
    migrateCall: isDefault ? 'migrate(pool)' : `migrate(pool, ${option})`,
    sqlCall: isDefault ? 'migrationSql()' : `migrationSql(${option})`,
  }
}
