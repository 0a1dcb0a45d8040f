export const HOST = '127.0.0.1'
/** The only user of the database. */
export const USER = 'redrive'

/** Returns the URL of the database of a folder. */
export const urlAt = (port: number, password: string): string =>
  `postgres://${USER}:${password}@${HOST}:${port}/postgres`

/** Connects to a PostgreSQL. Returns its data folder, or undefined if it does not accept this password (yet). */
export async function dataFolderAt(url: string): Promise<string | undefined> {
  const { Client } = await import('pg')
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 1_000 })
  // A connection that breaks later is not a failure of this process.
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ readonly data_directory: string }>('show data_directory')
    return rows[0]?.data_directory
  } catch {
    // It is starting or stopping, or it is another program. The caller repeats the query, and reports an end.
    return undefined
  } finally {
    await client.end().catch(() => undefined)
  }
}
