import { queryWithTimeout } from '@redrive/postgres-internal'
import type { Pool } from 'pg'
import { explained, notMigrated, readOnly } from './explain.ts'
import { SCHEMA_STATE } from './sql/transport.ts'

/** Verifies that the schema has the last migration and that the server accepts changes. */
export async function verifySchema(pool: Pool): Promise<void> {
  const [isMigrated, isReadOnly] = await readSchemaState(pool)
  if (!isMigrated) throw notMigrated()
  if (isReadOnly) throw readOnly()
}

async function readSchemaState(pool: Pool): Promise<readonly [boolean, boolean]> {
  try {
    const [row = [false, false]] = await queryWithTimeout<[boolean, boolean]>(
      pool,
      SCHEMA_STATE,
      [],
    )
    return row
  } catch (error) {
    throw explained(error)
  }
}
