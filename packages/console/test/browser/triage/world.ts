import { until } from '@redrive/testing'
import { openStage, type Stage } from '../stage.ts'
import type { Sizes, SourceName } from './causes.ts'
import { openIdProvider, type OpenIdProvider } from './provider.ts'
import { openShop, type Shop } from './shop.ts'

/** A complete server with its brokers, the consumers of three services and an OpenID provider. */
export interface World {
  readonly stage: Stage
  readonly shop: Shop
  readonly provider: OpenIdProvider
  end(): Promise<void>
}

/** Ada plans and discards. Ben approves. */
const ACCESS = [
  { people: ['ada'], roles: ['operator'], sources: ['*'] },
  { people: ['ben'], roles: ['approver'], sources: ['*'] },
]

/** 5 min: 40,000 dead letters take less than one on an idle machine. */
const INGEST = '5m'

/** Starts everything and resolves when the server has ingested the dead letters. */
export async function openWorld(database: string, sizes: Sizes): Promise<World> {
  const provider = await openIdProvider()
  const shops: Shop[] = []
  const stage = await openStage(database, {
    auth: provider.auth,
    roles: ['api', 'ingest', 'replay', 'watch'],
    config: { access: ACCESS },
    prepare: async (databaseUrl) => {
      const opened = await openShop(databaseUrl)
      shops.push(opened)
      return { sources: opened.sources }
    },
  })
  provider.register(stage.url)
  const [shop] = shops
  if (shop === undefined) throw new Error('The shop was not opened.')
  await shop.fail(sizes)
  const total = Object.values(sizes).reduce((sum, size) => sum + size, 0)
  const isComplete = async () =>
    (await statusesIn(stage)).reduce((sum, { count }) => sum + count, 0) === total
  await until('all dead letters are in the catalog', isComplete, {
    timeout: INGEST,
    interval: '500ms',
  })
  return {
    ...{ stage, shop, provider },
    async end() {
      await stage.end()
      await shop.end()
      provider.end()
    },
  }
}

export interface StatusCount {
  readonly source: SourceName
  readonly status: string
  readonly count: number
}

const STATUSES = `
select s.name as source, d.status, count(*)::integer as count
  from redrive_catalog.dead_letter d join redrive_catalog.source s on s.id = d.source_id
  group by 1, 2 order by 1, 2`

/** Counts the dead letters in the database by source and status. */
export async function statusesIn({ pool }: Stage): Promise<readonly StatusCount[]> {
  return (await pool.query<StatusCount>(STATUSES)).rows
}

/** One replay run as the database has it. */
export interface StoredRun {
  readonly source: SourceName
  readonly state: string
  readonly planner: string
  readonly approver: string | null
  readonly items: number
  /** Items of a canary stage that were published before all items of the stage before had an outcome. */
  readonly early: number
}

/** Stages of the default canary by the place of an item: 1, 5 and 50 messages, then the rest. */
const RUNS = `
with staged as (
  select run_id, state, published_at, settled_at,
      case when place < 1 then 0 when place < 6 then 1 when place < 56 then 2 else 3 end as stage
    from redrive_catalog.replay_item where state <> 'skipped'
), ended as (
  select run_id, stage, max(settled_at) as at from staged group by 1, 2
)
select s.name as source, r.state, regexp_replace(r.planned_by, '.*#', '') as planner,
    regexp_replace(r.approved_by, '.*#', '') as approver,
    (select count(*)::integer from staged i where i.run_id = r.id) as items,
    (select count(*)::integer from staged i join ended e on e.run_id = i.run_id and e.stage = i.stage - 1
      where i.run_id = r.id and i.published_at < e.at) as early
  from redrive_catalog.replay_run r join redrive_catalog.source s on s.id = r.source_id
  order by r.planned_at`

/** Returns every run that was ever planned, oldest first. */
export async function runsIn({ pool }: Stage): Promise<readonly StoredRun[]> {
  return (await pool.query<StoredRun>(RUNS)).rows
}

/** Resolves when no run waits or publishes. `timeout` is the longest wait. */
export const runsEnd = (stage: Stage, timeout: '3m' | '15m'): Promise<unknown> =>
  until(
    'all runs have ended',
    async () => {
      const states = (await runsIn(stage)).map(({ state }) => state)
      const stopped = states.filter((state) => state === 'paused')
      if (stopped.length > 0) return stopped
      return states.every((state) => state === 'done' || state === 'cancelled') && states
    },
    { timeout, interval: '500ms' },
  )

const COMMENTS = `
select regexp_replace(author, '.*#', '') as author, text from redrive_catalog.comment order by id`

/** Returns the comments of users on groups and messages. */
export async function commentsIn({ pool }: Stage): Promise<readonly object[]> {
  return (await pool.query<{ author: string; text: string }>(COMMENTS)).rows
}
