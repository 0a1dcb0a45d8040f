import { isRedriveError, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { inTransaction, type RunSql } from '../database.ts'
import type { Caller } from '../access/caller.ts'
import { hashOf, type Link } from './chain.ts'
import type { NewEntry, WriteAudit } from './entry.ts'
import { APPEND, LOCK_HEAD } from './statements.ts'

/** 500 entries per transaction. More would block other processes too long. */
const BATCH_MAX = 500
/** 10,000 pending entries take many seconds to write. Further entries are rejected immediately. */
const PENDING_MAX = 10_000
/** 64 KiB of facts: they contain names and ids, not content. */
const FACTS_MAX = 65_536
/** 600 characters always fit into an index. Names in the API have at most 500. */
const TEXT_MAX = 600
/** 5 s for the lock and 5 s for a statement, because a user waits for the response. */
const BEGIN = "begin; set local lock_timeout = '5s'; set local statement_timeout = '5s'"

type UnnumberedLink = Omit<Link, 'sequence' | 'at'>

interface PendingEntry {
  readonly entry: UnnumberedLink
  readonly resolve: (sequence: number) => void
  readonly reject: (reason: unknown) => void
}

/**
 * Creates a writer of audit entries. Entries that arrive during a transaction are written together in the next
 * one, so that they share one disk sync.
 */
export function writer(pool: Pool): WriteAudit {
  const pending: PendingEntry[] = []
  let isWriting = false
  const writeAll = async () => {
    isWriting = true
    while (pending.length > 0) await writeBatch(pool, pending.splice(0, BATCH_MAX))
    isWriting = false
  }
  return (entry) =>
    new Promise((resolve, reject) => {
      const link = linkOf(entry)
      if (pending.length >= PENDING_MAX) throw cannotWrite(new Error('too many pending entries'))
      pending.push({ entry: link, resolve, reject })
      if (!isWriting) void writeAll()
    })
}

async function writeBatch(pool: Pool, batch: readonly PendingEntry[]): Promise<void> {
  const entries = batch.map(({ entry }) => entry)
  try {
    const first = await inTransaction(pool, (run) => append(run, entries), BEGIN)
    for (const [at, { resolve }] of batch.entries()) resolve(first + at)
  } catch (error) {
    for (const { reject } of batch) reject(cannotWrite(error))
  }
}

interface Head {
  readonly sequence: string
  readonly hash: string
  readonly now: string
}

/** Appends entries and returns the number of the first one. */
async function append(run: RunSql, entries: readonly UnnumberedLink[]): Promise<number> {
  const [head] = await run<Head>(LOCK_HEAD)
  if (head === undefined) throw new Error('the table redrive_server.audit_head is empty')
  const at = Number(head.now)
  let sequence = Number(head.sequence)
  let previous = head.hash
  const chained = entries.map((entry) => {
    const link = { ...entry, at, sequence: ++sequence, previous }
    previous = hashOf(link, previous)
    return { ...link, hash: previous }
  })
  const column = (name: keyof (typeof chained)[number]) => chained.map((one) => one[name])
  await run(APPEND, [at, ...COLUMNS.map(column), sequence, previous])
  return sequence - entries.length + 1
}

const COLUMNS = [
  'sequence',
  'person',
  'via',
  'operation',
  'outcome',
  'source',
  'subject',
  'facts',
  'previous',
  'hash',
] as const

function linkOf({
  caller,
  via,
  operation,
  outcome,
  source,
  subject,
  facts = {},
}: NewEntry): UnnumberedLink {
  const json = JSON.stringify({ ...facts, ...circumstances(caller) })
  if (json.length > FACTS_MAX) throw tooLong('facts', FACTS_MAX)
  return {
    person: storable('person', caller?.person ?? ''),
    via: via ?? caller?.via ?? '',
    operation: storable('operation', operation),
    outcome,
    source: source === undefined ? null : storable('source', source),
    subject: subject === undefined ? null : storable('subject', subject),
    facts: json,
  }
}

/** Returns the credential of a caller, and where the request came from. */
function circumstances(caller: Caller | undefined): Readonly<Record<string, unknown>> {
  const { credential, origin, isAgent } = caller ?? {}
  return {
    ...(credential === undefined ? {} : { credential }),
    ...(origin === undefined ? {} : { address: origin.address, request: origin.requestId }),
    ...(isAgent === true ? { isAgent } : {}),
  }
}

/** Replaces NUL and lone surrogates, which PostgreSQL cannot store. The hash must match the stored text. */
function storable(name: string, text: string): string {
  if (text.length > TEXT_MAX) throw tooLong(name, TEXT_MAX)
  return text.toWellFormed().replaceAll('\0', '\uFFFD')
}

const tooLong = (name: string, max: number) =>
  new RedriveError(
    'REFUSED',
    `The audit entry of this request is too long: "${name}" has more than ${max} characters. Send a smaller request.`,
  )

/** Reports that an entry cannot be written. The caller decides whether the action may have run. */
function cannotWrite(cause: unknown): unknown {
  if (isRedriveError(cause, 'TOPOLOGY_MISMATCH')) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new RedriveError(
    'UNREACHABLE',
    `Cannot write the audit log: ${reason}. Retry when the database is reachable.`,
    { cause },
  )
}
