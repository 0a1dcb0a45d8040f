import { Client } from 'pg'
import { ANSWER_MS, Reading } from '../reading.ts'
import type { Severity } from '../finding.ts'
import type { PostgresFacts, SchemaFacts, SchemaName } from './facts.ts'
import * as sql from './queries.ts'

export interface PostgresOptions {
  /** `postgres://user:password@host:5432/database`. Only read; the role `pg_monitor` and *usage* on the schemas are enough. */
  readonly url: string
  /** Schemas that must be there. Default: those that are. */
  readonly schemas?: readonly SchemaName[]
  /** `keep` of the inbox, in ms. Default 30 days, as the inbox has it. */
  readonly inboxKeepMs?: number
  /** The longest that a dead letter is kept anywhere, in ms. Default: what the catalog in this database says. */
  readonly deadLetterRetentionMs?: number
  /** From which age on an open transaction is old, in ms. Default 900,000. */
  readonly oldTransactionMs?: number
  /** How long the server may take for one answer, in ms. Default 10,000. */
  readonly timeoutMs?: number
}

/** 30 days: `keep` of an inbox that says nothing. */
const INBOX_KEEP_MS = 2_592_000_000
/** 15 minutes: longer than any handler, shorter than it takes a busy outbox to suffer. */
const OLD_TRANSACTION_MS = 900_000

const SCHEMAS: readonly SchemaName[] = ['redrive', 'redrive_catalog', 'redrive_server']

const NEEDS_MONITOR = 'grant pg_monitor to the role'

type Row = Readonly<Record<string, unknown>>

/** Reads what the server really has. Changes nothing, and does not throw when something cannot be read. */
export async function readPostgres(options: PostgresOptions): Promise<PostgresFacts> {
  const { timeoutMs = ANSWER_MS } = options
  const reading = new Reading()
  const client = new Client({
    connectionString: options.url,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    application_name: 'redrive doctor',
  })
  // It breaks in the middle of a question, or is not asked any more: the question says so.
  client.on('error', () => undefined)
  const isOpen = await reading.fact(
    { what: 'server', allow: 'check the address, user and password', hides: 'loss' },
    async () => {
      await client.connect()
      await client.query('set default_transaction_read_only = on')
      return true
    },
  )
  const expects = {
    schemas: options.schemas ?? [],
    inboxKeepMs: options.inboxKeepMs ?? INBOX_KEEP_MS,
    deadLetterRetentionMs: options.deadLetterRetentionMs,
    oldTransactionMs: options.oldTransactionMs ?? OLD_TRANSACTION_MS,
  }
  const unknown = { ...NOTHING, expects, unreadable: reading.unreadable }
  if (isOpen === undefined) return unknown
  try {
    return { ...unknown, ...(await readLive(new Asking(client, reading))) }
  } finally {
    await client.end()
  }
}

const NOTHING: Omit<PostgresFacts, 'expects' | 'unreadable'> = {
  database: '',
  version: undefined,
  isReplica: false,
  settings: {},
  overrides: [],
  standbys: undefined,
  connections: undefined,
  transactions: [],
  prepared: [],
  slots: [],
  transactionAge: undefined,
  schemas: [],
  tables: [],
  partitionDaysAhead: undefined,
  catalogRetentionMs: undefined,
}

/** One question after the other, each of which may fail by itself. */
class Asking {
  readonly #client: Client
  readonly reading: Reading

  constructor(client: Client, reading: Reading) {
    this.#client = client
    this.reading = reading
  }

  async rows<R extends Row>(
    about: readonly [what: string, hides: Severity, allow?: string],
    text: string,
    values: readonly unknown[] = [],
  ): Promise<readonly R[] | undefined> {
    const [what, hides, allow = NEEDS_MONITOR] = about
    return this.reading.fact({ what, hides, allow }, async () => {
      const { rows } = await this.#client.query<R>(text, [...values])
      return rows
    })
  }
}

async function readLive(asking: Asking): Promise<Omit<PostgresFacts, 'expects' | 'unreadable'>> {
  const [server] = (await asking.rows<Server>(['server', 'loss'], sql.SERVER_SQL)) ?? []
  if (server === undefined) return NOTHING
  if (!server.sees_all) {
    asking.reading.unreadable.push({
      what: 'sessions of other roles',
      why: 'the role may not see them: old transactions, connections and replicas are not known',
      allow: NEEDS_MONITOR,
      hides: 'loss',
    })
  }
  const named = await asking.rows<Setting>(['settings', 'loss'], sql.SETTINGS_SQL, [sql.SETTINGS])
  const settings = Object.fromEntries((named ?? []).map(({ name, setting }) => [name, setting]))
  const schemas = await readSchemas(asking)
  const present = schemas
    .filter(({ migrations }) => migrations !== undefined)
    .map(({ name }) => name)
  return {
    database: server.database,
    version: server.version,
    isReplica: server.is_replica,
    settings,
    overrides:
      (await asking.rows<Override>(['settings of roles', 'loss'], sql.OVERRIDES_SQL, [
        sql.SETTINGS,
      ])) ?? [],
    standbys: server.sees_all
      ? await asking.rows<Standby>(['replicas', 'loss'], sql.STANDBYS_SQL)
      : undefined,
    connections: server.sees_all ? connectionsOf(server.used, settings) : undefined,
    transactionAge: server.transaction_age,
    schemas,
    ...(await readHolders(asking)),
    ...(await readTables(asking, present)),
  }
}

