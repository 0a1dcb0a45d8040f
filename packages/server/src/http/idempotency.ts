import { createHash, randomUUID } from 'node:crypto'
import type { Operation } from '@redrive/api'
import type { Pool } from 'pg'
import type { Caller } from '../access/caller.ts'
import { isRefused, Refusal } from '../access/refusal.ts'
import { type Run, runOn } from '../database.ts'
import type { Insist } from '../insist.ts'

/** One mutation as it was asked for. */
export interface AskedOnce {
  readonly caller: Caller
  readonly key: string
  readonly operation: Operation
  /** All that makes it this request and not another. */
  readonly request: unknown
}

/** As it goes out. */
export interface Outgoing {
  readonly status: number
  readonly text: string | undefined
  readonly etag: string | undefined
}

export interface Answered extends Outgoing {
  readonly isReplayed: boolean
}

/** Operations whose answer has a secret: only that they are done is kept. */
const SECRET: ReadonlySet<Operation> = new Set<Operation>(['createToken'])

/**
 * Operations that are safe to do again when nobody knows whether they were done: a plan has the name of its
 * request, and what was approved, cancelled or revoked never is what it was before. All others could undo what
 * somebody did meanwhile, or happen twice. Also a change of a group: its ETag is the same when it is changed back.
 */
const AGAIN: ReadonlySet<Operation> = new Set<Operation>([
  'planReplay',
  'approveReplay',
  'cancelReplay',
  'revokeToken',
])

/** A minute: whoever worked on it is dead, or will find what it did already done. */
const TAKEN_OVER = `interval '1 minute'`
/** A day: nobody repeats a request later than that. */
const KEPT = `interval '24 hours'`
/** 1 s: most mutations take less. */
const RETRY_MS = 1_000

const TAKE = `
insert into redrive_server.idempotency as i (caller, key, operation, request_hash, work)
  values ($1, $2, $3, $4, $5)
  on conflict (caller, key) do update set operation = excluded.operation, request_hash = excluded.request_hash,
      work = excluded.work, taken_at = clock_timestamp(), status = null, answer = null, etag = null
    where i.taken_at < clock_timestamp() - ${KEPT}
      or ($6::boolean and i.status is null and i.taken_at < clock_timestamp() - ${TAKEN_OVER}
        and i.operation = excluded.operation and i.request_hash = excluded.request_hash)
  returning work`
const LOOK = `
select operation, request_hash, status, answer, etag,
    taken_at < clock_timestamp() - ${TAKEN_OVER} as is_broken_off
  from redrive_server.idempotency where caller = $1 and key = $2`
const KEEP = `
update redrive_server.idempotency set status = $4, answer = $5, etag = $6
  where caller = $1 and key = $2 and work = $3`
const LEAVE = `
delete from redrive_server.idempotency where caller = $1 and key = $2 and work = $3 and status is null`
/** 1,000 in a statement: it takes a moment, and others get their turn. */
const SWEPT_AT_ONCE = 1_000
const SWEEP = `
delete from redrive_server.idempotency where (caller, key) in (
  select caller, key from redrive_server.idempotency
    where taken_at < clock_timestamp() - ${KEPT} order by taken_at limit ${SWEPT_AT_ONCE})
  returning 1`

interface Row {
  readonly operation: string
  readonly request_hash: Buffer
  readonly status: number | null
  readonly answer: string | null
  readonly etag: string | null
  /** Where it has no status: it was begun so long ago that nobody works on it any more. */
  readonly is_broken_off: boolean
}

/** Answers a mutation that was asked for twice with what was answered the first time. */
export class Idempotency {
  readonly #run: Run
  readonly #insist: Insist

  constructor(pool: Pool, insist: Insist) {
    this.#run = runOn(pool)
    this.#insist = insist
  }

  async once(asked: AskedOnce, work: () => Promise<Outgoing>): Promise<Answered> {
    const mine = [callerOf(asked), asked.key, randomUUID()] as const
    const hash = hashOf(asked)
    const isSafe = AGAIN.has(asked.operation)
    const values = [mine[0], mine[1], asked.operation, hash, mine[2], isSafe]
    const taken = await this.#run(TAKE, values)
    if (taken.length === 0) return this.#before(asked, hash)
    let outgoing: Outgoing
    try {
      outgoing = await work()
    } catch (error) {
      // Nothing was done: the same key may be tried again. When nobody knows, it is as if we had died at it.
      if (isRefused(error)) await this.#after(asked, LEAVE, mine)
      throw error
    }
    const { status, text, etag } = outgoing
    const kept = SECRET.has(asked.operation) ? null : (text ?? null)
    await this.#after(asked, KEEP, [...mine, status, kept, etag ?? null])
    return { ...outgoing, isReplayed: false }
  }

  /** How it ended is known, and is answered whether or not it can be kept for who asks again. */
  #after({ operation }: AskedOnce, text: string, values: readonly unknown[]): Promise<void> {
    return this.#insist(`how ${operation} ended, for its key`, () => this.#run(text, values))
  }

  /** Forgets what is old. Called every now and then, by anybody. */
  async sweep(): Promise<void> {
    let swept: readonly unknown[]
    do swept = await this.#run(SWEEP)
    while (swept.length === SWEPT_AT_ONCE)
  }

  async #before(asked: AskedOnce, hash: Buffer): Promise<Answered> {
    const [row] = await this.#run<Row>(LOOK, [callerOf(asked), asked.key])
    if (row === undefined) throw inProgress(asked)
    if (row.operation !== asked.operation || !row.request_hash.equals(hash)) throw reused()
    if (row.status === null) throw row.is_broken_off ? brokeOff(asked) : inProgress(asked)
    if (SECRET.has(asked.operation)) throw shownOnce()
    const { status, answer, etag } = row
    return { status, text: answer ?? undefined, etag: etag ?? undefined, isReplayed: true }
  }
}

/** Of the credential and not only of the person: a token must not get what a session was answered. */
const callerOf = ({ caller: { person, credential } }: AskedOnce) =>
  JSON.stringify([person, credential ?? null])

const hashOf = ({ operation, request }: AskedOnce) =>
  createHash('sha256')
    .update(JSON.stringify([operation, request]))
    .digest()

/** The same for the same request, and made by nobody else. */
export const requestName = (asked: AskedOnce): string =>
  createHash('sha256')
    .update(JSON.stringify([callerOf(asked), asked.key]))
    .update(hashOf(asked))
    .digest('hex')

const inProgress = ({ operation }: AskedOnce) =>
  new Refusal(
    'in_progress',
    `The same request is being worked on, or broke off. Ask again in a second; a minute after it began ${
      AGAIN.has(operation) ? 'it is worked on anew' : 'you are told when it broke off'
    }.`,
    { retryAfterMs: RETRY_MS },
  )
/** What is safe to do again was not old enough a moment ago, and is taken over next time. */
const brokeOff = (asked: AskedOnce) =>
  AGAIN.has(asked.operation)
    ? inProgress(asked)
    : new Refusal(
        'conflict',
        'The same request was begun more than a minute ago and has not ended: it broke off, or takes long. Nobody knows whether it was done, so it is not done again. Look; if it was not done, ask with a new Idempotency-Key.',
      )
const reused = () =>
  new Refusal(
    'idempotency_key_reused',
    'This Idempotency-Key was used for another request. Use a new one for each request.',
  )
const shownOnce = () =>
  new Refusal(
    'conflict',
    'It is done, and its answer has a secret that is shown only once. Revoke the token and make another.',
  )
