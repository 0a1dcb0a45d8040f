import { type FailureClass, RedriveError } from '@redrive/core'
import type {
  ConfirmationBatch,
  DeadLetterSource,
  DrainedBatch,
  DrainedDeadLetter,
  ReplayConfirmation,
  ReplayMessage,
} from '@redrive/runtime'
import type { Pool } from 'pg'
import { readQueueOptions } from './options.ts'
import { inSchema, type Tables } from './schema.ts'
import { rowsOf } from './queryable.ts'
import { type ClaimedRow, endIn, toDelivery } from './delivery.ts'
import {
  DRAIN,
  RELEASE,
  ABANDON,
  CONFIRMATIONS,
  DELETE_CONFIRMATIONS,
  RETURN_CONFIRMATIONS,
  LAG,
  DEPTH,
  PUT_BACK,
  REPLAY,
} from './sql/source.ts'
import { runStatement } from './statement.ts'

export interface PostgresSourceOptions {
  /** Pool of connections to the primary, never to a replica. */
  readonly pool: Pool
  /** The queue whose dead letters are drained. */
  readonly queue: string
  /** The schema of the outbox. Default 'redrive'. */
  readonly schema?: string
}

/** The control plane's access to a queue, whose dead letters are rows with a status. */
export class PostgresSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'in_place'
  readonly #tables: Tables
  /** Functions that return the leased rows. */
  readonly #open = new Set<() => Promise<void>>()

  constructor(options: PostgresSourceOptions) {
    const { queue, ...tables } = readQueueOptions('postgresSource()', options)
    this.source = queue
    this.#tables = tables
  }

  async drain({ limit }: { readonly limit: number }): Promise<DrainedBatch> {
    const rows = await runStatement<DrainedRow>(this.#tables, DRAIN, [this.source, limit])
    const values = [rows.map(([id]) => id), rows.map(([, token]) => token)]
    const deadLetters = rows.map((row) => this.#read(row))
    return { deadLetters, ...this.#endActions(values, { release: RELEASE, abandon: ABANDON }) }
  }

  async confirmations({ limit }: { readonly limit: number }): Promise<ConfirmationBatch> {
    const rows = await runStatement<ConfirmationRow>(this.#tables, CONFIRMATIONS, [
      this.source,
      limit,
    ])
    const values = [this.source, rows.map(([id]) => id), rows.map(([, token]) => token)]
    const confirmations = rows.map(([replayId, , outcome, at]) => ({
      replayId,
      outcome,
      at: Number(at),
    }))
    return {
      confirmations,
      ...this.#endActions(values, { release: DELETE_CONFIRMATIONS, abandon: RETURN_CONFIRMATIONS }),
    }
  }

  /** Returns the two actions that end a batch. Only the first call has an effect; `close` ends open batches. */
  #endActions(values: unknown[], { release, abandon }: EndStatements): EndActions {
    const end = async (text: string) => {
      if (!this.#open.has(returnToSource)) return
      await runStatement(this.#tables, text, values)
      this.#open.delete(returnToSource)
    }
    const returnToSource = () => end(abandon)
    this.#open.add(returnToSource)
    return { release: () => end(release), abandon: returnToSource }
  }

  #read(row: DrainedRow): DrainedDeadLetter {
    const [reason, history] = row.slice(CLAIMED_COLUMNS) as [string | null, string]
    const claimed = row.slice(0, CLAIMED_COLUMNS) as ClaimedRow
    const read = toDelivery(this.source, claimed)
    const { token: _, clockAheadMs: __, generation, ...plain } = read
    const delivery = { ...plain, bytes: read.bytes }
    const failureClass: FailureClass = delivery.cycle.history.at(-1)?.class ?? 'unknown'
    return {
      delivery,
      origin: this.source,
      envelope: { generation: String(generation), failureHistory: history },
      quarantined: QUARANTINED.has(reason ?? ''),
      class: failureClass,
      reason: reason ?? 'unknown',
      identity: 'stable',
      ...endIn(claimed),
    }
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    const { delivery, origin, envelope, reason } = deadLetter
    const { id, type, lane, key, replaces, contentType, headers, bytes, cycle } = delivery
    const generation = Number(envelope['generation'] ?? 0)
    const copy = {
      queue: origin,
      type,
      lane,
      key: key === id ? undefined : key,
      replaces,
      content_type: contentType,
      headers,
      generation,
      failure_history: JSON.parse(envelope['failureHistory'] ?? '[]') as unknown,
      closed: {
        ...cycle,
        generation,
        reason,
        lastError: cycle.history.at(-1)?.message,
        replayId: delivery.replayId,
      },
    }
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    await runStatement(this.#tables, REPLAY, [
      id,
      replayId,
      JSON.stringify(copy),
      REPLAYED_BY,
      body,
    ])
  }

  /** Makes the rows of these dead letters waiting again. They did not change since they were drained. */
  async putBack(deadLetters: readonly DrainedDeadLetter[]): Promise<void> {
    const ids = deadLetters.map(({ delivery }) => delivery.id)
    const found = await runStatement<[string]>(this.#tables, PUT_BACK, [this.source, ids])
    const known = new Set(found.map(([id]) => id))
    const gone = ids.filter((id) => !known.has(id))
    if (gone.length === 0) return
    throw new RedriveError(
      'REFUSED',
      `The outbox no longer has ${gone.length} of these dead letters, because their retention there has ended: ${gone.slice(0, 5).join(', ')}. Replay or discard them.`,
    )
  }

  async depth(): Promise<number> {
    return this.#count(DEPTH)
  }

  /** Returns the number of due events: the lag of the consumers. */
  async lag(): Promise<number> {
    return this.#count(LAG)
  }

  async #count(text: string): Promise<number> {
    const { pool, schema } = this.#tables
    const [row] = await rowsOf<{ depth: number }>(pool, inSchema(text, schema), [this.source])
    return row?.depth ?? 0
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((returnToSource) => returnToSource()))
  }
}

/** The actor that the outbox stores for a replay. The control plane stores the user who requested it. */
const REPLAYED_BY = 'redrive'

/** The reasons of a decision that mean quarantine. */
const QUARANTINED: ReadonlySet<string> = new Set(['same_failure_repeated', 'crash_loop'])

/** The SQL statements that end a batch. */
interface EndStatements {
  readonly release: string
  readonly abandon: string
}
type EndActions = Pick<DrainedBatch, 'release' | 'abandon'>

type ConfirmationRow = [
  replayId: string,
  token: string,
  outcome: ReplayConfirmation['outcome'],
  at: string,
]

const CLAIMED_COLUMNS = 10
type DrainedRow = [...ClaimedRow, reason: string | null, failureHistory: string]

/** Creates the control plane's access to the dead letters of a queue. */
export function postgresSource(options: PostgresSourceOptions): PostgresSource {
  return new PostgresSource(options)
}
