import { openKafka } from './composition/kafka.ts'
import { openNats } from './composition/nats.ts'
import { openPostgres } from './composition/postgres.ts'
import { openRabbitMq } from './composition/rabbitmq.ts'
import { openRedis } from './composition/redis.ts'
import { openSqs } from './composition/sqs.ts'
import { CommandError, EXIT } from './exit.ts'
import type { PeekTarget } from './peek/read-queue.ts'
import type { Certificates } from './server/certificates.ts'

/** Opens the broker or database at an address. Each client library is loaded only when it is needed. */
export async function openPeekTarget(
  address: string,
  queue: string,
  tls?: Certificates,
): Promise<PeekTarget> {
  const url = URL.parse(address)
  const open = url === null ? undefined : OPENERS[url.protocol]
  if (url === null || open === undefined) {
    throw new CommandError(
      EXIT.usage,
      'Expected an address such as amqp://user:password@host:5672, kafka://host:9092, nats://host:4222, postgres://user@host/database, redis://host:6379 or sqs://eu-central-1.',
    )
  }
  return open(url, queue, tls)
}

type Open = (url: URL, queue: string, tls: Certificates | undefined) => Promise<PeekTarget>

const OPENERS: Readonly<Record<string, Open>> = {
  'amqp:': openRabbitMq,
  'amqps:': openRabbitMq,
  'kafka:': openKafka,
  'kafkas:': openKafka,
  'nats:': openNats,
  'tls:': openNats,
  'postgres:': openPostgres,
  'postgresql:': openPostgres,
  'redis:': openRedis,
  'rediss:': openRedis,
  'sqs:': openSqs,
}
