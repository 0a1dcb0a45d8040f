import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { explained, inTransaction, type Run } from './database.ts'
import { MAKE_DAYS } from './retention.ts'
import { TABLES } from './migrations/0001-tables.ts'
import { PARTITIONS } from './migrations/0002-partitions.ts'
import { REPLAY } from './migrations/0003-replay.ts'
import { UNRELEASED } from './migrations/0004-unreleased.ts'
import { COUNTS } from './migrations/0005-counts.ts'

/** Only ever added to: what is released is never changed. */
const MIGRATIONS: Readonly<Record<string, string>> = {
  '0001-tables': TABLES,
  '0002-partitions': PARTITIONS,
  '0003-replay': REPLAY,
  '0004-unreleased': UNRELEASED,
  '0005-counts': COUNTS,
}

const LEDGER = `create schema if not exists redrive_catalog;
create table if not exists redrive_catalog.migration (name text primary key, applied_at timestamptz not null default now());
`

/** One at a time, whoever starts first; a number of our own, shared with nothing else here. */
const LOCK = 'select pg_advisory_xact_lock(7265647269766505)'

/** The first partitions, so that the first dead letter does not fall into the default one. */
const FIRST_DAYS = MAKE_DAYS

/**
 * Brings the schema `redrive_catalog` up to date and answers what was applied. Safe when several
 * processes start at once: one applies, the others wait for it.
 */
export async function migrate(pool: Pool): Promise<readonly string[]> {
  try {
    const applied = await inTransaction(pool, applyMissing)
    if (applied.length > 0) await pool.query(FIRST_DAYS)
    return applied
  } catch (error) {
    throw cannotMigrate(error)
  }
}

async function applyMissing(run: Run): Promise<readonly string[]> {
  await run(LOCK)
  await run(LEDGER)
  const missing = await missingIn(run)
  for (const name of missing) {
    await run(MIGRATIONS[name] as string)
    await run('insert into redrive_catalog.migration (name) values ($1)', [name])
  }
  return missing
}

async function missingIn(run: Run): Promise<readonly string[]> {
  const known = await run<{ name: string }>('select name from redrive_catalog.migration')
  const names = new Set(known.map(({ name }) => name))
  return Object.keys(MIGRATIONS).filter((name) => !names.has(name))
}

/** What `migrate` would apply. None: the schema is of this release, or of a later one. */
export async function missingMigrations(pool: Pool): Promise<readonly string[]> {
  try {
    return await inTransaction(pool, async (run) => {
      const [ledger] = await run(
        `select where to_regclass('redrive_catalog.migration') is not null`,
      )
      return ledger === undefined ? Object.keys(MIGRATIONS) : missingIn(run)
    })
  } catch (error) {
    throw explained(error)
  }
}

/**
 * The same as text, for a database where only an administrator may change the schema. It can be run
 * again, and by every release: what is there already is left alone.
 */
export function migrationSql(): string {
  const parts = Object.entries(MIGRATIONS).map(
    ([name, sql]) => `do $migration$ begin
if exists (select from redrive_catalog.migration where name = '${name}') then return; end if;
insert into redrive_catalog.migration (name) values ('${name}');
execute $sql$${sql}$sql$;
end $migration$;
`,
  )
  return [LEDGER, ...parts, `${FIRST_DAYS};\n`].join('\n')
}

function cannotMigrate(cause: unknown): unknown {
  const known = explained(cause)
  if (known !== cause) return known
  const why = cause instanceof Error ? cause.message : String(cause)
  return new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The schema redrive_catalog could not be brought up to date: ${why}. The role needs the right to create in this database; or let an administrator run what migrationSql() prints.`,
    { cause },
  )
}
