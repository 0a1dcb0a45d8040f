import { ignorePoolErrors } from '@redrive/postgres-internal'
import type { DeadLetterStore } from '@redrive/runtime'
import { type PostgresStoreOptions, resolveOptions } from './options.ts'
import { PostgresStore } from './store.ts'

export { migrate, migrationSql, missingMigrations } from './migrate.ts'
export type { PostgresStoreOptions } from './options.ts'

/**
 * Creates a dead-letter store in PostgreSQL, shared by all processes with the same name. Call `migrate(pool)` first.
 *
 * ```ts
 * await migrate(pool)
 * const store = postgresStore({ pool, name: 'orders' })
 * ```
 */
export function postgresStore(options: PostgresStoreOptions): DeadLetterStore {
  const resolved = resolveOptions(options)
  ignorePoolErrors(resolved.pool)
  return new PostgresStore(resolved)
}
