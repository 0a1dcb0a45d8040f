import { isRedriveError, RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { inTransaction, type Run } from '../database.ts'
import { hashOf, type Link } from './chain.ts'
import type { NewEntry, WriteAudit } from './entry.ts'

/** 500 in one transaction: more would keep other processes from the chain for longer than a moment. */
const BATCH_MAX = 500
/** 10,000 that wait are many seconds of work: whoever comes then is told at once. */
const WAITING_MAX = 10_000
/** 64 KiB of facts: they name things, and never carry them. */
const FACTS_MAX = 65_536
/** 600 characters fit into an index, whatever they are. Names in the API have 500 at most. */
const TEXT_MAX = 600
/** 5 s for the lock and 5 s for a statement: whoever waits for the audit has a person waiting. */
const BEGIN = "begin; set local lock_timeout = '5s'; set local statement_timeout = '5s'"

type Unplaced = Omit<Link, 'sequence' | 'at'>

interface Waiting {
  readonly entry: Unplaced
  readonly resolve: () => void
  readonly reject: (why: unknown) => void
}

/**
 * Writes entries one after the other, however many come at once: those that come while some are being
 * written go together in the next transaction. So the disk is waited for once for all of them.
 */
export function writer(pool: Pool): WriteAudit {
  const waiting: Waiting[] = []
  let isWriting = false
  const writeAll = async () => {
    isWriting = true
    while (waiting.length > 0) await writeBatch(pool, waiting.splice(0, BATCH_MAX))
    isWriting = false
  }
  return (entry) =>
    new Promise((resolve, reject) => {
      const unplaced = unplacedOf(entry)
      if (waiting.length >= WAITING_MAX) throw cannotWrite(new Error('too many are waiting'))
      waiting.push({ entry: unplaced, resolve, reject })
      if (!isWriting) void writeAll()
    })
}

async function writeBatch(pool: Pool, batch: readonly Waiting[]): Promise<void> {
  const entries = batch.map(({ entry }) => entry)
  try {
    await inTransaction(pool, (run) => append(run, entries), BEGIN)
    for (const { resolve } of batch) resolve()
  } catch (error) {
    for (const { reject } of batch) reject(cannotWrite(error))
  }
}

interface Head {
  readonly sequence: string
  readonly hash: string
  readonly now: string
}

/** The clock is read with the lock held, so that it goes the way the sequence goes. */
const LOCK_HEAD = `select sequence, encode(hash, 'hex') as hash,
  (extract(epoch from clock_timestamp()) * 1000)::bigint as now
from redrive_server.audit_head for update`

const APPEND = `with added as (
  insert into redrive_server.audit (sequence, at_ms, person, via, what, outcome, source, subject, facts, previous, hash)
  select sequence, $1, person, via, what, outcome, source, subject, facts, decode(previous, 'hex'), decode(hash, 'hex')
  from unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])
    as entry (sequence, person, via, what, outcome, source, subject, facts, previous, hash)
)
update redrive_server.audit_head set sequence = $12, hash = decode($13, 'hex')`

async function append(run: Run, entries: readonly Unplaced[]): Promise<void> {
  const [head] = await run<Head>(LOCK_HEAD)
  if (head === undefined) throw new Error('redrive_server.audit_head has lost its row')
  const at = Number(head.now)
  let sequence = Number(head.sequence)
  let previous = head.hash
  const placed = entries.map((entry) => {
    const link = { ...entry, at, sequence: ++sequence, previous }
    previous = hashOf(link, previous)
    return { ...link, hash: previous }
  })
  const column = (name: keyof (typeof placed)[number]) => placed.map((one) => one[name])
  await run(APPEND, [at, ...COLUMNS.map(column), sequence, previous])
}

const COLUMNS = [
  'sequence',
  'person',
  'via',
  'what',
  'outcome',
  'source',
  'subject',
  'facts',
  'previous',
  'hash',
] as const

function unplacedOf({ caller, what, outcome, source, subject, facts = {} }: NewEntry): Unplaced {
  const json = JSON.stringify(facts)
  if (json.length > FACTS_MAX) throw tooLong('facts', FACTS_MAX)
  return {
    person: storable('person', caller?.person ?? ''),
    via: caller?.via ?? '',
    what: storable('what', what),
    outcome,
    source: source === undefined ? null : storable('source', source),
    subject: subject === undefined ? null : storable('subject', subject),
    facts: json,
  }
}

/** PostgreSQL keeps neither NUL nor half a surrogate pair, and the hash is over what it keeps. */
function storable(name: string, text: string): string {
  if (text.length > TEXT_MAX) throw tooLong(name, TEXT_MAX)
  return text.toWellFormed().replaceAll('\0', '\uFFFD')
}

const tooLong = (name: string, most: number) =>
  new RedriveError(
    'REFUSED',
    `What would have to be written into the audit is too long: ${name} has more than ${most} characters. Ask for less at once.`,
  )

/** Whether anything was done is known to who asked: entries are written before and after. */
function cannotWrite(cause: unknown): unknown {
  if (isRedriveError(cause, 'TOPOLOGY_MISMATCH')) return cause
  const why = cause instanceof Error ? cause.message : String(cause)
  return new RedriveError(
    'UNREACHABLE',
    `The audit cannot be written: ${why}. Ask again when the database answers.`,
    { cause },
  )
}
