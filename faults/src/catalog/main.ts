import { randomBytes } from 'node:crypto'
import { migrate as migrateCatalog } from '@redrive/catalog'
import { migrate as migrateOutbox } from '@redrive/postgres'
import { makeTables, openDatabase } from '../harness/effects.ts'
import type { Subject } from '../harness/play.ts'
import { notPlayed, type Result, type Scenario, type Session } from '../harness/scenario.ts'
import { urlsOf } from '../harness/services.ts'
import { createDatabase, dropDatabase } from '../postgres/database.ts'
import { audit } from './audit.ts'
import { brokerOf } from './brokers/broker.ts'
import { CONFIRM } from './crash-table/confirm.ts'
import { INGEST } from './crash-table/ingest.ts'
import { PLAN } from './crash-table/plan.ts'
import { PUBLISH } from './crash-table/publish.ts'
import { RESTORE } from './crash-table/restore.ts'
import type { Row } from './crash-table/row.ts'
import { DRILLS } from './drills/index.ts'
import { MUTANTS } from './mutants.ts'
import type { Where } from './options.ts'
import { Stage } from './stage.ts'

const ROWS: readonly Row[] = [...PLAN, ...PUBLISH, ...INGEST, ...CONFIRM, ...RESTORE].sort(
  (a, b) => (a.name < b.name ? -1 : 1),
)

/** The table of crash points, and the scenarios that play the whole way of dead letters. */
export const CATALOG: Subject = {
  name: 'catalog',
  scenarios: [...ROWS.map(scenarioOf), ...DRILLS],
  mutants: MUTANTS,
  services: ['postgres', 'rabbitmq', 'kafka'],
  end: dropServers,
}

/**
 * Plays the sources concurrently, and two rows on Kafka at a time. They spend much time waiting
 * until groups notice dead members.
 */
function scenarioOf(row: Row, at: number): Scenario {
  const { kind } = row
  const lane = kind === 'kafka' ? `${kind} ${at % 2}` : kind
  return { ...row, lane: () => lane, play: (session) => playRow(row, session) }
}

type Servers = Pick<Where, 'amqpUrl' | 'consumerUrl' | 'catalogUrl'>

let opened: Promise<Servers> | undefined

/** Drops the databases that the rows share. After a failure they stay for inspection. */
async function dropServers(isGood: boolean): Promise<void> {
  // Each row has reported why the servers did not open.
  const servers = await opened?.catch(() => undefined)
  opened = undefined
  if (!isGood || servers === undefined) return
  for (const url of [servers.catalogUrl, servers.consumerUrl]) await dropDatabase(url)
}

async function openServers(): Promise<Servers> {
  // An interrupted run must not leave stopped processes behind.
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  const [amqpUrl = ''] = await urlsOf('rabbitmq')
  const [serverUrl = ''] = await urlsOf('postgres')
  const consumerUrl = await createDatabase(serverUrl, 'replay_inbox')
  const catalogUrl = await newCatalog(serverUrl, 'catalog')
  const books = openDatabase(consumerUrl)
  await migrateOutbox(books)
  await makeTables(books)
  await books.end()
  return { amqpUrl, consumerUrl, catalogUrl }
}

async function newCatalog(serverUrl: string, name: string): Promise<string> {
  const url = await createDatabase(serverUrl, name)
  const pool = openDatabase(url)
  await migrateCatalog(pool)
  await pool.end()
  return url
}

async function playRow(row: Row, session: Session): Promise<Result> {
  const { kind, hasOwnCatalog = false } = row
  const servers = await (opened ??= openServers())
  const [kafkaBroker = ''] = kind === 'kafka' ? await urlsOf('kafka') : []
  const catalogUrl = hasOwnCatalog
    ? await newCatalog(servers.consumerUrl, row.name)
    : servers.catalogUrl
  const queue = `faults-${row.name}-${randomBytes(4).toString('hex')}`
  const where = { ...servers, kafkaBroker, kind, queue, catalogUrl }
  const broker = await brokerOf(kind)
  await broker.declare(where)
  const stage = new Stage({ broker, where, world: session })
  try {
    await stage.open(row.consumer)
    const ending = await row.play(stage)
    await stage.quiet()
    return { events: stage.ids.length, ...(await audit(stage, ending)) }
  } catch (error) {
    return notPlayed(error, stage.ids.length)
  } finally {
    await stage.end()
    await broker.forget(where)
    if (hasOwnCatalog) await dropDatabase(catalogUrl)
  }
}
