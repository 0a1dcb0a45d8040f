import {
  type BackgroundSource,
  migrate as migrateCatalog,
  migrationSql as catalogSql,
  missingMigrations as missingInCatalog,
} from '@redrive/catalog'
import { RedriveError } from '@redrive/core'
import { kafkaSource } from '@redrive/kafka'
import {
  handledKeys,
  migrate as migrateOutbox,
  migrationSql as outboxSql,
  missingMigrations as missingInOutbox,
  postgresSource,
} from '@redrive/postgres'
import { rabbitmqSource } from '@redrive/rabbitmq'
import type { DeadLetterSource } from '@redrive/runtime'
import { webhook } from '@redrive/sinks'
import type { Pool } from 'pg'
import type { Secret } from './config/secret.ts'
import type { Config } from './config/schema.ts'
import { type BrokerKind, kindOf, type SourceConfig } from './config/source.ts'
import { given } from './given.ts'
import { migrateServer, missingServerMigrations, serverMigrationSql } from './migrate.ts'
import type { Listener } from './outgoing/alerts.ts'
import type { WatchedSource } from './start/brokers.ts'
import { healthAt } from './start/consumers.ts'
import { boundTo, originsOf } from './start/origins.ts'
import type { Pools } from './start/pools.ts'

/** The one place that knows which brokers there are, and which schemas. */

/** A source as the config says it, ready to be drained, replayed into and watched. */
export interface OpenSource extends BackgroundSource, WatchedSource {
  readonly name: string
  readonly source: DeadLetterSource
}

/** Connects to nobody yet: that happens when something is asked of them. */
export function openSources(config: Config, pools: Pools): readonly OpenSource[] {
  return Object.entries(config.sources).map(([name, said]) => openSource(name, said, pools))
}

function openSource(name: string, said: SourceConfig, pools: Pools): OpenSource {
  const kind = kindOf(said)
  const source = boundTo(open(kind, said, pools), name, originsOf(said))
  const { handler, retention, batch, maxPayloadBytes, mask, maskHeaders, preview, extract } = said
  const ingest = { handler, retention, batch, maxPayloadBytes, mask, maskHeaders, preview, extract }
  return { name, kind, source, ingest: given(ingest), ...waitingFor(said, source, pools) }
}

/** Opens a source of each broker. */
const OPEN: {
  readonly [Kind in BrokerKind]: (
    config: NonNullable<SourceConfig[Kind]>,
    pools: Pools,
  ) => DeadLetterSource
} = {
  rabbitmq: ({ url, ...rest }) => {
    const urls = Array.isArray(url) ? url.map((one) => one.reveal()) : url.reveal()
    return rabbitmqSource({ ...given(rest), url: urls })
  },
  kafka: ({ tls, sasl, ...rest }) => {
    const client = given({ tls: tlsOf(tls), sasl: saslOf(sasl) })
    return kafkaSource({ ...given(rest), client })
  },
  postgres: ({ url, queue }, pools) => postgresSource({ pool: pools.at(url), queue }),
}

const open = <Kind extends BrokerKind>(
  kind: Kind,
  said: SourceConfig,
  pools: Pools,
): DeadLetterSource => OPEN[kind](said[kind] as NonNullable<SourceConfig[Kind]>, pools)

/** Who is told of alerts: webhooks, which reach public addresses and what the config names. */
export const listenersOf = ({ alerts }: Config): readonly Listener[] =>
  alerts.webhooks.map(({ url, secret }) => ({
    url: url.reveal(),
    open: () =>
      webhook({
        url: url.reveal(),
        secret: secret.reveal(),
        ...given({ allow: alerts.allowPrivate }),
      }),
  }))

type KafkaConfig = NonNullable<SourceConfig['kafka']>

function tlsOf(tls: KafkaConfig['tls']): { ca?: string; cert?: string; key?: string } | undefined {
  if (tls === undefined || tls === false) return undefined
  return tls === true ? {} : given({ ca: tls.ca, cert: tls.cert, key: tls.key?.reveal() })
}

function saslOf(sasl: KafkaConfig['sasl']) {
  return sasl === undefined ? undefined : { ...sasl, password: sasl.password.reveal() }
}

/** When replays have to wait, and what proves them when nobody confirms. */
function waitingFor(
  { replay }: SourceConfig,
  source: DeadLetterSource,
  pools: Pools,
): Pick<BackgroundSource, 'health' | 'lag' | 'mostLag' | 'handled'> {
  const { health, mostLag, inbox } = replay ?? {}
  return given({
    health: health === undefined ? undefined : healthAt(health.reveal()),
    mostLag,
    lag: mostLag === undefined ? undefined : lagOf(source),
    handled: inbox === undefined ? undefined : handledIn(pools, inbox),
  })
}

/** Refuses `mostLag` at start-up where the broker cannot count: a limit that never holds protects nothing. */
function lagOf(source: DeadLetterSource): NonNullable<DeadLetterSource['lag']> {
  const lag = source.lag?.bind(source)
  if (lag !== undefined) return lag
  throw new RedriveError(
    'CAPABILITY_MISSING',
    `replay.mostLag: the broker of "${source.source}" cannot count its lag. Remove mostLag from this source.`,
  )
}

function handledIn(
  pools: Pools,
  { url, consumer }: { readonly url?: Secret | undefined; readonly consumer: string },
): NonNullable<BackgroundSource['handled']> {
  const pool = pools.at(url)
  return (keys) => handledKeys(pool, { consumer, keys })
}

/** One of the schemas that the server needs in its database, in the order they are made. */
interface Schema {
  readonly name: string
  readonly migrate: (pool: Pool) => Promise<readonly string[]>
  readonly missing: (pool: Pool) => Promise<readonly string[]>
  readonly sql: () => string
}

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

/** Brings all schemas up to date, and answers what was applied: `redrive_catalog 0001-tables`. */
export const migrateAll = (pool: Pool): Promise<readonly string[]> =>
  ofEach(({ migrate }) => migrate(pool))

/** What `migrateAll` would apply. */
export const missingInAll = (pool: Pool): Promise<readonly string[]> =>
  ofEach(({ missing }) => missing(pool))

async function ofEach(
  ask: (schema: Schema) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const answers: string[] = []
  for (const schema of SCHEMAS) {
    answers.push(...(await ask(schema)).map((migration) => `${schema.name} ${migration}`))
  }
  return answers
}

/** The same as text, for an administrator. It can be run again: what is there already is left alone. */
export const allMigrationSql = (): string => SCHEMAS.map(({ sql }) => sql()).join('\n')
