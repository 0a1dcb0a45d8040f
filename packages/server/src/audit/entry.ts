import type { AuditEntry } from '@redrive/api'
import type { Caller } from '../access/caller.ts'

/** What is written down about one thing that someone did, saw or tried. */
export interface NewEntry {
  /** Undefined: nobody who is known, such as a login that failed. */
  readonly caller: Caller | undefined
  /** The operation of the API, or `login`, `logout` and the like. */
  readonly what: string
  /**
   * A mutation is `asked` before it is done, so that nothing happens that is not written down, and then
   * `done`, `refused` (what is there does not allow it) or `failed`. `denied`: the caller may not. `seen`:
   * a payload was shown.
   */
  readonly outcome: AuditEntry['outcome']
  readonly source?: string
  /** Id of the dead letter, group, run or token. */
  readonly subject?: string
  /** Small and plain; never a payload or a secret. */
  readonly facts?: Readonly<Record<string, unknown>>
}

/** Resolves when it is written for good; while it cannot be, nothing may be done that needs it. */
export type WriteAudit = (entry: NewEntry) => Promise<void>
