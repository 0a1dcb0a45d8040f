import type { Pool } from 'pg'
import type { WriteAudit } from './entry.ts'
import { type AuditPage, type AuditQuery, readAudit } from './read.ts'
import { writer } from './write.ts'

/** What everybody did, saw and tried. */
export interface Audit {
  readonly write: WriteAudit
  read(query: AuditQuery): Promise<AuditPage>
}

/** Several processes may write at once: there is one chain. */
export function createAudit({ pool }: { readonly pool: Pool }): Audit {
  return { write: writer(pool), read: (query) => readAudit(pool, query) }
}
