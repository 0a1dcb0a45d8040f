import { postgres, postgresSink, postgresSource } from '@redrive/postgres'
import type { Broker } from './parts.ts'

/** The outbox is in the consumers' database, which is dropped at the end. */
export const broker: Broker = {
  transport: ({ queue }, pool, takeOver) =>
    postgres({ pool, queue, ...(takeOver === undefined ? {} : { lease: takeOver }) }),
  source: ({ queue }, pool) => postgresSource({ pool, queue }),
  sink: ({ queue }, pool) => postgresSink({ pool, queue }),
  declare: () => Promise.resolve(),
  forget: () => Promise.resolve(),
}
