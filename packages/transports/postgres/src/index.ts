import { type PostgresOptions, resolveOptions } from './options.ts'
import { PostgresTransport } from './receive.ts'
import { PostgresSink, type PostgresSinkOptions } from './sink.ts'
import { PostgresSource, type PostgresSourceOptions } from './source.ts'

export { CAPABILITIES, LANE_CAPABILITIES } from './capabilities.ts'
export {
  type AnyInboxOptions,
  type HandledKeysQuery,
  handledKeys,
  inTransaction,
  type PgInboxOptions,
  postgresInbox,
} from './inbox.ts'
export { type Maintained, type MaintainOptions, maintain } from './maintain.ts'
export { migrate, migrationSql, missingMigrations } from './migrate.ts'
export type { PostgresOptions } from './options.ts'
export { type Outbox, type OutboxEvent, type OutboxOptions, outbox } from './outbox.ts'
export { type Queryable, viaDrizzle, viaKnex, viaKysely, viaPostgresJs } from './query.ts'
export type { PostgresDelivery } from './rows.ts'
export type { PostgresSinkOptions } from './sink.ts'
export type { PostgresSourceOptions } from './source.ts'
export type { PostgresSink, PostgresSource, PostgresTransport }

/** A transport on a queue of the outbox. */
export function postgres(options: PostgresOptions): PostgresTransport {
  return new PostgresTransport(resolveOptions(options))
}

/** The control plane's side of a queue: its dead letters. */
export function postgresSource(options: PostgresSourceOptions): PostgresSource {
  return new PostgresSource(options)
}

/** Adds events to an outbox, each once: for `relay` and the emitter of the runtime. */
export function postgresSink(options: PostgresSinkOptions): PostgresSink {
  return new PostgresSink(options)
}
