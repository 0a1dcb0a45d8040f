import { postgres } from '@redrive/postgres'
import { rabbitmqSink } from '@redrive/rabbitmq'
import { consume, relay } from '@redrive/runtime'
import type { Pool } from 'pg'
import type { Config } from './config.ts'

export interface Relay {
  stop(): Promise<void>
}

/**
 * Tells the rest of the company what happened: every event goes to RabbitMQ, under its type as routing
 * key. While RabbitMQ is away they wait in their table. At least once: subscribers know an event
 * they have seen by its message id.
 */
export async function startRelay(
  pool: Pool,
  { rabbitmqUrl, exchange, leaseMs }: Config,
): Promise<Relay> {
  const sink = rabbitmqSink({ url: rabbitmqUrl, exchange })
  const consumer = await consume(
    postgres({ pool, queue: 'shop-events', lease: leaseMs }),
    relay(sink),
  )
  return {
    async stop() {
      await consumer.stop()
      await sink.close()
    },
  }
}
