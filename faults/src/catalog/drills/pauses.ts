import type { Pool } from 'pg'
import type { Violation } from '../../evidence/evidence.ts'
import { readHistory } from '../../evidence/history.ts'

/** A run that Redrive paused. */
export interface Pause {
  readonly run: string
  readonly at: number
  readonly because: string
}

/** Returns a violation for each pause, for drills in which no run may pause. */
export const pausesOf = ({ pauses }: { readonly pauses: readonly Pause[] }): readonly Violation[] =>
  pauses.map(unexpected)

/** Returns a violation for each pause whose consumers were not stuck. */
export async function wrongPauses(
  { pool, pauses }: { readonly pool: Pool; readonly pauses: readonly Pause[] },
  folder: string,
): Promise<readonly Violation[]> {
  const handledAt = handledIn(folder)
  const wrong: Pause[] = []
  for (const pause of pauses) {
    const { rows } = await pool.query<Unconfirmed>(UNPROVEN, [pause.run, pause.at])
    if (!pause.because.startsWith(STALLED) || !areStuck(rows, handledAt)) wrong.push(pause)
  }
  return wrong.map(unexpected)
}

const unexpected = ({ because }: Pause): Violation => ({
  rule: 'unexpected',
  text: `it paused: ${because}`,
})

/** The start of the pause reason after 3 s without a confirmation. */
const STALLED = 'No confirmation for'
/** A second: far more than any of them takes here. */
const LATE_MS = 1_000

interface Unconfirmed {
  readonly key: string
  readonly publishedAt: number
}

/** Whether an item without a proof was not handled in time. Otherwise only its proof is late. */
export const areStuck = (
  unconfirmed: readonly Unconfirmed[],
  handledAt: ReadonlyMap<string, number>,
): boolean =>
  unconfirmed.some(
    ({ key, publishedAt }) =>
      (handledAt.get(key) ?? Number.POSITIVE_INFINITY) > publishedAt + LATE_MS,
  )

/**
 * Items without a proof that were published 3 s or more before the pause. A proof of the last second may have been
 * stored while the run paused.
 */
const UNPROVEN = `
select d.key, extract(epoch from i.published_at)::float8 * 1000 as "publishedAt"
  from redrive_catalog.replay_item i join redrive_catalog.dead_letter d on d.id = i.dead_letter_id
  where i.run_id = $1 and i.published_at < to_timestamp($2 / 1000.0) - interval '3 seconds'
    and (i.settled_at is null or i.settled_at > to_timestamp($2 / 1000.0) - interval '1 second')`

/** Returns when the consumers committed each message. */
function handledIn(folder: string): ReadonlyMap<string, number> {
  return new Map(
    readHistory(folder).flatMap((entry) =>
      entry.what === 'effect' && entry.isNew ? [[entry.id, entry.at] as const] : [],
    ),
  )
}
