import { brokenIf, type Violation } from '../../evidence/evidence.ts'
import { readEffects } from '../../harness/effects.ts'
import { readHistory } from '../../evidence/history.ts'
import { becomesTrue } from '../../harness/wait.ts'
import type { Site } from './site.ts'

export interface Audited {
  readonly figures: readonly string[]
  readonly broken: readonly Violation[]
}

/**
 * Checks that every message took effect once, its dead letter is resolved with a confirmation, and
 * nothing is left.
 */
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
    figures: [
      `lost ${lost}`,
      `unexpected ${unexpected}`,
      `duplicate effects ${twice}`,
      `${proven} of ${ids.length} resolved with a confirmation`,
    ],
    broken: brokenIf(
      [lost > 0, 'lost', `${lost} without effect`],
      [unexpected > 0, 'unexpected', `${unexpected} effects without a message`],
      [twice > 0, 'effect duplicated', String(twice)],
      [
        resolved !== ids.length || Object.keys(others).length > 0,
        'in the wrong place',
        `resolved ${resolved}, ${JSON.stringify(others)}`,
      ],
      [proven !== ids.length, 'unexpected', `${proven} have a confirmation`],
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
  (select coalesce(sum(abs(open_count) + abs(replaying_count) + abs(undecided_count)), 0)::int from redrive_catalog.failure_group) as open`

interface Counts {
  readonly proven: number
  readonly again: number
  readonly open: number
}

async function countsOf({ pool }: Site): Promise<Counts> {
  const { rows } = await pool.query<Counts>(COUNTS)
  return rows[0] as Counts
}

/** 10 s: an offset is committed shortly after the transaction, not together with it. */
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

/** Returns when the consumers received each replay for the first time, in order of time. */
export function arrivals(folder: string): {
  readonly times: readonly number[]
  readonly again: number
} {
  const first = new Map<string, number>()
  let again = 0
  for (const entry of readHistory(folder)) {
    if (entry.what !== 'replay_received') continue
    if (first.has(entry.replayId)) again += 1
    else first.set(entry.replayId, entry.at)
  }
  return { times: [...first.values()], again }
}
