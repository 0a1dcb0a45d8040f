import type { Run } from '../database.ts'
import { bounded, type DatedEntry } from './entry.ts'

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

const ADD = `
select redrive_catalog.add_to_counts($1, $2::uuid[], $3::timestamptz[], $4::integer[], $5::bigint[],
  $6::timestamptz[], $7::timestamptz[], $8::date[], $9::integer[], $10::uuid[])`

/**
 * Adds what was really added to every count that is kept: one row for each group and time, not for each
 * dead letter. `left` are the groups that lose an open one, as often as they do.
 */
export async function addToCounts(
  run: Run,
  sourceId: number,
  added: readonly DatedEntry[],
  left: readonly string[],
): Promise<void> {
  if (added.length === 0) return
  const minutes = [...perMinute(added).values()]
  const days = Map.groupBy(added, ({ firstFailedAt }) => floor(firstFailedAt, DAY_MS))
  await run(ADD, [
    sourceId,
    minutes.map(({ group }) => group),
    minutes.map(({ last }) => textOf(floor(last, MINUTE_MS))),
    minutes.map(({ count }) => count),
    minutes.map(({ attempts }) => attempts),
    minutes.map(({ first }) => textOf(first)),
    minutes.map(({ last }) => textOf(last)),
    [...days.keys()].map((at) => textOf(at).slice(0, 10)),
    [...days.values()].map(({ length }) => length),
    left,
  ])
}

/** What came of one group in one minute. */
interface Minute {
  readonly group: string
  count: number
  attempts: number
  first: number
  last: number
}

function perMinute(added: readonly DatedEntry[]): ReadonlyMap<string, Minute> {
  const found = new Map<string, Minute>()
  for (const { group, lastFailedAt: at, drained } of added) {
    const key = `${group.id} ${floor(at, MINUTE_MS)}`
    const known = found.get(key)
    const minute = known ?? { group: group.id, count: 0, attempts: 0, first: at, last: at }
    if (known === undefined) found.set(key, minute)
    minute.count++
    minute.attempts += bounded(drained.delivery.cycle.attempts)
    minute.first = Math.min(minute.first, at)
    minute.last = Math.max(minute.last, at)
  }
  return found
}

const floor = (at: number, spanMs: number) => at - (at % spanMs)
const textOf = (at: number) => new Date(at).toISOString()
