import { createHash } from 'node:crypto'
import type { AuditEntry } from '@redrive/api'

/** What a hash is made of, beside the hash before it. */
export interface Link {
  readonly sequence: number
  /** Epoch ms. */
  readonly at: number
  readonly person: string
  readonly via: string
  readonly what: string
  readonly outcome: AuditEntry['outcome']
  readonly source: string | null
  readonly subject: string | null
  /** JSON, as it is stored. */
  readonly facts: string
}

/** What the first entry has as the hash before it. */
export const GENESIS: string = '0'.repeat(64)

/**
 * Version 1: SHA-256, in lower-case hex, over the UTF-8 of a JSON array without blanks:
 *
 * `["redrive audit 1",sequence,at,person,via,what,outcome,source,subject,facts,previous]`
 *
 * `at` is epoch ms, `source` and `subject` are null when there is none, `facts` is a string with JSON inside,
 * `previous` is the hash before in the same form. Texts are escaped as `JSON.stringify` does it. No two
 * entries have the same array, and anyone can make it in any language.
 */
export function hashOf(link: Link, previous: string): string {
  const { sequence, at, person, via, what, outcome, source, subject, facts } = link
  const parts = [sequence, at, person, via, what, outcome, source, subject, facts, previous]
  return createHash('sha256')
    .update(JSON.stringify(['redrive audit 1', ...parts]))
    .digest('hex')
}
