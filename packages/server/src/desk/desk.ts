import { ALERT_LIMITS, type AlertLimits, type Catalog } from '@redrive/catalog'
import type { Caller } from '../access/caller.ts'
import type { Action, Operation } from '@redrive/api'
import { allowsSome } from '../access/allow.ts'
import type { WriteAudit } from '../audit/entry.ts'
import type { Identity } from '../identity/port.ts'
import type { Insist } from '../insist.ts'
import { configure } from './configure.ts'
import { deadLetters } from './dead-letters.ts'
import { groups } from './groups.ts'
import { Guard } from './guard.ts'
import type { Handlers } from './handlers.ts'
import { overview } from './overview.ts'
import type { ReadAudit } from './parts.ts'
import { replays } from './replays.ts'
import { settle } from './settle.ts'

export interface DeskOptions {
  readonly catalog: Catalog
  readonly audit: { readonly write: WriteAudit; readonly read: ReadAudit }
  readonly identity: Pick<Identity, 'tokens' | 'csrfOf'>
  /** For what came of a mutation. */
  readonly insist: Insist
  /** When an alert holds. Default: those of the catalog. */
  readonly alertLimits?: AlertLimits
}

/** The guarded data layer: every way to the catalog goes through it. */
export interface Desk {
  readonly handlers: Handlers
  /** Refuses who may do this with no source at all, before anything is read. */
  enter(caller: Caller, operation: Operation, needs: Action | 'signed_in'): Promise<void>
}

export function createDesk(options: DeskOptions): Desk {
  const { catalog, audit, identity, insist, alertLimits = ALERT_LIMITS } = options
  const guard = new Guard(catalog, audit.write, insist)
  const parts = { catalog, guard, identity, readAudit: audit.read, alertLimits }
  return {
    handlers: {
      ...overview(parts),
      ...groups(parts),
      ...deadLetters(parts),
      ...settle(parts),
      ...replays(parts),
      ...configure(parts),
    },
    async enter(caller, operation, needs) {
      if (needs === 'signed_in' || allowsSome(caller, needs)) return
      const deed = { caller, what: operation, facts: { action: needs } }
      const detail = `You may not ${needs} in any source. Ask an administrator for a role that may.`
      throw await guard.denial(deed, detail)
    },
  }
}
