import type { AuditEntry } from '@redrive/api'
import type { Caller } from '../access/caller.ts'

/** A new entry of the audit log. */
export interface NewEntry {
  /** Undefined for an unknown caller, for example after a failed login. */
  readonly caller: Caller | undefined
  /** A person with the config and access to the database acts for the caller. Default: the way of the caller. */
  readonly via?: 'config'
  /** The operation of the API, or `login`, `logout` and the like. */
  readonly operation: string
  /**
   * A mutation writes `requested` before it runs, so that every mutation is recorded. Afterwards it writes `done`,
   * `refused` (not possible in the current state) or `failed`. `denied`: the caller lacks a permission. `viewed`: the
   * caller viewed a payload.
   */
  readonly outcome: AuditEntry['outcome']
  readonly source?: string
  /** Id of the dead letter, group, run or token. */
  readonly subject?: string
  /** Small values; never a payload or a secret. */
  readonly facts?: Readonly<Record<string, unknown>>
}

/** Writes an entry. Resolves after the commit to its number in the chain. If it rejects, the caller must not run the action. */
export type WriteAudit = (entry: NewEntry) => Promise<number>
