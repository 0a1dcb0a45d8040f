import type { Unreadable } from '../finding.ts'

/** The schemas of Redrive, by their default names. `redrive` is the schema of the outbox. */
export type SchemaName = 'redrive' | 'redrive_catalog' | 'redrive_server'

export interface SchemaFacts {
  readonly schema: SchemaName
  /** The name in this database: that of the outbox can be chosen. */
  readonly name: string
  /** The applied migrations; undefined when the schema does not exist. */
  readonly migrations: readonly string[] | undefined
}

/** A setting that applies to one role or database only. */
export interface OverrideFacts {
  /** The scope, such as `role billing in database shop`. */
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
  /** Size of the write-ahead log that the slot keeps, in bytes. */
  readonly keptBytes: number
}

export interface TableFacts {
  /** Name with its schema. */
  readonly name: string
  readonly liveRows: number
  readonly deadRows: number
  readonly isVacuumed: boolean
}

/** The facts of a PostgreSQL server. A part is undefined when it could not be read; `unreadable` contains the reason. */
export interface PostgresFacts {
  readonly database: string
  /** Major version. */
  readonly version: number | undefined
  readonly isReplica: boolean
  /** The settings of this session; empty when not readable. */
  readonly settings: Readonly<Record<string, string>>
  readonly overrides: readonly OverrideFacts[]
  /** Connected replicas with their synchronization state: `sync`, `quorum`, `potential`, `async`. */
  readonly standbys: readonly { readonly name: string; readonly sync: string }[] | undefined
  readonly connections: { readonly used: number; readonly most: number } | undefined
  /** The oldest open transactions of this database. */
  readonly transactions: readonly TransactionFacts[]
  readonly prepared: readonly { readonly name: string; readonly ageMs: number }[]
  readonly slots: readonly SlotFacts[]
  /** Age of the oldest row of this database, in transactions. */
  readonly transactionAge: number | undefined
  readonly schemas: readonly SchemaFacts[]
  readonly tables: readonly TableFacts[]
  /** The schema of the outbox in this database. */
  readonly outboxSchema: string
  /** Number of days from today for which the outbox has a partition; undefined without an outbox. */
  readonly partitionDaysAhead: number | undefined
  /** The longest retention of dead letters in the catalog, in ms; undefined without a catalog. */
  readonly catalogRetentionMs: number | undefined
  /** The expected values. */
  readonly expects: {
    readonly schemas: readonly SchemaName[]
    readonly inboxRetentionMs: number
    readonly deadLetterRetentionMs: number | undefined
    readonly oldTransactionMs: number
  }
  readonly unreadable: readonly Unreadable[]
}
