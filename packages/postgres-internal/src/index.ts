export {
  migrate,
  migrationSql,
  missingMigrations,
  type SchemaMigrations,
} from './migrations.ts'
export { borrow, ignorePoolErrors, type PooledClient } from './pool.ts'
export {
  type NamedStatement,
  QUERY_TIMEOUT_MS,
  queryInTime,
  queryWithTimeout,
} from './query.ts'
export {
  explainErrors,
  explainSqlState,
  isRejectedByServer,
  type PgCall,
  readOnlyServer,
  reportUnreachable,
  type SchemaInfo,
  schemaMissing,
  sqlStateOf,
} from './sqlstate.ts'
export {
  inTransaction,
  type PlanName,
  type RunSql,
  runSqlOn,
  type TransactionOptions,
} from './transaction.ts'
