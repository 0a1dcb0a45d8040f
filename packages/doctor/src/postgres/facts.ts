import type { Unreadable } from '../finding.ts'

/** The schemas of Redrive. */
export type SchemaName = 'redrive' | 'redrive_catalog' | 'redrive_server'

export interface SchemaFacts {
  readonly name: SchemaName
  /** Undefined when there is no such schema. */
  readonly migrations: readonly string[] | undefined
}

/** A setting that counts for one role or database only. */
export interface OverrideFacts {
  /** Such as `role billing in database shop`. */
  readonly of: string
  readonly name: string
  readonly value: string
}

export interface TransactionFacts {
  readonly pid: number
  readonly who: string
  readonly state: string
  readonly ageMs: number
}

export interface SlotFacts {
  readonly name: string
  readonly isActive: boolean
  /** How much log it keeps from being removed. */
  readonly keptBytes: number
}

export interface TableFacts {
  /** With its schema. */
  readonly name: string
  readonly liveRows: number
  readonly deadRows: number
  readonly isVacuumed: boolean
}

/** What was read of a PostgreSQL. A part is undefined when it could not be read; `unreadable` says why. */
export interface PostgresFacts {
  readonly database: string
  /** Major version. */
  readonly version: number | undefined
  readonly isReplica: boolean
  /** As they count for the session that asked. Empty when not readable. */
  readonly settings: Readonly<Record<string, string>>
  readonly overrides: readonly OverrideFacts[]
  /** Connected replicas, with what a commit waits for: `sync`, `quorum`, `potential`, `async`. */
  readonly standbys: readonly { readonly name: string; readonly sync: string }[] | undefined
  readonly connections: { readonly used: number; readonly most: number } | undefined
  /** The oldest that are open in this database. */
  readonly transactions: readonly TransactionFacts[]
  readonly prepared: readonly { readonly name: string; readonly ageMs: number }[]
  readonly slots: readonly SlotFacts[]
  /** How many transactions the oldest row of this database is back. */
  readonly transactionAge: number | undefined
  readonly schemas: readonly SchemaFacts[]
  readonly tables: readonly TableFacts[]
  /** Days from today for which the outbox has a partition; undefined without an outbox. */
  readonly partitionDaysAhead: number | undefined
  /** The longest that the catalog keeps a dead letter, in ms; undefined without a catalog. */
  readonly catalogRetentionMs: number | undefined
  /** What was asked for. */
  readonly expects: {
    readonly schemas: readonly SchemaName[]
    readonly inboxKeepMs: number
    readonly deadLetterRetentionMs: number | undefined
    readonly oldTransactionMs: number
  }
  readonly unreadable: readonly Unreadable[]
}
