import { CommandError, EXIT } from '../exit.ts'
import type { DevFolder } from './folder.ts'
import { changeMarker, readMarker } from './marker.ts'

/**
 * Records that this folder creates the tables in a database of the user. Throws if the database already has tables
 * of Redrive that this folder did not create: they may be in use, and the server would change them.
 */
export async function claimDatabase({ path }: DevFolder, url: string): Promise<void> {
  const name = databaseName(url)
  const databases = readMarker(path)?.databases ?? []
  if (databases.includes(name)) return
  const schemas = await redriveSchemas(url)
  if (schemas.length > 0) {
    throw new CommandError(
      EXIT.conflict,
      `The database "${name}" already has tables of Redrive (schema ${schemas.join(', ')}), and the folder "${path}" did not create them. Nothing was changed. Create an empty database for redrive dev, and pass it with --database.`,
    )
  }
  changeMarker(path, { databases: [...databases, name] })
}

/** Returns the address without the user and the password. */
function databaseName(url: string): string {
  if (!URL.canParse(url)) {
    throw new CommandError(
      EXIT.usage,
      '--database: expected an address such as postgres://user:password@host:5432/database.',
    )
  }
  const { hostname, port, pathname, searchParams } = new URL(url)
  // A socket is a parameter.
  return `${hostname || (searchParams.get('host') ?? '')}:${port || POSTGRES_PORT}${pathname}`
}

const POSTGRES_PORT = '5432'

/** The schemas of the runtime, the catalog and the server. */
const SCHEMAS = ['redrive', 'redrive_catalog', 'redrive_server']
const FIND_SCHEMAS = 'select nspname as name from pg_namespace where nspname = any($1) order by 1'

async function redriveSchemas(url: string): Promise<readonly string[]> {
  const { Client } = await import('pg')
  const client = new Client({ connectionString: url, connectionTimeoutMillis: CONNECT_MS })
  await client.connect()
  try {
    const { rows } = await client.query<{ readonly name: string }>(FIND_SCHEMAS, [SCHEMAS])
    return rows.map(({ name }) => name)
  } finally {
    await client.end()
  }
}

const CONNECT_MS = 10_000
