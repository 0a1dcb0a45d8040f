import type { AddressInfo } from 'node:net'
import { resolvePolicy } from '@redrive/core'
import { rabbitmq } from '@redrive/rabbitmq'
import { consume, onEvent } from '@redrive/runtime'
import { readConfig } from './config.ts'
import { decodeUserEvent, UserEvent } from './events.ts'
import { ConsumerHealth, serveHealth } from './health.ts'
import { log, logEvent } from './log.ts'
import { openPool, Profiles } from './profiles.ts'

async function start(): Promise<void> {
  const config = readConfig(process.env)
  onEvent(logEvent)
  const health = new ConsumerHealth()
  const server = await serveHealth(health, config.http.port)
  const pool = openPool(config.postgres.url, resolvePolicy(config.policy))
  const profiles = new Profiles(pool)

  const consumer = await consume(
    rabbitmq(config.rabbitmq),
    // No errors are caught here. A thrown error decides what happens to the message.
    (message) => profiles.apply(message.body),
    {
      ...config.policy,
      decode: decodeUserEvent,
      // A message that does not match the schema is dead-lettered immediately, because a retry
      // would not help.
      schema: UserEvent,
      // While the database is down, its breaker pauses consumption. Messages wait in the queue,
      // uncounted. This needs no rule: Redrive recognises ECONNREFUSED, 57P01, 08006 and similar
      // codes.
      dependency: 'postgres',
    },
  )
  health.watch(consumer)
  const { port } = server.address() as AddressInfo
  log('info', 'started', { queue: consumer.source, port })

  const stop = async (signal: string) => {
    log('info', 'stopping', { signal })
    // First stop the user of the pool, then the pool.
    await consumer.stop()
    health.watch(undefined)
    server.close()
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
