import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'pg'
import type { Run } from '../database.ts'
import { encodeExactly } from '../wire.ts'
import type { DatedEntry, Entry } from './entry.ts'
import { sha256Of, uuidOf } from './identity.ts'

/**
 * A message without a name has another id whenever it is drained. So each is a dead letter of its own,
 * unless the broker says that it may have been drained before: then it is matched, one to one, with a
 * row of the same content that is committed and not known to be released. Which of several identical
 * messages it was does not matter, only how many there are.
 *
 * Whoever drained it may be alive and about to release it. To match it then would lose a dead letter;
 * hence the hold. Adding one twice is the lesser evil, and what happens where it cannot be told.
 */

/** 10 s: a release follows its commit at once. */
const HOLD_MS = 10_000
/** Half of it: a release that begins later might be overtaken, so the batch is given back instead. */
const RELEASE_MS = HOLD_MS / 2
const HELD = `clock_timestamp() + interval '${HOLD_MS} milliseconds'`

/** 200 ms: who waits here comes after a crash. */
const LOOK_MS = 200

/** What a message without a name is known by. */
function contentOf(source: string, { drained, sha256 }: Entry): string {
  const { headers, cycle } = drained.delivery
  const parts = [Buffer.from(encodeExactly([source, cycle.number, headers])), sha256]
  return uuidOf(sha256Of(Buffer.concat(parts)))
}

const isAgain = ({ drained }: Entry) => drained.naming === 'unnamed_again'

const HOLDING = `
select from redrive_catalog.unreleased
  where content = any($1::uuid[]) and held_until > clock_timestamp() limit 1`

/** Waits while someone may be about to release what was drained again, no longer than a hold. */
export async function whenLetGo(
  pool: Pool,
  source: string,
  entries: readonly Entry[],
): Promise<void> {
  const contents = entries.filter(isAgain).map((entry) => contentOf(source, entry))
  if (contents.length === 0) return
  const endsAt = performance.now() + HOLD_MS
  while (performance.now() < endsAt) {
    const { rowCount } = await pool.query(HOLDING, [contents])
    if (rowCount === 0) return
    await sleep(LOOK_MS)
  }
}

/** One row for each that was drained again, as far as there are any. It waits for nobody. */
const MATCH = `
update redrive_catalog.unreleased u set batch = $1, held_until = ${HELD}
  from (select content, count(*) as most from unnest($2::uuid[]) as content group by content) w
  cross join lateral (select f.batch, f.dead_letter_id from redrive_catalog.unreleased f
    where f.content = w.content and f.held_until <= clock_timestamp()
    limit w.most for update skip locked) f
  where u.batch = f.batch and u.dead_letter_id = f.dead_letter_id
  returning u.content`

/** The entries without those that are known by their content. */
export async function withoutKnown(
  run: Run,
  batch: string,
  source: string,
  entries: readonly Entry[],
): Promise<readonly Entry[]> {
  if (!entries.some(isAgain)) return entries
  const contents = entries.map((one) => (isAgain(one) ? contentOf(source, one) : undefined))
  const wanted = contents.filter((content) => content !== undefined)
  const matched = await run<{ content: string }>(MATCH, [batch, wanted])
  const known = Map.groupBy(matched, ({ content }) => content)
  return entries.filter((_, at) => known.get(contents[at] ?? '')?.pop() === undefined)
}

const HOLD = `
insert into redrive_catalog.unreleased (batch, dead_letter_id, content, held_until)
  select $1, u.id, u.content, ${HELD} from unnest($2::uuid[], $3::uuid[]) as u (id, content)`

/** Writes down what was added and has no name. */
export async function holdUnnamed(
  run: Run,
  batch: string,
  source: string,
  added: readonly DatedEntry[],
): Promise<void> {
  const unnamed = added.filter(({ drained }) => drained.naming !== 'named')
  if (unnamed.length === 0) return
  const contents = unnamed.map((entry) => contentOf(source, entry))
  await run(HOLD, [batch, unnamed.map(({ id }) => id), contents])
}

/** Whether the hold of a transaction that began then lasts for its release. */
export const isHeld = (beganAt: number): boolean => performance.now() - beganAt < RELEASE_MS

/** The batch is released. When this is lost, the row stays until upkeep forgets it. */
export async function forgetReleased(pool: Pool, batch: string): Promise<void> {
  await pool.query('delete from redrive_catalog.unreleased where batch = $1', [batch])
}
