import { onEvent } from '@redrive/runtime'
import { BILLING_CONCURRENCY, startBilling } from './billing.ts'
import { readConfig } from './config.ts'
import { openPool } from './database.ts'
import { log, logEvent } from './log.ts'
import { startRelay } from './relay.ts'

/**
 * Connections of two consumers in addition to the handlers: two each, and one for LISTEN that both
 * share.
 */
const CONSUMER_CONNECTIONS = 5

async function start(): Promise<void> {
  const config = readConfig(process.env)
  onEvent(logEvent)
  const pool = openPool(config.databaseUrl, BILLING_CONCURRENCY + CONSUMER_CONNECTIONS)
  const billing = await startBilling(pool, config)
  const relay = await startRelay(pool, config)
  log('info', 'started')

  const stop = async (signal: string) => {
    log('info', 'stopping', { signal })
    // First stop the users of the pool, then the pool.
    await Promise.all([billing.stop(), relay.stop()])
    await pool.end()
    log('info', 'stopped')
  }
  process.once('SIGTERM', (signal) => void stop(signal))
  process.once('SIGINT', (signal) => void stop(signal))
}

try {
  await start()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}
