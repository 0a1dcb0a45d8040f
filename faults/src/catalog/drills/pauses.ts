import type { Pool } from 'pg'
import type { Violation } from '../../evidence/evidence.ts'
import { readHistory } from '../../evidence/history.ts'

/** A run that stopped by itself. */
export interface Pause {
  readonly run: string
  readonly at: number
  readonly because: string
}

/** Where no run may stop. */
export const pausesOf = ({ pauses }: { readonly pauses: readonly Pause[] }): readonly Violation[] =>
  pauses.map(unexpected)

/** Where one may, when its consumers were stuck. */
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

/** One of those without a proof was not handled in time. Otherwise its proof is what is late. */
export const areStuck = (
  unconfirmed: readonly Unconfirmed[],
  handledAt: ReadonlyMap<string, number>,
): boolean =>
  unconfirmed.some(
    ({ key, publishedAt }) =>
      (handledAt.get(key) ?? Number.POSITIVE_INFINITY) > publishedAt + LATE_MS,
  )

/** Out for 3 s at that moment. A proof of the last second may have been written down while the run paused. */
const UNPROVEN = `
select d.key, extract(epoch from i.published_at)::float8 * 1000 as "publishedAt"
  from redrive_catalog.replay_item i join redrive_catalog.dead_letter d on d.id = i.dead_letter_id
  where i.run_id = $1 and i.published_at < to_timestamp($2 / 1000.0) - interval '3 seconds'
    and (i.settled_at is null or i.settled_at > to_timestamp($2 / 1000.0) - interval '1 second')`

/** When the consumers had committed each of them. */
function handledIn(folder: string): ReadonlyMap<string, number> {
  return new Map(
    readHistory(folder).flatMap((entry) =>
      entry.what === 'effect' && entry.isNew ? [[entry.id, entry.at] as const] : [],
    ),
  )
}
