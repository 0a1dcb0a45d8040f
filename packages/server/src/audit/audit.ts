import { createHmac } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { cached } from '../cached.ts'
import { runOn } from '../database.ts'
import type { WriteAudit } from './entry.ts'
import { type AuditPage, type AuditQuery, readAudit } from './read.ts'
import { VALUE_KEY } from './statements.ts'
import { writer } from './write.ts'

/** The audit log: actions, views of payloads, and denied attempts. */
export interface Audit {
  readonly write: WriteAudit
  read(query: AuditQuery): Promise<AuditPage>
  /** Returns the text that replaces a value, which readers may not see. Equal values have the same text. */
  readonly seal: (value: string) => Promise<string>
}

/** 1 min: the key never changes, but a database can be restored. */
const KEY_MS = 60_000

/** Creates the audit log. Several processes can write concurrently to one hash chain. */
export function createAudit({ pool }: { readonly pool: Pool }): Audit {
  const key = cached(KEY_MS, async () => {
    const [row] = await runOn(pool)<{ key: Buffer }>(VALUE_KEY)
    if (row === undefined)
      throw new RedriveError('CONFLICT', 'The audit log has no key. Restore it.')
    return row.key
  })
  return {
    write: writer(pool),
    read: (query) => readAudit(pool, query),
    async seal(value) {
      const hash = createHmac('sha256', await key())
        .update(value)
        .digest('hex')
      return `hmac:${hash.slice(0, 32)}`
    },
  }
}
