import { postgres, postgresSink, postgresSource } from '@redrive/postgres'
import { type Broker, TAKE_OVER } from './parts.ts'

/** The outbox is in the database of the consumers, which goes when all is over. */
export const broker: Broker = {
  transport: ({ queue }, pool) => postgres({ pool, queue, lease: TAKE_OVER }),
  source: ({ queue }, pool) => postgresSource({ pool, queue }),
  sink: ({ queue }, pool) => postgresSink({ pool, queue }),
  declare: () => Promise.resolve(),
  forget: () => Promise.resolve(),
}
