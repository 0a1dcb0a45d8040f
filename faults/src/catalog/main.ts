import { randomBytes } from 'node:crypto'
import { migrate as migrateCatalog } from '@redrive/catalog'
import { migrate as migrateOutbox } from '@redrive/postgres'
import {
  chosenOf,
  type Drill,
  type DrillResult,
  type DrillWorld,
  judged,
  playInTurn,
} from '../drill.ts'
import { makeTables, openDatabase } from '../effects.ts'
import type { Choice } from '../play.ts'
import { createDatabase, dropDatabase } from '../postgres/database.ts'
import { urlsOf } from '../services.ts'
import { audit } from './audit.ts'
import { brokerOf } from './brokers/broker.ts'
import { DRILLS } from './drills/index.ts'
import type { Where } from './options.ts'
import { CONFIRM } from './rows/confirm.ts'
import { INGEST } from './rows/ingest.ts'
import { PLAN } from './rows/plan.ts'
import { PUBLISH } from './rows/publish.ts'
import { RESTORE } from './rows/restore.ts'
import type { Row } from './rows/row.ts'
import { Stage } from './stage.ts'

const ROWS: readonly Row[] = [...PLAN, ...PUBLISH, ...INGEST, ...CONFIRM, ...RESTORE].sort(
  (a, b) => (a.name < b.name ? -1 : 1),
)

/** Rows and drills, by their names. */
export const CATALOG_DRILLS: readonly Pick<Drill, 'name' | 'isInSmoke'>[] = [...ROWS, ...DRILLS]

type Servers = Omit<Where, 'kind' | 'queue'>
type RowDrill = Drill & Pick<Row, 'kind'>

/** Plays the table of crash points, the sources side by side, then the drills; true when no promise was broken. */
export async function playCatalog(choice: Choice): Promise<boolean> {
  const isWanted = ({ isOnlyFull = false }: Row) =>
    choice.scale === 'full' || choice.only !== undefined || !isOnlyFull
  const opening = Promise.withResolvers<Servers>()
  const drills = ROWS.filter(isWanted).map((row) => drillOf(row, opening.promise))
  const chosen = chosenOf<Drill | RowDrill>([...drills, ...DRILLS], choice)
  // Whoever interrupts a run must not be left with processes that stand still.
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  const servers = await openServers(chosen.some((one) => isRow(one) && one.kind === 'kafka'))
  opening.resolve(servers)
  const lanes = [...Map.groupBy(chosen.filter(isRow), laneOf).values()]
  const played = await Promise.all(lanes.map((lane) => playInTurn('catalog', lane, choice)))
  // Rates are measured in them, so they have the machine to themselves.
  const whole = chosen.filter((one) => !isRow(one))
  played.push(await playInTurn('catalog', whole, choice))
  const isGood = judged('catalog', played.flat(), choice.print)
  // What failed stays for people to look at.
  if (isGood) for (const url of [servers.catalogUrl, servers.consumerUrl]) await dropDatabase(url)
  return isGood
}

/** Rows on Kafka spend much of their time waiting for groups to notice who died: two at a time. */
const laneOf = ({ kind }: RowDrill, at: number) => (kind === 'kafka' ? `${kind} ${at % 2}` : kind)

const isRow = (drill: Drill | RowDrill): drill is RowDrill => 'kind' in drill

const drillOf = (row: Row, servers: Promise<Servers>): RowDrill => ({
  ...row,
  play: async (world) => playRow(row, await servers, world),
})

async function openServers(needsKafka: boolean): Promise<Servers> {
  const [amqpUrl = ''] = await urlsOf('rabbitmq')
  const [kafkaBroker = ''] = needsKafka ? await urlsOf('kafka') : []
  const [serverUrl = ''] = await urlsOf('postgres')
  const consumerUrl = await createDatabase(serverUrl, 'replay_inbox')
  const catalogUrl = await newCatalog(serverUrl, 'catalog')
  const books = openDatabase(consumerUrl)
  await migrateOutbox(books)
  await makeTables(books)
  await books.end()
  return { amqpUrl, kafkaBroker, consumerUrl, catalogUrl }
}

async function newCatalog(serverUrl: string, name: string): Promise<string> {
  const url = await createDatabase(serverUrl, name)
  const pool = openDatabase(url)
  await migrateCatalog(pool)
  await pool.end()
  return url
}

async function playRow(row: Row, servers: Servers, world: DrillWorld): Promise<DrillResult> {
  const { kind, hasOwnCatalog = false } = row
  const catalogUrl = hasOwnCatalog
    ? await newCatalog(servers.consumerUrl, row.name)
    : servers.catalogUrl
  const queue = `faults-${row.name}-${randomBytes(4).toString('hex')}`
  const where = { ...servers, kind, queue, catalogUrl }
  const broker = await brokerOf(kind)
  await broker.declare(where)
  const stage = new Stage({ broker, where, world })
  try {
    await stage.open(row.consumer)
    const ending = await row.play(stage)
    await stage.quiet()
    return { events: stage.ids.length, ...(await audit(stage, ending)) }
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { events: stage.ids.length, told: [], broken: [{ rule: 'scenario', text }] }
  } finally {
    await stage.end()
    await broker.forget(where)
    if (hasOwnCatalog) await dropDatabase(catalogUrl)
  }
}
