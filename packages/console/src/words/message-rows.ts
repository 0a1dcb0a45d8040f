import type { MessageRow } from '../data/messages.ts'

export interface Newest {
  readonly rows: readonly MessageRow[]
  /** Whether these are all rows that match. */
  readonly isAll: boolean
}

export interface MessageRows {
  readonly rows: readonly MessageRow[]
  /** Number of matching messages that failed after the first row of the list. */
  readonly added: number
}

/**
 * Returns the rows of a list with what changed since it was loaded: the newer values of rows, without rows that no longer
 * match. `newest` has the first rows that match now; undefined if unknown.
 */
export function currentRows(
  loaded: readonly MessageRow[],
  newest: Newest | undefined,
): MessageRows {
  if (newest === undefined) return { rows: loaded, added: 0 }
  const now = new Map(newest.rows.map((row) => [row.id, row]))
  // Without a row, the search may have ended before it found one.
  const last = newest.rows.at(-1)?.lastFailedAt ?? Number.POSITIVE_INFINITY
  // An older row may still match: it is not among the newest ones.
  const mayMatch = ({ lastFailedAt }: MessageRow) => !newest.isAll && lastFailedAt <= last
  const first = loaded[0]?.lastFailedAt ?? Number.NEGATIVE_INFINITY
  const known = new Set(loaded.map(({ id }) => id))
  return {
    rows: loaded.flatMap((row) => now.get(row.id) ?? (mayMatch(row) ? row : [])),
    added: newest.rows.filter(({ id, lastFailedAt }) => !known.has(id) && lastFailedAt > first)
      .length,
  }
}
