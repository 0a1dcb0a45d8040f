import {
  migrate as migrateSchema,
  migrationSql as migrationSqlOf,
  missingMigrations as missingMigrationsOf,
  type SchemaMigrations,
} from '@redrive/postgres-internal'
import type { Pool } from 'pg'
import { SCHEMA } from './database.ts'
import { MAKE_DAYS } from './statements.ts'
import { TABLES } from './migrations/0001-tables.ts'
import { PARTITIONS } from './migrations/0002-partitions.ts'
import { REPLAY } from './migrations/0003-replay.ts'
import { UNRELEASED } from './migrations/0004-unreleased.ts'
import { COUNTS } from './migrations/0005-counts.ts'
import { FAILURES } from './migrations/0006-failures.ts'
import { FILTERS } from './migrations/0007-filters.ts'
import { SET_ASIDE } from './migrations/0008-set-aside.ts'
import { DUE_TIMES } from './migrations/0009-due-times.ts'
import { RETENTION } from './migrations/0010-retention.ts'
import { SELECTIONS } from './migrations/0011-selections.ts'
import { OUTCOMES } from './migrations/0012-outcomes.ts'
import { OPEN_COUNTS } from './migrations/0013-open-counts.ts'
import { CONTINUED_GROUPS } from './migrations/0014-continued-groups.ts'
import { MERGED_GROUPS } from './migrations/0015-merged-groups.ts'
import { REGROUPING } from './migrations/0016-regrouping.ts'
import { REPLAY_KEYS } from './migrations/0017-replay-keys.ts'
import { NAMED_PARTS } from './migrations/0018-named-parts.ts'
import { SET_ASIDE_REPLAYS } from './migrations/0019-set-aside-replays.ts'

const MIGRATIONS: SchemaMigrations = {
  ...SCHEMA,
  migrations: {
    '0001-tables': TABLES,
    '0002-partitions': PARTITIONS,
    '0003-replay': REPLAY,
    '0004-unreleased': UNRELEASED,
    '0005-counts': COUNTS,
    '0006-failures': FAILURES,
    '0007-filters': FILTERS,
    '0008-set-aside': SET_ASIDE,
    '0009-due-times': DUE_TIMES,
    '0010-retention': RETENTION,
    '0011-selections': SELECTIONS,
    '0012-outcomes': OUTCOMES,
    '0013-open-counts': OPEN_COUNTS,
    '0014-continued-groups': CONTINUED_GROUPS,
    '0015-merged-groups': MERGED_GROUPS,
    '0016-regrouping': REGROUPING,
    '0017-replay-keys': REPLAY_KEYS,
    '0018-named-parts': NAMED_PARTS,
    '0019-set-aside-replays': SET_ASIDE_REPLAYS,
  },
  // Creates the first partitions, so that the first dead letters are not stored in the default partition.
  afterwards: MAKE_DAYS,
}

/**
 * Updates the schema `redrive_catalog` and returns the names of the applied migrations. Several processes can
 * call it at the same time: one applies the migrations, the others wait for it.
 */
export function migrate(pool: Pool): Promise<readonly string[]> {
  return migrateSchema(pool, MIGRATIONS)
}

/** Returns the names of migrations that `migrate` would apply. None: the schema is of this release or newer. */
export function missingMigrations(pool: Pool): Promise<readonly string[]> {
  return missingMigrationsOf(pool, MIGRATIONS)
}

/**
 * Returns the migrations as SQL text, for databases where only an administrator may change the schema. The text
 * can be run again, also by every later release: applied migrations are skipped.
 */
export function migrationSql(): string {
  return migrationSqlOf(MIGRATIONS)
}
