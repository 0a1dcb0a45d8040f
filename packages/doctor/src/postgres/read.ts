import { Client } from 'pg'
import { ANSWER_MS, Reading } from '../reading.ts'
import type { Severity } from '../finding.ts'
import type { TlsOptions } from '../tls.ts'
import type { PostgresFacts, SchemaFacts, SchemaName } from './facts.ts'
import * as sql from './queries.ts'

export interface PostgresOptions {
  /** The address, `postgres://user:password@host:5432/database`. It is only read: the role `pg_monitor` and *usage* on the schemas are enough. */
  readonly url: string
  /** Certificates; false: no TLS. Default: as in the address. */
  readonly tls?: TlsOptions | false
  /** Schemas that must exist. Default: the existing ones. */
  readonly schemas?: readonly SchemaName[]
  /** The schema of the outbox, as given to `migrate`. Default: `schema` in the address, or 'redrive'. */
  readonly outboxSchema?: string
  /** Option `keep` of the inbox, in ms. Default 30 days, the default of the inbox. */
  readonly inboxRetentionMs?: number
  /** The longest retention of dead letters, in ms. Default: the retention in the catalog of this database. */
  readonly deadLetterRetentionMs?: number
  /** Age above which an open transaction is reported, in ms. Default 900,000. */
  readonly oldTransactionMs?: number
  /** Maximum time for one answer of the server, in ms. Default 10,000. */
  readonly timeoutMs?: number
}

/** 30 days: the default of the option `keep` of the inbox. */
const INBOX_KEEP_MS = 2_592_000_000
/** 15 minutes: longer than any handler, and short enough that a busy outbox is not yet slow. */
const OLD_TRANSACTION_MS = 900_000

const SCHEMAS: readonly SchemaName[] = ['redrive', 'redrive_catalog', 'redrive_server']

const NEEDS_MONITOR = 'grant pg_monitor to the role'

type Row = Readonly<Record<string, unknown>>

/** Reads the live settings of the server. Changes nothing, and does not throw when a fact cannot be read. */
export async function readPostgres(options: PostgresOptions): Promise<PostgresFacts> {
  const { timeoutMs = ANSWER_MS, outboxSchema = schemaIn(options.url) } = options
  const reading = new Reading()
  const client = new Client({
    connectionString: options.url,
    // A copy, because the driver hides the key in its options.
    ...(options.tls === undefined
      ? {}
      : { ssl: options.tls === false ? false : { ...options.tls } }),
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    application_name: 'redrive doctor',
  })
  // A broken connection is reported by the query that is running.
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
    inboxRetentionMs: options.inboxRetentionMs ?? INBOX_KEEP_MS,
    deadLetterRetentionMs: options.deadLetterRetentionMs,
    oldTransactionMs: options.oldTransactionMs ?? OLD_TRANSACTION_MS,
  }
  const unknown = { ...NOTHING, outboxSchema, expects, unreadable: reading.unreadable }
  if (isOpen === undefined) return unknown
  try {
    return { ...unknown, ...(await readLive(new QueryRunner(client, reading), outboxSchema)) }
  } finally {
    await client.end()
  }
}

/** Returns the parameter `schema` of an address. */
const schemaIn = (url: string): string => URL.parse(url)?.searchParams.get('schema') ?? 'redrive'

type LiveFacts = Omit<PostgresFacts, 'expects' | 'unreadable' | 'outboxSchema'>

