import type { Pool } from 'pg'
import type { WriteAudit } from './entry.ts'
import { type AuditPage, type AuditQuery, readAudit } from './read.ts'
import { writer } from './write.ts'

/** The audit log: actions, views of payloads, and denied attempts. */
export interface Audit {
  readonly write: WriteAudit
  read(query: AuditQuery): Promise<AuditPage>
}

/** Creates the audit log. Several processes can write concurrently to one hash chain. */
export function createAudit({ pool }: { readonly pool: Pool }): Audit {
  return { write: writer(pool), read: (query) => readAudit(pool, query) }
}
