import type { Outbox, PostgresTransport } from '@redrive/postgres'
import type { Pool } from 'pg'
import type { PeekTarget } from '../peek/read-queue.ts'
import type { Certificates } from '../server/certificates.ts'

export async function openPostgres(
  { href, searchParams }: URL,
  queue: string,
  tls: Certificates | undefined,
): Promise<PeekTarget> {
  const [{ default: pg }, { postgresSource }] = await Promise.all([
    import('pg'),
    import('@redrive/postgres'),
  ])
  // One connection with one transaction, which is rolled back. The peek changes nothing.
  const pool = new pg.Pool({
    connectionString: href,
    // A copy, because the driver hides the key in its options.
    ...(tls === undefined ? {} : { ssl: { ...tls } }),
    max: 1,
    idleTimeoutMillis: 0,
    application_name: 'redrive peek',
  })
  pool.on('error', () => undefined)
  await pool.query('begin')
  const schema = searchParams.get('schema')
  return {
    source: postgresSource({ pool, queue, ...(schema === null ? {} : { schema }) }),
    trace: undefined,
    close: async () => {
      await pool.query('rollback')
      await pool.end()
    },
  }
}

/** A queue of the shop of `redrive dev`: the side of its consumer, and the side of its producer. */
export interface ShopQueue {
  readonly transport: PostgresTransport
  readonly orders: Outbox
}

/** Opens a queue in an outbox. */
export async function openShopQueue(pool: Pool, queue: string): Promise<ShopQueue> {
  const { outbox, postgres } = await import('@redrive/postgres')
  return { transport: postgres({ pool, queue }), orders: outbox({ pool, queue }) }
}
