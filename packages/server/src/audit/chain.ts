import { createHash } from 'node:crypto'
import type { AuditEntry } from '@redrive/api'

/** The content of an entry. Its hash covers this and the previous hash. */
export interface Link {
  readonly sequence: number
  /** Epoch ms. */
  readonly at: number
  readonly person: string
  readonly via: string
  readonly operation: string
  readonly outcome: AuditEntry['outcome']
  readonly source: string | null
  readonly subject: string | null
  /** JSON text, exactly as stored. */
  readonly facts: string
}

/** The previous hash of the first entry. */
export const GENESIS: string = '0'.repeat(64)

/**
 * Returns the hash of an entry. Version 1: SHA-256, in lower-case hex, of the UTF-8 bytes of a JSON array without
 * spaces:
 *
 * `["redrive audit 1",sequence,at,person,via,operation,outcome,source,subject,facts,previous]`
 *
 * `at` is epoch ms. `source` and `subject` may be null. `facts` is a string that contains JSON. `previous` is the
 * previous hash in the same form. Texts are escaped as `JSON.stringify` does. No two entries have the same array,
 * and programs in any language can build it.
 */
export function hashOf(link: Link, previous: string): string {
  const { sequence, at, person, via, operation, outcome, source, subject, facts } = link
  const parts = [sequence, at, person, via, operation, outcome, source, subject, facts, previous]
  return createHash('sha256')
    .update(JSON.stringify(['redrive audit 1', ...parts]))
    .digest('hex')
}
