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
export { postgres, type PostgresTransport } from './receive.ts'
export { type PostgresSink, type PostgresSinkOptions, postgresSink } from './sink.ts'
export { type PostgresSource, type PostgresSourceOptions, postgresSource } from './source.ts'
