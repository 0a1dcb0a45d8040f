import type { Answer, Input } from '@redrive/api'
import type { AlertLimits, Catalog } from '@redrive/catalog'
import type { Identity } from '../identity/port.ts'
import type { Guard } from './guard.ts'

type AuditQuery = NonNullable<Input<'listAudit'>['query']>

/** Reads the audit, newest first. */
export type ReadAudit = (query: AuditQuery) => Promise<Answer<'listAudit'>>

/** What everything at the desk needs. */
export interface DeskParts {
  readonly catalog: Catalog
  readonly guard: Guard
  readonly identity: Pick<Identity, 'tokens' | 'csrfOf'>
  readonly readAudit: ReadAudit
  readonly alertLimits: AlertLimits
}
