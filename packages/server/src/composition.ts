import {
  type BackgroundSource,
  migrate as migrateCatalog,
  migrationSql as catalogSql,
  missingMigrations as missingInCatalog,
} from '@redrive/catalog'
import { RedriveError } from '@redrive/core'
import { kafkaSource } from '@redrive/kafka'
import { connectionOptions, natsSource } from '@redrive/nats'
import {
  handledKeys,
  migrate as migrateOutbox,
  migrationSql as outboxSql,
  missingMigrations as missingInOutbox,
  postgresSource,
} from '@redrive/postgres'
import { fileStore } from '@redrive/file-store'
import { postgresStore } from '@redrive/postgres-store'
import { rabbitmqSource } from '@redrive/rabbitmq'
import { bullmqSource, redisStreamSource } from '@redrive/redis'
import { redisStore } from '@redrive/redis-store'
import { type DeadLetterSource, storeSource } from '@redrive/runtime'
import { file, webhook } from '@redrive/sinks'
import { sqsSource } from '@redrive/sqs'
import type { Pool } from 'pg'
import type { Config } from './config/schema.ts'
import { type BrokerKind, kindOf, type SourceConfig } from './config/source.ts'
import { connectNats, natsCredentials } from './start/nats.ts'
import { connectWith } from './start/rabbitmq-tls.ts'
import { withSqsClient } from './start/sqs.ts'
import { tlsFilesOf, type Warn } from './tls.ts'
import { omitUndefined } from './omit-undefined.ts'
import { migrateServer, missingServerMigrations, serverMigrationSql } from './migrate.ts'
import type { ExportTarget } from './audit/export.ts'
import type { WatchedSource } from './start/brokers.ts'
import { healthAt } from './start/consumer-health.ts'
import { boundTo, DEFAULT_STORE, originsOf } from './start/origins.ts'
import type { Pools } from './start/pools.ts'
import { bullmqQueue, connectRedis, endsWith } from './start/redis.ts'

/** The only module that imports every broker and every schema. */

/** A source of the config with its connection to the broker. */
export interface OpenSource extends BackgroundSource, WatchedSource {
  readonly name: string
  readonly source: DeadLetterSource
}

/** Creates the sources of the config. Each one connects to its broker when it is used for the first time. */
export function openSources(config: Config, pools: Pools, warn?: Warn): readonly OpenSource[] {
  return Object.entries(config.sources).map(([name, source]) => {
    const retention = source.retention ?? config.retention.settled
    const openRetention = source.openRetention ?? config.retention.open
    return openSource(name, { ...source, retention, openRetention }, { pools, warn })
  })
}

interface OpenDeps {
  readonly pools: Pools
  /** Receives problems with the files of certificates. */
  readonly warn: Warn | undefined
}

function openSource(name: string, config: SourceConfig, deps: OpenDeps): OpenSource {
  const kind = kindOf(config)
  const source = boundTo(open(kind, config, deps, name), name, originsOf(config))
  const { handler, retention, openRetention, batch, maxPayloadBytes, maxBytesInFlight } = config
  const { mask, maskHeaders, preview, extract } = config
  const limits = { batch, maxPayloadBytes, maxBytesInFlight }
  const ingest = {
    handler,
    retention,
    openRetention,
    ...limits,
    mask,
    maskHeaders,
    preview,
    extract,
  }
  return {
    name,
    kind,
    source,
    ingest: omitUndefined(ingest),
    ...replayChecks(config, source, deps.pools, name),
  }
}

/** Functions that open a source, by broker. */
const OPEN: {
  readonly [Kind in BrokerKind]: (
    config: NonNullable<SourceConfig[Kind]>,
    deps: OpenDeps,
    name: string,
  ) => DeadLetterSource
} = {
  rabbitmq: ({ url, tls, ...rest }, { warn }, name) => {
    const urls = Array.isArray(url) ? url.map((one) => one.reveal()) : url.reveal()
    const files = tlsFilesOf(`sources.${name}.rabbitmq.tls`, tls, warn)
    const connect = files === undefined ? undefined : connectWith(files, rest.queue)
    return rabbitmqSource({ ...omitUndefined({ ...rest, connect }), url: urls })
  },
  kafka: ({ tls: given, sasl, ...rest }, _, name) => {
    const files = tlsFilesOf(`sources.${name}.kafka.tls`, given)
    // A copy: the client keeps it for all connections.
    const tls = files === undefined ? undefined : { ...files }
    const client = omitUndefined({ tls, sasl: saslOf(sasl) })
    return kafkaSource({ ...omitUndefined(rest), client })
  },
  nats: ({ url, tls, credentials, ...rest }, { warn }, name) => {
    const where = `sources.${name}.nats`
    const servers = [url].flat().map((one) => one.reveal())
    const connect = connectNats(connectionOptions(servers), {
      tls: tlsFilesOf(`${where}.tls`, tls, warn),
      credentials: natsCredentials(where, credentials?.reveal()),
    })
    return natsSource({ ...omitUndefined(rest), connect })
  },
  postgres: ({ url, tls, ...rest }, { pools }, name) => {
    const pool = pools.at({ url, tls, where: `sources.${name}.postgres.tls` })
    return postgresSource({ pool, ...omitUndefined(rest) })
  },
  fileStore: ({ directory, ...rest }) =>
    storeSource({ store: fileStore({ directory }), name: directory, ...omitUndefined(rest) }),
  redis: ({ url, ...rest }, { warn }, name) => {
    const client = connectRedis(url.reveal(), `sources.${name}.redis`, warn)
    return endsWith(redisStreamSource({ client, ...omitUndefined(rest) }), client)
  },
  bullmq: ({ url, queue, prefix }, { warn }, name) => {
    const client = connectRedis(url.reveal(), `sources.${name}.bullmq`, warn)
    return endsWith(bullmqSource({ client, queue: bullmqQueue(queue, client, prefix) }), client)
  },
  sqs: ({ region, endpoint, ...rest }) =>
    withSqsClient({ region, endpoint: endpoint?.reveal() }, (client) =>
      sqsSource({ client, ...omitUndefined(rest) }),
    ),
  redisStore: ({ url, prefix, retention = REDIS_RETENTION, ...rest }, { warn }, name) => {
    const client = connectRedis(url.reveal(), `sources.${name}.redisStore`, warn)
    const store = redisStore({ client, prefix, retention })
    return endsWith(storeSource({ store, name: prefix, ...omitUndefined(rest) }), client)
  },
  postgresStore: ({ url, tls, name: store = DEFAULT_STORE, ...rest }, { pools }, name) => {
    const pool = pools.at({ url, tls, where: `sources.${name}.postgresStore.tls` })
    return storeSource({
      store: postgresStore({ pool, name: store }),
      name: store,
      ...omitUndefined(rest),
    })
  },
}