type Server = {
  readonly database: string
  readonly is_replica: boolean
  readonly version: number
  readonly used: number
  readonly sees_all: boolean
  readonly transaction_age: number
}
type Setting = { readonly name: string; readonly setting: string }
type Override = { readonly of: string; readonly name: string; readonly value: string }
type Standby = { readonly name: string; readonly sync: string }
type Aged = { readonly name: string; readonly age_ms: number }

function connectionsOf(used: number, settings: Readonly<Record<string, string>>) {
  const reserved = Number(settings['superuser_reserved_connections'] ?? 0)
  return { used, most: Number(settings['max_connections'] ?? 0) - reserved }
}

/** What keeps old rows from being removed. */
async function readHolders(
  asking: Asking,
): Promise<Pick<PostgresFacts, 'transactions' | 'prepared' | 'slots'>> {
  type Open = {
    readonly pid: number
    readonly who: string
    readonly state: string
    readonly age_ms: number
  }
  type Slot = { readonly name: string; readonly active: boolean; readonly kept_bytes: number }
  const open = await asking.rows<Open>(['transactions', 'delay'], sql.TRANSACTIONS_SQL)
  const prepared = await asking.rows<Aged>(['prepared transactions', 'delay'], sql.PREPARED_SQL)
  const slots = await asking.rows<Slot>(['replication slots', 'delay'], sql.SLOTS_SQL)
  return {
    transactions: (open ?? []).map(({ pid, who, state, age_ms }) => ({
      pid,
      who,
      state,
      ageMs: age_ms,
    })),
    prepared: (prepared ?? []).map(({ name, age_ms }) => ({ name, ageMs: age_ms })),
    slots: (slots ?? []).map(({ name, active, kept_bytes }) => ({
      name,
      isActive: active,
      keptBytes: kept_bytes,
    })),
  }
}

async function readSchemas(asking: Asking): Promise<readonly SchemaFacts[]> {
  type Found = { readonly name: SchemaName; readonly is_there: boolean }
  const found = await asking.rows<Found>(['schemas', 'delay'], sql.SCHEMAS_SQL, [SCHEMAS])
  const schemas: SchemaFacts[] = []
  for (const { name, is_there } of found ?? []) {
    const about = [
      `migrations of ${name}`,
      'delay',
      `grant usage on schema ${name} and select on ${name}.migration to the role`,
    ] as const
    const rows = is_there
      ? await asking.rows<{ readonly name: string }>(
          about,
          `select name from ${name}.migration limit 1000`,
        )
      : undefined
    // A schema whose ledger may not be read is there all the same.
    schemas.push({ name, migrations: is_there ? (rows ?? []).map((row) => row.name) : undefined })
  }
  return schemas
}

async function readTables(
  asking: Asking,
  present: readonly SchemaName[],
): Promise<Pick<PostgresFacts, 'tables' | 'partitionDaysAhead' | 'catalogRetentionMs'>> {
  type Table = {
    readonly name: string
    readonly live: number
    readonly dead: number
    readonly is_vacuumed: boolean
  }
  const tables = await asking.rows<Table>(['tables', 'delay'], sql.TABLES_SQL, [present])
  const days = present.includes('redrive')
    ? await asking.rows<{ readonly days: number }>(
        ['partitions of the outbox', 'advice', 'grant usage on schema redrive to the role'],
        sql.PARTITIONS_SQL,
      )
    : undefined
  const kept = present.includes('redrive_catalog')
    ? await asking.rows<{ readonly retention_ms: number | null }>(
        [
          'retention of the catalog',
          'duplicates',
          'grant select on redrive_catalog.source to the role',
        ],
        sql.RETENTION_SQL,
      )
    : undefined
  return {
    tables: (tables ?? []).map(({ name, live, dead, is_vacuumed }) => ({
      name,
      liveRows: live,
      deadRows: dead,
      isVacuumed: is_vacuumed,
    })),
    partitionDaysAhead: days?.[0]?.days,
    catalogRetentionMs: kept?.[0]?.retention_ms ?? undefined,
  }
}
