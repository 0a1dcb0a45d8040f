import type { RunSql } from '../database.ts'
import { bounded, type DatedEntry } from './entry.ts'
import { ADD_TO_COUNTS } from './statements.ts'

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

/**
 * Adds the new dead letters to all stored counts. It writes one row for each group and minute, not for each dead
 * letter. `left` lists a group once for each open dead letter that it loses.
 */
export async function addToCounts(
  run: RunSql,
  sourceId: number,
  added: readonly DatedEntry[],
  left: readonly string[],
): Promise<void> {
  if (added.length === 0) return
  const minutes = [...perMinute(added).values()]
  const days = Map.groupBy(added, ({ firstFailedAt }) => floor(firstFailedAt, DAY_MS))
  await run(ADD_TO_COUNTS, [
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

/** The dead letters of one group in one minute. */
interface Minute {
  readonly group: string
  count: number
  attempts: number
  first: number
  last: number
}

function perMinute(added: readonly DatedEntry[]): ReadonlyMap<string, Minute> {
  const minutes = new Map<string, Minute>()
  for (const { group, lastFailedAt: at, drained } of added) {
    const key = `${group.id} ${floor(at, MINUTE_MS)}`
    const known = minutes.get(key)
    const minute = known ?? { group: group.id, count: 0, attempts: 0, first: at, last: at }
    if (known === undefined) minutes.set(key, minute)
    minute.count++
    minute.attempts += bounded(drained.delivery.cycle.attempts)
    minute.first = Math.min(minute.first, at)
    minute.last = Math.max(minute.last, at)
  }
  return minutes
}

const floor = (at: number, spanMs: number) => at - (at % spanMs)
const textOf = (at: number) => new Date(at).toISOString()
