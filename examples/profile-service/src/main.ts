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
    // Nothing is caught here: what it throws decides what becomes of the message.
    (message) => profiles.apply(message.body),
    {
      ...config.policy,
      decode: decodeUserEvent,
      // A message that does not fit is a dead letter at once: trying again would not help.
      schema: UserEvent,
      // While it is down its breaker pauses consumption: messages wait in the queue, uncounted. No rule
      // is needed for that: Redrive knows ECONNREFUSED, 57P01, 08006 and the like.
      dependency: 'postgres',
    },
  )
  health.watch(consumer)
  const { port } = server.address() as AddressInfo
  log('info', 'started', { queue: consumer.source, port })

  const stop = async (signal: string) => {
    log('info', 'stopping', { signal })
    // First what uses the pool, then the pool.
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
