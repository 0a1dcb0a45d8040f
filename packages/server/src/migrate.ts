import { isRedriveError, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { inTransaction, type Run, runOn } from './database.ts'
import { TABLES } from './migrations/0001-tables.ts'

/** Only ever added to: what is released is never changed. */
const MIGRATIONS: Readonly<Record<string, string>> = {
  '0001-tables': TABLES,
}

const LEDGER = `create schema if not exists redrive_server;
create table if not exists redrive_server.migration (name text primary key, applied_at timestamptz not null default now());
`

/** One at a time, whoever starts first; a number of our own, shared with nothing else here. */
const LOCK = 'select pg_advisory_xact_lock(7265647269766506)'

/**
 * Brings the schema `redrive_server` up to date and answers what was applied. Safe when several processes
 * start at once: one applies, the others wait for it.
 */
export async function migrateServer(pool: Pool): Promise<readonly string[]> {
  try {
    return await inTransaction(pool, applyMissing)
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
    await run('insert into redrive_server.migration (name) values ($1)', [name])
  }
  return missing
}

async function missingIn(run: Run): Promise<readonly string[]> {
  const known = await run<{ name: string }>('select name from redrive_server.migration')
  const names = new Set(known.map(({ name }) => name))
  return Object.keys(MIGRATIONS).filter((name) => !names.has(name))
}

/** What `migrateServer` would apply. None: the schema is of this release, or of a later one. */
export async function missingServerMigrations(pool: Pool): Promise<readonly string[]> {
  const run = runOn(pool)
  const [ledger] = await run(`select where to_regclass('redrive_server.migration') is not null`)
  return ledger === undefined ? Object.keys(MIGRATIONS) : missingIn(run)
}

/**
 * The same as text, for a database where only an administrator may change the schema. It can be run again,
 * and by every release: what is there already is left alone.
 */
export function serverMigrationSql(): string {
  const parts = Object.entries(MIGRATIONS).map(
    ([name, sql]) => `do $migration$ begin
if exists (select from redrive_server.migration where name = '${name}') then return; end if;
insert into redrive_server.migration (name) values ('${name}');
execute $sql$${sql}$sql$;
end $migration$;
`,
  )
  return [LEDGER, ...parts].join('\n')
}

function cannotMigrate(cause: unknown): unknown {
  if (isRedriveError(cause, 'UNREACHABLE')) return cause
  const why = cause instanceof Error ? cause.message : String(cause)
  return new RedriveError(
    'TOPOLOGY_MISMATCH',
    `The schema redrive_server could not be brought up to date: ${why}. The role needs the right to create in this database; or let an administrator run what \`redrive migrate --print-sql\` prints.`,
    { cause },
  )
}
