import { type Broken, brokenIf } from '../../drill.ts'
import { readEffects } from '../../effects.ts'
import { readHistory } from '../../history.ts'
import { becomesTrue } from '../../wait.ts'
import type { Site } from './site.ts'

export interface Audited {
  readonly told: readonly string[]
  readonly broken: readonly Broken[]
}

/** Every message took effect once, its dead letter is resolved with a proof, and nothing is left anywhere. */
export async function auditResolved(site: Site, ids: readonly string[]): Promise<Audited> {
  const effects = await readEffects(site.pool, site.where.queue)
  const known = new Set(ids)
  const lost = ids.filter((id) => !effects.has(id)).length
  const unexpected = [...effects.keys()].filter((id) => !known.has(id)).length
  const twice = [...effects.values()].filter((count) => count > 1).length
  const { resolved = 0, ...others } = await site.statuses()
  const { proven, again, open } = await countsOf(site)
  const depth = await depthOf(site)
  return {
    told: [
      `lost ${lost}`,
      `unexpected ${unexpected}`,
      `effect duplicates ${twice}`,
      `${proven} of ${ids.length} resolved with proof`,
    ],
    broken: brokenIf(
      [lost > 0, 'lost', `${lost} without effect`],
      [unexpected > 0, 'unexpected', `${unexpected} effects of nobody's`],
      [twice > 0, 'effect duplicated', String(twice)],
      [
        resolved !== ids.length || Object.keys(others).length > 0,
        'in the wrong place',
        `resolved ${resolved}, ${JSON.stringify(others)}`,
      ],
      [proven !== ids.length, 'unexpected', `${proven} have a proof`],
      [again > 0, 'duplicates over the bound', `${again} were published more than once`],
      [open !== 0, 'unexpected', `groups count ${open} as open`],
      [depth > 0, 'not drained', `${depth} dead letters are left in the broker`],
    ),
  }
}

const COUNTS = `
select (select count(distinct dead_letter_id)::int from redrive_catalog.replay_item
    where state = 'resolved' and proof = 'confirmation') as proven,
  (select count(*)::int from redrive_catalog.replay_item where publishes > 1) as again,
  (select coalesce(sum(abs(open_count)), 0)::int from redrive_catalog.failure_group) as open`

interface Counts {
  readonly proven: number
  readonly again: number
  readonly open: number
}

async function countsOf({ pool }: Site): Promise<Counts> {
  const { rows } = await pool.query<Counts>(COUNTS)
  return rows[0] as Counts
}

/** 10 s: an offset is committed soon after, not together with what it is for. */
const RELEASED_MS = 10_000

async function depthOf({ broker, where, pool }: Site): Promise<number> {
  const source = broker.source(where, pool)
  let depth = 0
  const isEmpty = async () => {
    depth = await source.depth()
    return depth === 0
  }
  try {
    await becomesTrue(isEmpty, { withinMs: RELEASED_MS })
    return depth
  } finally {
    await source.close()
  }
}

/** Replays as the consumers got them, in the order of time; the first of each. */
export function arrivals(folder: string): {
  readonly moments: readonly number[]
  readonly again: number
} {
  const first = new Map<string, number>()
  let again = 0
  for (const entry of readHistory(folder)) {
    if (entry.what !== 'replay_received') continue
    if (first.has(entry.replayId)) again += 1
    else first.set(entry.replayId, entry.at)
  }
  return { moments: [...first.values()], again }
}
