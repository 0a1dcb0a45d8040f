import { RedriveError } from '@redrive/core'
import { Check, PAGE, SOURCES_MAX } from './check.ts'
import type { Status } from './query.ts'
import { EXPIRED } from '../statements.ts'
import { ask, type Reader } from './sql.ts'

/** Filters for the counts of expired dead letters. */
export interface ExpiredQuery {
  /** Names of sources, at most 1,000. Default: all. */
  readonly sources?: readonly string[]
  /** Maximum number of rows (1 to 200, default 50). */
  readonly limit?: number
  /** Cursor from the previous page. */
  readonly cursor?: string
}

/** How many dead letters of one source and one day retention has deleted. */
export interface ExpiredDay {
  readonly source: string
  /** Day of the first failure, UTC: '2026-11-18'. */
  readonly day: string
  /** When retention last deleted dead letters of this day, epoch ms. */
  readonly expiredAt: number | undefined
  /** Number of dead letters by the last status that they had; `put_back`: returned to the broker. */
  readonly byStatus: Readonly<Partial<Record<Status | 'put_back', number>>>
}

export interface ExpiredPage {
  readonly days: readonly ExpiredDay[]
  /** Cursor of the next page; undefined on the last page. */
  readonly nextCursor: string | undefined
}

const FIELDS: Readonly<Record<keyof ExpiredQuery, true>> = {
  sources: true,
  limit: true,
  cursor: true,
}

/** Returns the counts of expired dead letters, newest day first. */
export async function readExpired(reader: Reader, query: ExpiredQuery): Promise<ExpiredPage> {
  const check = new Check('expired()', query, FIELDS)
  check.lists('sources', SOURCES_MAX)
  check.page()
  check.done()
  const { sources = null, limit: most = PAGE } = query
  const [day, source] = cursorOf(query.cursor)
  const values = [sources, day, source, most + 1]
  const rows = await ask<ExpiredRow>(reader, { text: EXPIRED, values })
  const days = rows
    .slice(0, most)
    .map(({ expiredAt, ...row }) => ({ ...row, expiredAt: expiredAt ?? undefined }))
  const last = days.at(-1)
  const isMore = rows.length > most && last !== undefined
  return { days, nextCursor: isMore ? `${last.day}_${last.source}` : undefined }
}

type ExpiredRow = Omit<ExpiredDay, 'expiredAt'> & { readonly expiredAt: number | null }

const CURSOR = /^(\d{4}-\d{2}-\d{2})_(.+)$/s

function cursorOf(cursor: string | undefined): readonly [string | null, string | null] {
  if (cursor === undefined) return [null, null]
  const [, day, source] = CURSOR.exec(cursor) ?? []
  if (day !== undefined && source !== undefined) return [day, source]
  const problem = 'cursor: expected "nextCursor" of the previous page'
  throw new RedriveError('POLICY_INVALID', problem, { problems: [problem] })
}
