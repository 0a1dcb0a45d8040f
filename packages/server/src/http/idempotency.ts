import { createHash, randomUUID } from 'node:crypto'
import type { Operation } from '@redrive/api'
import type { Pool } from 'pg'
import type { Caller } from '../access/caller.ts'
import { isRefused, ProblemError } from '../access/problem-error.ts'
import { type RunSql, runOn } from '../database.ts'
import type { RetryingWriter } from '../retry-write.ts'
import { KEEP, LEAVE, LOOK, SWEEP, SWEEP_BATCH, TAKE } from './statements.ts'

/** A mutation with its Idempotency-Key. */
export interface AskedOnce {
  readonly caller: Caller
  readonly key: string
  readonly operation: Operation
  /** Input of the operation. A different input is a different request. */
  readonly request: unknown
}

/** A response to send. */
export interface Outgoing {
  readonly status: number
  readonly text: string | undefined
  readonly etag: string | undefined
}

export interface OutputWithEtag extends Outgoing {
  readonly isReplayed: boolean
}

/** Operations whose response contains a secret. Only their completion is stored, not the response. */
const SECRET: ReadonlySet<Operation> = new Set<Operation>(['createToken'])

/**
 * Operations that are safe to repeat when their outcome is unknown. A plan stores the name of its request. A second
 * selection changes nothing. An approval, cancellation or revocation is final. Every other operation could happen twice
 * or undo a later change. This includes group changes: the ETag of a group is the same after it was changed back.
 */
const REPEATABLE: ReadonlySet<Operation> = new Set<Operation>([
  'planReplay',
  'selectDeadLetters',
  'approveReplay',
  'cancelReplay',
  'revokeToken',
  'revokeSession',
])

/** 1 s: most mutations are faster. */
const RETRY_MS = 1_000

interface Row {
  readonly operation: string
  readonly request_hash: Buffer
  readonly status: number | null
  readonly answer: string | null
  readonly etag: string | null
  /** Started more than a minute ago. Without a status, the request was interrupted. */
  readonly is_broken_off: boolean
}

/** Returns the first response again when a client repeats a mutation. */
export class Idempotency {
  readonly #run: RunSql
  readonly #retryWrite: RetryingWriter

  constructor(pool: Pool, retryWrite: RetryingWriter) {
    this.#run = runOn(pool)
    this.#retryWrite = retryWrite
  }

  async once(mutation: AskedOnce, work: () => Promise<Outgoing>): Promise<OutputWithEtag> {
    const attempt = [callerOf(mutation), mutation.key, randomUUID()] as const
    const hash = hashOf(mutation)
    const isSafe = REPEATABLE.has(mutation.operation)
    const values = [attempt[0], attempt[1], mutation.operation, hash, attempt[2], isSafe]
    const taken = await this.#run(TAKE, values)
    if (taken.length === 0) return this.#before(mutation, hash)
    let outgoing: Outgoing
    try {
      outgoing = await work()
    } catch (error) {
      // Nothing was changed, so the key can be used again. With an unknown outcome the row stays, as after a crash.
      if (isRefused(error)) await this.#after(mutation, LEAVE, attempt)
      throw error
    }
    const { status, text, etag } = outgoing
    const kept = SECRET.has(mutation.operation) ? null : (text ?? null)
    await this.#after(mutation, KEEP, [...attempt, status, kept, etag ?? null])
    return { ...outgoing, isReplayed: false }
  }

  /** Stores the outcome. The caller gets the response even if it cannot be stored. */
  #after({ operation }: AskedOnce, text: string, values: readonly unknown[]): Promise<void> {
    return this.#retryWrite(`the outcome of ${operation} for its Idempotency-Key`, () =>
      this.#run(text, values),
    )
  }

  /** Deletes expired rows. Every process calls it once an hour. */
  async sweep(): Promise<void> {
    let swept: readonly unknown[]
    do swept = await this.#run(SWEEP)
    while (swept.length === SWEEP_BATCH)
  }

  async #before(mutation: AskedOnce, hash: Buffer): Promise<OutputWithEtag> {
    const [row] = await this.#run<Row>(LOOK, [callerOf(mutation), mutation.key])
    if (row === undefined) throw inProgress(mutation)
    if (row.operation !== mutation.operation || !row.request_hash.equals(hash)) throw reused()
    if (row.status === null) throw row.is_broken_off ? brokeOff(mutation) : inProgress(mutation)
    if (SECRET.has(mutation.operation)) throw shownOnce()
    const { status, answer, etag } = row
    return { status, text: answer ?? undefined, etag: etag ?? undefined, isReplayed: true }
  }
}

/** Identifies the credential, not only the user: a token must not receive the response of a session. */
const callerOf = ({ caller: { person, credential } }: AskedOnce) =>
  JSON.stringify([person, credential ?? null])

const hashOf = ({ operation, request }: AskedOnce) =>
  createHash('sha256')
    .update(JSON.stringify([operation, request]))
    .digest()

/** Returns a name that is the same for a repeated request and different for all other requests. */
export const requestName = (mutation: AskedOnce): string =>
  createHash('sha256')
    .update(JSON.stringify([callerOf(mutation), mutation.key]))
    .update(hashOf(mutation))
    .digest('hex')

const inProgress = ({ operation }: AskedOnce) =>
  new ProblemError(
    'in_progress',
    `This request is in progress or was interrupted. Retry in a second. One minute after its start, ${
      REPEATABLE.has(operation)
        ? 'a retry runs it again'
        : 'the response is "conflict" if it was interrupted'
    }.`,
    { retryAfterMs: RETRY_MS },
  )
/** Reports an interrupted request. A repeatable one became old enough just now; the next retry runs it. */
const brokeOff = (mutation: AskedOnce) =>
  REPEATABLE.has(mutation.operation)
    ? inProgress(mutation)
    : new ProblemError(
        'conflict',
        'This request did not finish and may have been applied. Check, then retry with a new Idempotency-Key.',
      )
const reused = () =>
  new ProblemError(
    'idempotency_key_reused',
    'This Idempotency-Key was used for a different request. Use a new key for each request.',
  )
const shownOnce = () =>
  new ProblemError(
    'conflict',
    'The token was created, but its secret is returned only once. Revoke the token and create another one.',
  )
