export {
  type AnyInboxOptions,
  type CommonInboxOptions,
  type HandledKeysQuery,
  handledKeys,
  inTransaction,
  type PgInboxOptions,
  postgresInbox,
} from './inbox.ts'
export { type MaintenanceResult, type MaintainOptions, maintain } from './maintain.ts'
export { migrate, migrationSql, missingMigrations, type SchemaOptions } from './migrate.ts'
export type { PostgresOptions } from './options.ts'
export { type Outbox, type OutboxEvent, type OutboxOptions, outbox } from './outbox.ts'
export {
  type KyselyQuery,
  type Queryable,
  viaDrizzle,
  viaKnex,
  viaKysely,
  viaMikroOrm,
  viaPostgresJs,
  viaPrisma,
} from './queryable.ts'
export type { PostgresDelivery } from './delivery.ts'
export { postgres, type PostgresTransport } from './transport.ts'
export { type PostgresSink, type PostgresSinkOptions, postgresSink } from './sink.ts'
export { type PostgresSource, type PostgresSourceOptions, postgresSource } from './source.ts'
