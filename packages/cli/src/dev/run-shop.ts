import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '@redrive/server'
import type { Io } from '../io.ts'
import { connect } from '../server/connect.ts'
import type { Sources } from './config.ts'
import { SEEDS, SHOP_QUEUE, type Shop, startShop } from './shop.ts'
import type { Started } from './started.ts'
import { step } from './step.ts'

/** The source of the shop, with values to search its dead letters by. */
export const SHOP_SOURCES: Sources = {
  [SHOP_QUEUE]: {
    postgres: { queue: SHOP_QUEUE },
    extract: { order: '/order', customer: '/customer' },
  },
}

interface ShopDeps {
  readonly database: string
  readonly path: string
  readonly log: Log
}

/** The transport needs 4: to claim, to listen, for maintenance and for handlers. */
const SHOP_CONNECTIONS = 6

/** Starts the shop. Its first start also creates the failures. */
export async function runShop(
  io: Io,
  { database, path, log }: ShopDeps,
  started: Started,
): Promise<void> {
  const { Pool } = await import('pg')
  const pool = new Pool({ connectionString: database, max: SHOP_CONNECTIONS })
  pool.on('error', ({ message }) => log.warn(`Lost a connection of the shop: ${message}`))
  started.push({ what: 'connections of the shop', stop: () => pool.end() })
  // Its failures are intended, so they are not warnings on the terminal.
  const toFile = (line: string) => log.info(line)
  const shop = await startShop(pool, { warn: toFile, error: toFile })
  started.push({ what: 'shop', stop: () => shop.stop() })
  const marker = join(path, 'shop.json')
  if (!existsSync(marker)) {
    await step(io, 'Shop with an outage, wrong orders and a poison message', () => seed(io, shop))
    writeFileSync(marker, JSON.stringify(SEEDS))
  }
  shop.open()
}

const SEED_TIMEOUT_MS = 120_000
const POLL_MS = 250

/** Lets the shop fail, waits until the catalog has the dead letters, and ends the outage. */
async function seed(io: Io, shop: Shop): Promise<void> {
  const client = connect(io, {})
  const countOpen = async () => {
    const { groups } = await client.call('listGroups', { query: {} }, { signal: io.signal })
    return groups.reduce((sum, { openCount }) => sum + openCount, 0)
  }
  // A database of the user has dead letters of earlier starts, also after --fresh.
  const before = await countOpen()
  const expected = Object.values(SEEDS).reduce((sum, count) => sum + count, 0)
  const timeout = AbortSignal.timeout(SEED_TIMEOUT_MS)
  await shop.sendFailures()
  for (;;) {
    const open = (await countOpen()) - before
    if (open >= expected) break
    if (timeout.aborted) throw new Error(`Only ${open} of ${expected} dead letters arrived.`)
    await io.sleep(POLL_MS, io.signal)
    io.signal.throwIfAborted()
  }
  await shop.endOutage()
}
