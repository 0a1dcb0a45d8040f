import type { AuditEntry } from '@redrive/api'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { inTransaction, type Run } from '../database.ts'

/** All that are named must fit. */
export interface AuditQuery {
  readonly person?: string | undefined
  readonly source?: string | undefined
  readonly what?: string | undefined
  readonly subject?: string | undefined
  /** 1 to 200. Default 50. */
  readonly most?: number | undefined
  /** Only entries with a smaller sequence: `next` of the page before. */
  readonly before?: number | undefined
}

export interface AuditPage {
  /** Newest first. */
  readonly entries: AuditEntry[]
  /** Absent at the end. */
  readonly next?: number
}

/** The columns of an entry as they are read everywhere. */
export const ENTRY: string = `sequence, at_ms, person, via, what, outcome, source, subject, facts,
  encode(previous, 'hex') as previous, encode(hash, 'hex') as hash`

export interface EntryRow {
  readonly sequence: string
  readonly at_ms: string
  readonly person: string
  readonly via: string
  readonly what: string
  readonly outcome: AuditEntry['outcome']
  readonly source: string | null
  readonly subject: string | null
  readonly facts: string
  readonly previous: string
  readonly hash: string
}

const FILTERS = ['person', 'source', 'what', 'subject'] as const
const MOST_DEFAULT = 50
const MOST_MAX = 200
/** 5 s: a rare `what` in years of entries is looked for in all of them. */
const BEGIN = "begin read only; set local statement_timeout = '5s'"
/** query_canceled */
const CANCELLED = '57014'

export async function readAudit(pool: Pool, query: AuditQuery): Promise<AuditPage> {
  const most = Math.min(Math.max(query.most ?? MOST_DEFAULT, 1), MOST_MAX)
  try {
    const rows = await inTransaction(pool, (run) => select(run, query, most + 1), BEGIN)
    const entries = rows.slice(0, most).map(entryOf)
    const last = entries.at(-1)
    return rows.length > most && last !== undefined ? { entries, next: last.sequence } : { entries }
  } catch (error) {
    throw (error as { code?: unknown }).code === CANCELLED ? tooBroad(error) : error
  }
}

function select(run: Run, query: AuditQuery, limit: number): Promise<readonly EntryRow[]> {
  const values: unknown[] = [query.before ?? Number.MAX_SAFE_INTEGER, limit]
  const where = FILTERS.flatMap((name) =>
    query[name] === undefined ? [] : [`and ${name} = $${values.push(query[name])}`],
  )
  const text = `select ${ENTRY} from redrive_server.audit where sequence < $1 ${where.join(' ')}
order by sequence desc limit $2`
  return run<EntryRow>(text, values)
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
    'The search took longer than it may and was ended. Narrow it: name a person, a source or a subject.',
    { cause },
  )
