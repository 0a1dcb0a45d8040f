import { postgres } from '@redrive/postgres'
import { rabbitmqSink } from '@redrive/rabbitmq'
import { consume, relay } from '@redrive/runtime'
import type { Pool } from 'pg'
import type { Config } from './config.ts'

export interface Relay {
  stop(): Promise<void>
}

/**
 * Publishes every event to RabbitMQ with its type as routing key. While RabbitMQ is down, events
 * wait in their table. Delivery is at least once; subscribers recognise duplicates by the message
 * id.
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
