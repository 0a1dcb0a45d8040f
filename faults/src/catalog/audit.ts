import type { Broken } from '../drill.ts'
import { brokenIf } from '../drill.ts'
import { readEffects } from '../effects.ts'
import { readHistory } from '../history.ts'
import type { Stage } from './stage.ts'

/** How a row of the table must end. */
export interface Ending {
  /** How many dead letters have each status. */
  readonly statuses: Readonly<Record<string, number>>
  /** How many messages took effect. Default: as many as are resolved. */
  readonly effects?: number
  /** Copies on the wire beyond the first of each replay, at most. */
  readonly duplicates: number
  /** Of them, those that no row of the catalog explains. Default 0. */
  readonly unexplained?: number
  readonly told?: readonly string[]
  readonly broken?: readonly Broken[]
}

export interface Audit {
  readonly told: readonly string[]
  readonly broken: readonly Broken[]
}

/** Reads the tables and what the consumers wrote down, and holds it against what was promised. */
export async function audit(stage: Stage, ending: Ending): Promise<Audit> {
  const letters = await lettersOf(stage)
  const effects = await readEffects(stage.books, stage.where.queue)
  const wire = await wireOf(stage)
  const lost = stage.ids.filter((id) => isLost(id, letters, effects))
  const twice = [...effects].filter(([, count]) => count > 1)
  const statuses = countsOf([...letters.values()].flat())
  const expected = ending.effects ?? ending.statuses['resolved'] ?? 0
  const several = [...letters.values()].filter(({ length }) => length > 1).length
  const depth = await stage.source.depth()
  const explained = wire.explained + (ending.unexplained ?? 0)
  const wrong = await miscounted(stage)
  return {
    told: [
      `${stage.ids.length} messages, ${lost.length} lost`,
      `${wire.duplicates} wire duplicates of at most ${ending.duplicates}`,
      `${twice.length} effect duplicates`,
      ...(ending.told ?? []),
    ],
    broken: [
      ...brokenIf(
        [lost.length > 0, 'lost', `${lost.length}, such as ${lost[0]}`],
        [twice.length > 0, 'effect duplicated', `${twice.length}, such as ${twice[0]?.join(': ')}`],
        [several > 0, 'copied twice', `${several} messages have several dead letters`],
        [
          wire.duplicates > Math.min(ending.duplicates, explained),
          'duplicates over the bound',
          `${wire.duplicates}; the row allows ${ending.duplicates}, what was begun explains ${explained}`,
        ],
        [wire.strangers > 0, 'unexpected', `${wire.strangers} replay ids that nobody planned`],
        [
          !isSame(statuses, ending.statuses),
          'in the wrong place',
          `${JSON.stringify(statuses)} instead of ${JSON.stringify(ending.statuses)}`,
        ],
        [effects.size !== expected, 'unexpected', `${effects.size} effects, not ${expected}`],
        [depth > 0, 'not drained', `${depth} dead letters are left in the broker`],
        [wrong.length > 0, 'unexpected', `counts and rows differ: ${wrong.join('; ')}`],
      ),
      ...(ending.broken ?? []),
    ],
  }
}

interface Letter {
  /** The business key, which is the id that producers know. */
  readonly key: string
  readonly status: string
}

const LETTERS = `
select d.key, d.status from redrive_catalog.dead_letter d
  join redrive_catalog.source s on s.id = d.source_id where s.name = $1`

async function lettersOf({ pool, where }: Stage): Promise<ReadonlyMap<string, readonly Letter[]>> {
  const { rows } = await pool.query<Letter>(LETTERS, [where.queue])
  return Map.groupBy(rows, ({ key }) => key)
}

/** Neither done nor known as not done: without an effect, and not in the catalog or believed to be done. */
function isLost(
  id: string,
  letters: ReadonlyMap<string, readonly Letter[]>,
  effects: ReadonlyMap<string, number>,
): boolean {
  if (effects.has(id)) return false
  const known = letters.get(id) ?? []
  return known.length === 0 || known.some(({ status }) => status === 'resolved')
}

const countsOf = (letters: readonly Letter[]): Readonly<Record<string, number>> =>
  Object.fromEntries(
    [...Map.groupBy(letters, ({ status }) => status)].map(([status, all]) => [status, all.length]),
  )

const isSame = (
  one: Readonly<Record<string, number>>,
  other: Readonly<Record<string, number>>,
): boolean =>
  [...new Set([...Object.keys(one), ...Object.keys(other)])].every(
    (name) => (one[name] ?? 0) === (other[name] ?? 0),
  )

const PUBLISHES = `
select i.replay_id, i.publishes from redrive_catalog.replay_item i
  join redrive_catalog.replay_run r on r.id = i.run_id join redrive_catalog.source s on s.id = r.source_id
  where s.name = $1 and i.state not in ('planned', 'skipped', 'cancelled')`

/**
 * What consumers were handed. Beginning to publish is counted before anything goes out, so a replay is
 * on the wire at most as often as it was begun; what a consumer dies with is handed out again on top.
 */
async function wireOf({ pool, where, world }: Stage) {
  const { rows } = await pool.query<{ replay_id: string; publishes: number }>(PUBLISHES, [
    where.queue,
  ])
  const begun = new Map(rows.map(({ replay_id, publishes }) => [replay_id, publishes]))
  const received = Map.groupBy(
    readHistory(world.folder).filter((entry) => entry.what === 'replay_received'),
    ({ replayId }) => replayId,
  )
  const again = [...begun.values()].reduce((sum, times) => sum + Math.max(0, times - 1), 0)
  const copies = [...received.values()].reduce((sum, { length }) => sum + length - 1, 0)
  const strangers = [...received.keys()].filter((id) => !begun.has(id)).length
  return { duplicates: copies, explained: again, strangers }
}

/** Every count that the catalog keeps, next to a count of the rows it stands for. */
const GROUPS = `
select 'group ' || g.id as what, g.open_count || '/' || g.count || '/' || coalesce(m.count, 0) as kept,
    d.open || '/' || d.count + c.count || '/' || d.count + c.count as counted
  from redrive_catalog.failure_group g join redrive_catalog.source s on s.id = g.source_id
    cross join lateral (select count(*) as count, count(*) filter (where status in ('open', 'replaying', 'unknown'))
      as open from redrive_catalog.dead_letter where group_id = g.id) d
    cross join lateral (select count(*) as count from redrive_catalog.failure_cycle where group_id = g.id) c
    cross join lateral (select sum(count) as count from redrive_catalog.group_minute where group_id = g.id) m
  where s.name = $1`
const STATES = `array['planned', 'skipped', 'queued', 'claimed', 'publishing', 'published', 'resolved', 'refailed',
  'unknown', 'expired', 'cancelled']`
const RUNS = `
select 'run ' || r.id || ' ' || n.state as what, to_jsonb(r) ->> n.state as kept,
    (select count(*) from redrive_catalog.replay_item i where i.run_id = r.id and i.state = n.state)::text as counted
  from redrive_catalog.replay_run r join redrive_catalog.source s on s.id = r.source_id
    cross join unnest(${STATES}) as n (state)
  where s.name = $1`

async function miscounted({ pool, where }: Stage): Promise<readonly string[]> {
  const text = `select * from (${GROUPS} union all ${RUNS}) a where kept is distinct from counted`
  const { rows } = await pool.query<{ what: string; kept: string; counted: string }>(text, [
    where.queue,
  ])
  return rows.map(({ what, kept, counted }) => `${what} is ${kept}, counted ${counted}`)
}
