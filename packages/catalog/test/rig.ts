import { randomUUID } from 'node:crypto'
import { type FailureRecord, type Delivery, FIRST_CYCLE, type FailureClass } from '@redrive/core'
import { emptyDatabase, poolOn } from '@redrive/dev-support'
import type { DeadLetterSource, DrainedBatch, DrainedDeadLetter } from '@redrive/runtime'
import type { Pool } from 'pg'
import { afterAll } from 'vitest'
import { migrate } from '../src/index.ts'

export { emptyDatabase, poolOn, refusal } from '@redrive/dev-support'

/** Creates a database with the schema of the catalog. Its pool ends with the test file. */
export async function migrated(name: string): Promise<Pool> {
  const pool = poolOn(await emptyDatabase(name), 20)
  afterAll(() => pool.end())
  await migrate(pool)
  return pool
}

/** Returns the rows of a statement. */
export async function rows<R = Record<string, unknown>>(
  pool: Pool,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly R[]> {
  return (await pool.query(text, [...values])).rows as readonly R[]
}

/** Joins the pieces of a body. */
export async function bodyOf(pieces: AsyncIterable<Uint8Array> | undefined): Promise<Buffer> {
  const all: Uint8Array[] = []
  if (pieces !== undefined) for await (const piece of pieces) all.push(piece)
  return Buffer.concat(all)
}

export const NOW: number = Math.floor(Date.now() / 60_000) * 60_000

export interface Said {
  readonly signature?: string
  readonly message?: string
  readonly class?: FailureClass
  readonly code?: string
  /** Time of the first failure, and of the last failure unless it is set. */
  readonly at?: number
  readonly lastAt?: number
  readonly cycle?: number
  readonly attempts?: number
  readonly quarantined?: boolean
  readonly reason?: string
  readonly identity?: DrainedDeadLetter['identity']
  readonly envelope?: Readonly<Record<string, string>>
  readonly delivery?: Partial<Delivery>
}

/** Returns a dead letter as a source would drain it. */
export function dead(said: Said = {}): DrainedDeadLetter {
  const {
    at = NOW,
    lastAt = at,
    cycle = 1,
    attempts = 3,
    class: kind = 'unknown',
    delivery = {},
  } = said
  const id = delivery.id ?? randomUUID()
  const record: FailureRecord = {
    number: 3,
    at: lastAt,
    waitedMs: 1_500,
    class: kind,
    signature: said.signature ?? '1-00000000000000aa',
    code: said.code,
    type: 'CardDeclined',
    message: said.message ?? 'card 4711 declined',
    counted: true,
  }
  return {
    delivery: {
      id,
      source: 'orders',
      lane: undefined,
      key: id,
      type: undefined,
      bytes: Buffer.from('{"order":1}'),
      contentType: 'application/json',
      headers: {},
      cycle: { ...FIRST_CYCLE, number: cycle, attempts, firstFailedAt: at, history: [record] },
      deliveryCount: 1,
      replayId: undefined,
      headerProblems: [],
      ...delivery,
    },
    origin: 'orders',
    envelope: said.envelope ?? {},
    quarantined: said.quarantined ?? false,
    class: kind,
    reason: said.reason ?? 'attempts_exhausted',
    identity: said.identity ?? 'stable',
  }
}

/** A source with a list of dead letters. Drained ones are redelivered until they are released. */
export class ListSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #waiting: DrainedDeadLetter[]
  released = 0
  abandoned = 0
  /** Number of releases that fail before one succeeds. */
  failingReleases = 0

  constructor(deadLetters: readonly DrainedDeadLetter[], source = 'orders') {
    this.#waiting = [...deadLetters]
    this.source = source
  }

  async drain({ limit }: { readonly limit: number }): Promise<DrainedBatch> {
    const deadLetters = this.#waiting.splice(0, limit)
    return {
      deadLetters,
      release: async () => {
        if (deadLetters.length > 0 && this.failingReleases-- > 0) {
          this.#waiting.unshift(...deadLetters)
          throw new Error('the broker is gone')
        }
        this.released += deadLetters.length
      },
      abandon: async () => {
        this.#waiting.unshift(...deadLetters)
        this.abandoned += deadLetters.length
      },
    }
  }

  async publish(): Promise<void> {
    throw new Error('not here')
  }

  async confirmations() {
    return { confirmations: [], release: async () => undefined, abandon: async () => undefined }
  }

  async depth(): Promise<number> {
    return this.#waiting.length
  }

  async close(): Promise<void> {}
}