const NOTHING: LiveFacts = {
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

/** Runs queries one after the other; each of them may fail alone. */
class QueryRunner {
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

async function readLive(runner: QueryRunner, outboxSchema: string): Promise<LiveFacts> {
  const [server] = (await runner.rows<Server>(['server', 'loss'], sql.SERVER_SQL)) ?? []
  if (server === undefined) return NOTHING
  if (!server.sees_all) {
    runner.reading.unreadable.push({
      what: 'sessions of other roles',
      why: 'the role cannot see them, so old transactions, connections and replicas are unknown',
      allow: NEEDS_MONITOR,
      hides: 'loss',
    })
  }
  const named = await runner.rows<Setting>(['settings', 'loss'], sql.SETTINGS_SQL, [sql.SETTINGS])
  const settings = Object.fromEntries((named ?? []).map(({ name, setting }) => [name, setting]))
  const schemas = await readSchemas(runner, outboxSchema)
  const present = schemas.filter(({ migrations }) => migrations !== undefined)
  return {
    database: server.database,
    version: server.version,
    isReplica: server.is_replica,
    settings,
    overrides:
      (await runner.rows<Override>(['settings of roles', 'loss'], sql.OVERRIDES_SQL, [
        sql.SETTINGS,
      ])) ?? [],
    standbys: server.sees_all
      ? await runner.rows<Standby>(['replicas', 'loss'], sql.STANDBYS_SQL)
      : undefined,
    connections: server.sees_all ? connectionsOf(server.used, settings) : undefined,
    transactionAge: server.transaction_age,
    schemas,
    ...(await readHolders(runner)),
    ...(await readTables(runner, present)),
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
type AgedRow = { readonly name: string; readonly age_ms: number }

function connectionsOf(used: number, settings: Readonly<Record<string, string>>) {
  const reserved = Number(settings['superuser_reserved_connections'] ?? 0)
  return { used, most: Number(settings['max_connections'] ?? 0) - reserved }
}

/** Reads what prevents vacuum from removing old rows. */
async function readHolders(
  runner: QueryRunner,
): Promise<Pick<PostgresFacts, 'transactions' | 'prepared' | 'slots'>> {
  type Open = {
    readonly pid: number
    readonly who: string
    readonly state: string
    readonly age_ms: number
  }
  type Slot = { readonly name: string; readonly active: boolean; readonly kept_bytes: number }
  const open = await runner.rows<Open>(['transactions', 'delay'], sql.TRANSACTIONS_SQL)
  const prepared = await runner.rows<AgedRow>(['prepared transactions', 'delay'], sql.PREPARED_SQL)
  const slots = await runner.rows<Slot>(['replication slots', 'delay'], sql.SLOTS_SQL)
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

async function readSchemas(
  runner: QueryRunner,
  outboxSchema: string,
): Promise<readonly SchemaFacts[]> {
  type SchemaRow = { readonly name: string; readonly is_there: boolean }
  const names = SCHEMAS.map((schema) => (schema === 'redrive' ? outboxSchema : schema))
  const found = await runner.rows<SchemaRow>(['schemas', 'delay'], sql.SCHEMAS_SQL, [names])
  const schemas: SchemaFacts[] = []
  for (const { name, is_there } of found ?? []) {
    const schema = SCHEMAS[names.indexOf(name)] as SchemaName
    const quoted = `"${name.replaceAll('"', '""')}"`
    const about = [
      `migrations of ${name}`,
      'delay',
      `grant usage on schema ${quoted} and select on ${quoted}.migration to the role`,
    ] as const
    const rows = is_there
      ? await runner.rows<{ readonly name: string }>(
          about,
          `select name from ${quoted}.migration limit 1000`,
        )
      : undefined
    // A schema exists even if its migration table is not readable.
    schemas.push({
      schema,
      name,
      migrations: is_there ? (rows ?? []).map((row) => row.name) : undefined,
    })
  }
  return schemas
}

async function readTables(
  runner: QueryRunner,
  present: readonly SchemaFacts[],
): Promise<Pick<PostgresFacts, 'tables' | 'partitionDaysAhead' | 'catalogRetentionMs'>> {
  type Table = {
    readonly name: string
    readonly live: number
    readonly dead: number
    readonly is_vacuumed: boolean
  }
  const names = present.map(({ name }) => name)
  const outbox = present.find(({ schema }) => schema === 'redrive')
  const tables = await runner.rows<Table>(['tables', 'delay'], sql.TABLES_SQL, [names])
  const days = outbox
    ? await runner.rows<{ readonly days: number }>(
        ['partitions of the outbox', 'advice', `grant usage on schema ${outbox.name} to the role`],
        sql.PARTITIONS_SQL,
        [outbox.name],
      )
    : undefined
  const kept = names.includes('redrive_catalog')
    ? await runner.rows<{ readonly retention_ms: number | null }>(
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
