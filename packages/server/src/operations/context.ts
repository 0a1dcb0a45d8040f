import type { Output, Input } from '@redrive/api'
import type { AlertLimits, Catalog } from '@redrive/catalog'
import type { Identity } from '../identity/port.ts'
import type { SealValue } from './audit-facts.ts'
import type { Authorizer } from './authorize.ts'
import type { Reading } from '../reading/reading.ts'

type AuditQuery = NonNullable<Input<'listAudit'>['query']>

/** Reads the audit log, newest entries first. */
export type ReadAudit = (query: AuditQuery) => Promise<Output<'listAudit'>>

/** Dependencies of the operations. */
export interface OperationDeps {
  readonly catalog: Catalog
  readonly guard: Authorizer
  readonly identity: Pick<Identity, 'tokens' | 'sessions' | 'grantsOf' | 'csrfOf'>
  readonly readAudit: ReadAudit
  /** Replaces values of messages in the audit log. */
  readonly sealValue: SealValue
  readonly alertLimits: AlertLimits
  readonly reading: Reading
  /** The users who may approve a run. */
  readonly approval: Approval
  /** Kind of the broker of each source in the config. */
  readonly brokers: ReadonlyMap<string, string>
}

export type Approval = 'another_person' | 'anyone'
