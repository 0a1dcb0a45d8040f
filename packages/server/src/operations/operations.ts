import { ALERT_LIMITS, type AlertLimits, type Catalog } from '@redrive/catalog'
import type { Caller } from '../access/caller.ts'
import type { Operation } from '@redrive/api'
import type { Action } from '@redrive/api/enums'
import { allowsSome } from '../access/allow.ts'
import type { Audit } from '../audit/audit.ts'
import type { WriteAudit } from '../audit/entry.ts'
import type { SealValue } from './audit-facts.ts'
import type { Identity } from '../identity/port.ts'
import { createReading, type Reading } from '../reading/reading.ts'
import type { RetryingWriter } from '../retry-write.ts'
import { configure } from './configure.ts'
import { deadLetters } from './dead-letters.ts'
import { groups } from './groups.ts'
import { fingerprints } from './fingerprints.ts'
import { masks } from './masks.ts'
import { regroup } from './regroup.ts'
import { Authorizer } from './authorize.ts'
import type { Handlers } from './handlers.ts'
import { overview } from './overview.ts'
import type { Approval, ReadAudit } from './context.ts'
import { replays } from './replays.ts'
import { setAside } from './set-aside.ts'
import { settle } from './discard.ts'

export interface DeskOptions {
  readonly catalog: Catalog
  readonly audit: {
    readonly write: WriteAudit
    readonly read: ReadAudit
    readonly seal: SealValue
    readonly countUnmasked: Audit['countUnmasked']
  }
  readonly identity: Pick<Identity, 'tokens' | 'sessions' | 'grantsOf' | 'csrfOf'>
  /** Writes the outcome of a mutation. */
  readonly insist: RetryingWriter
  /** Alert thresholds. Default: those of the catalog. */
  readonly alertLimits?: AlertLimits
  /** Decides what people may read of messages. Default: no masks, all detectors. */
  readonly reading?: Reading
  /** The users who may approve a run, as configured in the catalog. Default: another person. */
  readonly approval?: Approval
  /** Kind of the broker of each source in the config. Default: none is known. */
  readonly brokers?: ReadonlyMap<string, string>
  /** How many original messages a person may see in an hour. Default 100. */
  readonly unmaskedPerHour?: number
}

const UNMASKED_PER_HOUR = 100

/** The operations of the API. Every access to the catalog goes through them, after a permission check. */
export interface Operations {
  readonly handlers: Handlers
  /** Rejects a caller without this permission on any source, before anything is read. */
  enter(caller: Caller, operation: Operation, needs: Action | 'signed_in'): Promise<void>
}

export function createOperations(options: DeskOptions): Operations {
  const { catalog, audit, identity, insist, alertLimits = ALERT_LIMITS } = options
  const { reading = createReading(), approval = 'another_person' } = options
  const { unmaskedPerHour: perHour = UNMASKED_PER_HOUR, brokers = new Map() } = options
  const unmasking = { perHour, count: audit.countUnmasked }
  const guard = new Authorizer(catalog, audit.write, insist, unmasking)
  const parts = {
    catalog,
    guard,
    identity,
    readAudit: audit.read,
    sealValue: audit.seal,
    alertLimits,
    reading,
    approval,
    brokers,
  }
  return {
    handlers: {
      ...overview(parts),
      ...groups(parts),
      ...regroup(parts),
      ...fingerprints(parts),
      ...masks(parts),
      ...deadLetters(parts),
      ...settle(parts),
      ...setAside(parts),
      ...replays(parts),
      ...configure(parts),
    },
    async enter(caller, operation, needs) {
      if (needs === 'signed_in' || allowsSome(caller, needs)) return
      const audited = { caller, operation, facts: { action: needs } }
      const detail = `Permission "${needs}" is required on at least one source. Ask an administrator for a role with it.`
      throw await guard.denial(audited, detail)
    },
  }
}
