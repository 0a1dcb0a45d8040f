import type { AuditEntry } from '@redrive/api'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { inTransaction, type RunSql } from '../database.ts'
import type { Link } from './chain.ts'
import { searchAudit } from './statements.ts'

/** Filters of the audit log. An entry must match all of them. */
export interface AuditQuery {
  readonly person?: string | undefined
  readonly source?: string | undefined
  readonly operation?: string | undefined
  readonly subject?: string | undefined
  /** Maximum number of entries (1–200, default 50). */
  readonly limit?: number | undefined
  /** Returns only entries with a smaller sequence; pass `nextCursor` of the previous page. */
  readonly before?: number | undefined
}

export interface AuditPage {
  /** Newest first. */
  readonly entries: AuditEntry[]
  /** Absent on the last page. */
  readonly nextCursor?: number
}

export interface EntryRow extends Omit<Link, 'sequence' | 'at'> {
  readonly sequence: string
  readonly at_ms: string
  readonly previous: string
  readonly hash: string
}

const FILTERS = ['person', 'source', 'operation', 'subject'] as const
const LIMIT_DEFAULT = 50
const LIMIT_MAX = 200
/** 5 s, because a search for a rare `operation` scans all entries. */
const BEGIN = "begin read only; set local statement_timeout = '5s'"
/** query_canceled */
const CANCELLED = '57014'

export async function readAudit(pool: Pool, query: AuditQuery): Promise<AuditPage> {
  const limit = Math.min(Math.max(query.limit ?? LIMIT_DEFAULT, 1), LIMIT_MAX)
  try {
    const rows = await inTransaction(pool, (run) => select(run, query, limit + 1), BEGIN)
    const entries = rows.slice(0, limit).map(entryOf)
    const last = entries.at(-1)
    return rows.length > limit && last !== undefined
      ? { entries, nextCursor: last.sequence }
      : { entries }
  } catch (error) {
    throw (error as { code?: unknown }).code === CANCELLED ? tooBroad(error) : error
  }
}

function select(run: RunSql, query: AuditQuery, limit: number): Promise<readonly EntryRow[]> {
  const values: unknown[] = [query.before ?? Number.MAX_SAFE_INTEGER, limit]
  const conditions = FILTERS.flatMap((name) =>
    query[name] === undefined ? [] : [`${name} = $${values.push(query[name])}`],
  )
  return run<EntryRow>(searchAudit(conditions), values)
}

function entryOf(row: EntryRow): AuditEntry {
  const { at_ms, source, subject, facts, sequence, ...rest } = row
  return {
    ...rest,
    sequence: Number(sequence),
    at: Number(at_ms),
    ...(source === null ? {} : { source }),
    ...(subject === null ? {} : { subject }),
    facts: JSON.parse(facts) as Record<string, unknown>,
  }
}

const tooBroad = (cause: unknown) =>
  new RedriveError(
    'REFUSED',
    'The search exceeded its time limit. Filter by person, source or subject.',
    { cause },
  )
