import { brokenIf, type Violation } from '../evidence/evidence.ts'
import { readEffects } from '../harness/effects.ts'
import { readHistory } from '../evidence/history.ts'
import type { Stage } from './stage.ts'

/** The expected state after a row of the table. */
export interface ExpectedState {
  /** Number of dead letters in each status. */
  readonly statuses: Readonly<Record<string, number>>
  /** Number of messages that took effect. Default: the number of resolved dead letters. */
  readonly effects?: number
  /** Maximum number of copies delivered beyond the first of each replay. */
  readonly duplicates: number
  /** Number of these copies that no row of the catalog explains. Default 0. */
  readonly unexplained?: number
  readonly figures?: readonly string[]
  readonly broken?: readonly Violation[]
}

export interface Audit {
  readonly figures: readonly string[]
  readonly broken: readonly Violation[]
}

/** Compares the tables and the consumers' records with the expected state. */
export async function audit(stage: Stage, ending: ExpectedState): Promise<Audit> {
  const letters = await lettersOf(stage)
  const effects = await readEffects(stage.books, stage.where.queue)
  const deliveries = await deliveriesOf(stage)
  const lost = stage.ids.filter((id) => isLost(id, letters, effects))
  const twice = [...effects].filter(([, count]) => count > 1)
  const statuses = countsOf([...letters.values()].flat())
  const expected = ending.effects ?? ending.statuses['resolved'] ?? 0
  const several = [...letters.values()].filter(({ length }) => length > 1).length
  const depth = await stage.source.depth()
  const explained = deliveries.explained + (ending.unexplained ?? 0)
  const wrong = await miscounted(stage)
  return {
    figures: [
      `${stage.ids.length} messages, ${lost.length} lost`,
      `${deliveries.duplicates} duplicate deliveries of at most ${ending.duplicates}`,
      `${twice.length} duplicate effects`,
      ...(ending.figures ?? []),
    ],
    broken: [
      ...brokenIf(
        [lost.length > 0, 'lost', `${lost.length}, such as ${lost[0]}`],
        [twice.length > 0, 'effect duplicated', `${twice.length}, such as ${twice[0]?.join(': ')}`],
        [several > 0, 'copied twice', `${several} messages have several dead letters`],
        [
          deliveries.duplicates > Math.min(ending.duplicates, explained),
          'duplicates over the bound',
          `${deliveries.duplicates}; the row allows ${ending.duplicates}, the started publishes explain ${explained}`,
        ],
        [
          deliveries.strangers > 0,
          'unexpected',
          `${deliveries.strangers} replay ids that no plan contains`,
        ],
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
  /** The business key: the id that producers use. */
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

/**
 * Returns whether a message is lost: it had no effect, and the catalog does not have it or counts
 * it as done.
 */
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

const ID_LENGTH = 36

const PUBLISHES = `
select i.replay_id, i.publishes from redrive_catalog.replay_item i
  join redrive_catalog.replay_run r on r.id = i.run_id join redrive_catalog.source s on s.id = r.source_id
  where s.name = $1 and i.state not in ('planned', 'skipped', 'cancelled')`

/**
 * Counts the deliveries to consumers. The catalog counts a publish before it starts, so a replay is
 * published at most as often as counted. Deliveries of a consumer that died come again on top.
 */
async function deliveriesOf({ pool, where, world }: Stage) {
  const { rows } = await pool.query<{ replay_id: string; publishes: number }>(PUBLISHES, [
    where.queue,
  ])
  const begun = new Map(rows.map(({ replay_id, publishes }) => [replay_id, publishes]))
  const received = Map.groupBy(
    readHistory(world.folder).filter((entry) => entry.what === 'replay_received'),
    // Without the signature, which only the message contains.
    ({ replayId }) => replayId.slice(0, ID_LENGTH),
  )
  const again = [...begun.values()].reduce((sum, times) => sum + Math.max(0, times - 1), 0)
  const copies = [...received.values()].reduce((sum, { length }) => sum + length - 1, 0)
  const strangers = [...received.keys()].filter((id) => !begun.has(id)).length
  return { duplicates: copies, explained: again, strangers }
}

/** Compares every stored count of the catalog with a count of its rows. */
const GROUPS = `
select 'group ' || g.id as what,
    concat_ws('/', g.open_count, g.replaying_count, g.undecided_count, g.count, coalesce(m.count, 0)) as kept,
    concat_ws('/', d.open, d.replaying, d.undecided, d.count + c.count, d.count + c.count) as counted
  from redrive_catalog.failure_group g join redrive_catalog.source s on s.id = g.source_id
    cross join lateral (select count(*) as count, count(*) filter (where status = 'open') as open,
      count(*) filter (where status = 'replaying') as replaying, count(*) filter (where status = 'unknown') as undecided
      from redrive_catalog.dead_letter where group_id = g.id) d
    cross join lateral (select count(*) as count from redrive_catalog.failure_cycle where group_id = g.id) c
    cross join lateral (select sum(count) as count from redrive_catalog.group_minute where group_id = g.id) m
  where s.name = $1`
const STATES = `array['planned', 'skipped', 'queued', 'claimed', 'publishing', 'published', 'resolved', 'failed_again',
  'unknown', 'expired', 'cancelled', 'not_returned']`
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
