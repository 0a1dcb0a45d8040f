import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { migrateAll, missingInAll } from '../composition.ts'
import type { Log } from './log.ts'

/** Refuses a database that is older than this release, unless it may be brought up to date. */
export async function prepareSchemas(
  pool: Pool,
  { mayMigrate, log }: { readonly mayMigrate: boolean; readonly log: Log },
): Promise<void> {
  const missing = await missingInAll(pool)
  if (missing.length === 0) return
  if (!mayMigrate) throw notMigrated(missing)
  for (const applied of await migrateAll(pool)) log.info(`Applied the migration ${applied}.`)
}

const notMigrated = (missing: readonly string[]) =>
  new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The database lacks ${missing.length} migrations: ${missing.join(', ')}. Run \`redrive migrate\` once, or say migrate: true.`,
    { problems: missing },
  )
