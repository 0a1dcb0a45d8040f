export type { Caller, Grant } from './access/caller.ts'
export {
  type AuditProblem,
  type AuditProblemKind,
  type AuditVerdict,
  verifyAudit,
  type VerifyAuditOptions,
} from './audit/verify.ts'
export { allMigrationSql, migrateAll, missingInAll } from './composition.ts'
export { CONFIG_FILES, type Loaded, loadConfig, type LoadOptions } from './config/load.ts'
export {
  type Config,
  type ConfigInput,
  configJsonSchema,
  defineConfig,
} from './config/schema.ts'
export type { Secret } from './config/secret.ts'
export { shownConfig } from './config/shown.ts'
export { serve, type ServeOptions, serveUntil, serveUntilSignal, type Serving } from './serve.ts'
export { parseServeRoles, SERVE_ROLES, type ServeRole } from './serve-role.ts'
export { createLog, type Log, type LogOptions } from './start/log.ts'
export { issueTokenFor } from './start/parts.ts'
export type { StopResult } from './start/stopping.ts'
