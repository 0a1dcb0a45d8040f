import { createHmac } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { cached } from '../cached.ts'
import { runOn } from '../database.ts'
import type { WriteAudit } from './entry.ts'
import { type AuditPage, type AuditQuery, readAudit } from './read.ts'
import { COUNT_UNMASKED, VALUE_KEY } from './statements.ts'
import { writer } from './write.ts'

/** The audit log: actions, views of payloads, and denied attempts. */
export interface Audit {
  readonly write: WriteAudit
  read(query: AuditQuery): Promise<AuditPage>
  /** Returns the text that replaces a value, which readers may not see. Equal values have the same text. */
  readonly seal: (value: string) => Promise<string>
  /** Counts the original messages that a person has seen in the last hour, up to `atMost`. `until` is the last counted entry. */
  countUnmasked(person: string, atMost: number, until?: number): Promise<UnmaskedCount>
}

export interface UnmaskedCount {
  readonly count: number
  /** Time until the oldest of these views is an hour old. */
  readonly untilFewerMs: number
}

const HOUR_MS = 3_600_000

/** 1 min: the key never changes, but a database can be restored. */
const KEY_MS = 60_000

/** Creates the audit log. Several processes can write concurrently to one hash chain. */
export function createAudit({ pool }: { readonly pool: Pool }): Audit {
  const key = cached(KEY_MS, async () => {
    const [row] = await runOn(pool)<{ key: Buffer }>(VALUE_KEY)
    if (row === undefined)
      throw new RedriveError(
        'CONFLICT',
        'The table redrive_server.audit_key is empty. Restore its row from a backup of the database.',
      )
    return row.key
  })
  return {
    write: writer(pool),
    read: (query) => readAudit(pool, query),
    async countUnmasked(person, atMost, until = Number.MAX_SAFE_INTEGER) {
      const values = [person, atMost, HOUR_MS, until]
      const [row] = await runOn(pool)<{ count: number; oldest_ms: string }>(COUNT_UNMASKED, values)
      const { count = 0, oldest_ms = '0' } = row ?? {}
      return { count, untilFewerMs: HOUR_MS - Number(oldest_ms) }
    },
    async seal(value) {
      const hash = createHmac('sha256', await key())
        .update(value)
        .digest('hex')
      return `hmac:${hash.slice(0, 32)}`
    },
  }
}
