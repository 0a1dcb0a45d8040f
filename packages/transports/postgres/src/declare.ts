import { queryWithTimeout } from '@redrive/postgres-internal'
import { explained, notMigrated, readOnly } from './explain.ts'
import { inSchema, type Tables } from './schema.ts'
import { SCHEMA_STATE } from './sql/transport.ts'

/** Verifies that the schema has the last migration and that the server accepts changes. */
export async function verifySchema(tables: Tables): Promise<void> {
  const [isMigrated, isReadOnly] = await readSchemaState(tables)
  if (!isMigrated) throw notMigrated(tables.schema)
  if (isReadOnly) throw readOnly()
}

async function readSchemaState({ pool, schema }: Tables): Promise<readonly [boolean, boolean]> {
  try {
    const [row = [false, false]] = await queryWithTimeout<[boolean, boolean]>(
      pool,
      inSchema(SCHEMA_STATE, schema),
      [],
    )
    return row
  } catch (error) {
    throw explained(error, schema)
  }
}
