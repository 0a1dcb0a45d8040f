/** Exports for packages of this repository. They can change in any version. */
export {
  type AuditProblem,
  type AuditProblemKind,
  type AuditVerdict,
  verifyAudit,
  type VerifyAuditOptions,
} from './audit/verify.ts'
export { channelsOf, type ConfiguredChannel } from './alerts/channels.ts'
export { testNotices } from './alerts/test-message.ts'
export { allMigrationSql, missingInAll } from './composition.ts'
export { configJsonSchema } from './config/schema.ts'
export { redactConfig } from './config/redact.ts'
export { grantsSql } from './grants.ts'
export { type PutBackResult, putBackSource, startIngestOf } from './put-back.ts'
export { serveUntil } from './serve.ts'
export { natsCredentials } from './start/nats.ts'
export { connectionOf } from './start/pools.ts'
export { parseServeRoles } from './serve-role.ts'
export { issueTokenFor, publicUrlIn } from './start/components.ts'
export { tlsFilesOf } from './tls.ts'