/** 30 days, like the retention of open dead letters in other stores. */
const REDIS_RETENTION = '30d'

const open = <Kind extends BrokerKind>(
  kind: Kind,
  config: SourceConfig,
  deps: OpenDeps,
  name: string,
): DeadLetterSource => OPEN[kind](config[kind] as NonNullable<SourceConfig[Kind]>, deps, name)

/** Entries name people and what they did: only the user of the server may read the file. */
const EXPORT_MODE = 0o600

/** Returns the places outside of the database that receive the audit log. */
export function exportTargetsOf({ audit }: Config): readonly ExportTarget[] {
  const { file: path, webhook: hook } = audit.export
  const targets: ExportTarget[] = []
  if (path !== undefined) {
    const open = () => file({ path, mode: EXPORT_MODE, sync: true, line: 'body' })
    targets.push({ kind: 'file', address: path, open })
  }
  if (hook !== undefined) {
    const [url, secret] = [hook.url.reveal(), hook.secret.reveal()]
    const open = () => webhook({ url, secret, ...omitUndefined({ allow: hook.allowPrivate }) })
    targets.push({ kind: 'webhook', address: url, open })
  }
  return targets
}

type KafkaConfig = NonNullable<SourceConfig['kafka']>

function saslOf(sasl: KafkaConfig['sasl']) {
  return sasl === undefined ? undefined : { ...sasl, password: sasl.password.reveal() }
}

/** Returns the checks that pause replay runs, and the inbox that confirms replays. */
function replayChecks(
  { replay }: SourceConfig,
  source: DeadLetterSource,
  pools: Pools,
  name: string,
): Pick<BackgroundSource, 'health' | 'lag' | 'maxLag' | 'handled'> {
  const { health, maxLag, inbox } = replay ?? {}
  return omitUndefined({
    health: health === undefined ? undefined : healthAt(health.reveal()),
    maxLag,
    lag: maxLag === undefined ? undefined : lagOf(source),
    handled: inbox === undefined ? undefined : handledIn(pools, inbox, name),
  })
}

/** Returns the lag of a source. Rejects `maxLag` at startup when the broker cannot count its lag. */
function lagOf(source: DeadLetterSource): NonNullable<DeadLetterSource['lag']> {
  const lag = source.lag?.bind(source)
  if (lag !== undefined) return lag
  throw new RedriveError(
    'CAPABILITY_MISSING',
    `replay.maxLag: the broker of "${source.source}" cannot count its lag. Remove maxLag from this source.`,
  )
}

type InboxConfig = NonNullable<NonNullable<SourceConfig['replay']>['inbox']>

function handledIn(
  pools: Pools,
  { url, tls, ...inbox }: InboxConfig,
  name: string,
): NonNullable<BackgroundSource['handled']> {
  const pool = pools.at({ url, tls, where: `sources.${name}.replay.inbox.tls` })
  return (keys) => handledKeys(pool, { ...omitUndefined(inbox), keys })
}

/** A database schema that the server needs. */
interface Schema {
  readonly name: string
  readonly migrate: (pool: Pool) => Promise<readonly string[]>
  readonly missing: (pool: Pool) => Promise<readonly string[]>
  readonly sql: () => string
}

/** All schemas, in the order in which they are created. */
const SCHEMAS: readonly Schema[] = [
  { name: 'redrive', migrate: migrateOutbox, missing: missingInOutbox, sql: outboxSql },
  { name: 'redrive_catalog', migrate: migrateCatalog, missing: missingInCatalog, sql: catalogSql },
  {
    name: 'redrive_server',
    migrate: migrateServer,
    missing: missingServerMigrations,
    sql: serverMigrationSql,
  },
]

/** Applies the missing migrations of all schemas and returns their names: `redrive_catalog 0001-tables`. */
export const migrateAll = (pool: Pool): Promise<readonly string[]> =>
  collectMigrations(({ migrate }) => migrate(pool))

/** Returns the migrations that `migrateAll` would apply. */
export const missingInAll = (pool: Pool): Promise<readonly string[]> =>
  collectMigrations(({ missing }) => missing(pool))

async function collectMigrations(
  read: (schema: Schema) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const names: string[] = []
  for (const schema of SCHEMAS) {
    names.push(...(await read(schema)).map((migration) => `${schema.name} ${migration}`))
  }
  return names
}

/** Returns the SQL of all migrations, for an administrator. It is safe to run more than once. */
export const allMigrationSql = (): string => SCHEMAS.map(({ sql }) => sql()).join('\n')
