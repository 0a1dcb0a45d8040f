import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { migrateAll, missingInAll } from '../composition.ts'
import type { Log } from './log.ts'

/** Applies missing migrations if allowed. Otherwise rejects a database that is older than this release. */
export async function prepareSchemas(
  pool: Pool,
  { mayMigrate, log }: { readonly mayMigrate: boolean; readonly log: Log },
): Promise<void> {
  const missing = await missingInAll(pool)
  if (missing.length === 0) return
  if (!mayMigrate) throw notMigrated(missing)
  for (const applied of await migrateAll(pool)) log.info(`Applied migration "${applied}".`)
}

const notMigrated = (missing: readonly string[]) =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The database is not up to date. Missing migrations: ${missing.join(', ')}. Run \`redrive migrate\`, or set migrate: true.`,
    { problems: missing },
  )
