import type { PoolConfig } from 'pg'
import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { hint, print } from '../print.ts'
import { type ConfigOptions, loaded, refusedAsUsage } from '../server/config.ts'

export interface MigrateOptions extends CommonOptions, ConfigOptions {
  /** Prints the SQL, for a database administrator. Needs no config and no database. */
  readonly printSql?: boolean
  /** Prints the privileges of this role as SQL. Needs no config and no database. */
  readonly printGrants?: string
}

/** Migrates the schemas of the outbox, the catalog and the server. */
export async function migrateCommand(io: Io, options: MigrateOptions): Promise<ExitCode> {
  const [{ migrateAll }, { allMigrationSql, connectionOf, grantsSql, missingInAll }] =
    await Promise.all([import('@redrive/server'), import('@redrive/server/internal')])
  if (options.printSql) {
    io.stdout.write(allMigrationSql())
    return EXIT.ok
  }
  if (options.printGrants !== undefined) {
    const role = options.printGrants
    io.stdout.write(await refusedAsUsage(async () => grantsSql(role)))
    return EXIT.ok
  }
  const { config } = await loaded(io, options)
  const pool = await poolOf(connectionOf(config))
  try {
    if (options.dryRun) show(io, options, 'missing', await missingInAll(pool))
    else {
      show(io, options, 'applied', await migrateAll(pool))
      hint(io, options)`Start the server with: redrive serve`
    }
    return EXIT.ok
  } finally {
    await pool.end()
  }
}

/** 2 connections: one migrates, the other waits for it. */
const CONNECTIONS = 2
const CONNECT_MS = 10_000

async function poolOf(connection: PoolConfig) {
  const { Pool } = await import('pg')
  const connecting = { ...connection, connectionTimeoutMillis: CONNECT_MS }
  return new Pool({ ...connecting, max: CONNECTIONS, application_name: 'redrive migrate' })
}

function show(
  io: Io,
  options: CommonOptions,
  what: 'missing' | 'applied',
  names: readonly string[],
): void {
  print(io, options, {
    json: { [what]: names },
    human: (page) => {
      if (names.length === 0) page.line`Everything is up to date.`
      for (const name of names) page.line`${what === 'missing' ? 'Would apply' : 'Applied'} ${name}`
    },
  })
}
