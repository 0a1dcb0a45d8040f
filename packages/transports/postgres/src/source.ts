import type { FailureClass } from '@redrive/core'
import type {
  DeadLetterSource,
  DrainedBatch,
  DrainedDeadLetter,
  ReplayMessage,
} from '@redrive/runtime'
import type { Pool } from 'pg'
import { ask } from './ask.ts'
import { rowsOf } from './query.ts'
import { type ClaimedRow, toDelivery } from './rows.ts'

export interface PostgresSourceOptions {
  readonly pool: Pool
  /** The queue whose dead letters these are. */
  readonly queue: string
}

/** A minute: a control plane that died holds them no longer. */
const LEASE = `interval '1 minute'`

const DRAIN = `
with dead as materialized (
  select id from redrive.outbox
    where queue = $1 and failed_at is not null and deleted_at is null
      and (lease_until is null or lease_until < now())
    order by failed_at limit $2
    for no key update skip locked
), token as materialized (select nextval('redrive.lease_token') as token)
update redrive.outbox o set lease_until = now() + ${LEASE}, lease_token = token.token
  from dead, token where o.id = dead.id
  returning o.id, o.lease_token, o.failed_at, o.type, o.lane, o.key, o.content_type, o.headers, o.payload,
    jsonb_build_object('attempts', o.attempts, 'lapses', 0, 'generation', o.generation,
      'replayId', o.replay_id, 'closedCycles', jsonb_array_length(o.failure_history),
      'cycle', o.cycle, 'firstFailedAt', (extract(epoch from o.first_failed_at) * 1000)::bigint),
    o.reason, o.failure_history::text`

/** Only what is still as it was drained: a replay may have taken it already. */
const OURS = `
  from unnest($1::uuid[], $2::bigint[]) as d (id, token)
  where o.id = d.id and o.lease_token = d.token and o.failed_at is not null`
const RELEASE = `update redrive.outbox o set deleted_at = now(), lease_until = null ${OURS}`
const ABANDON = `update redrive.outbox o set lease_until = null ${OURS}`

const DEPTH = `
select count(*)::integer as depth from redrive.outbox
  where queue = $1 and failed_at is not null and deleted_at is null`

/** In place: id, key and place in the lane stay, and the cycle that ended is kept in the history. */
const REPLAY = `select redrive.outbox_republish($1, $2, $3::jsonb, $4)`

/** The control plane's side of a queue: its dead letters are rows with a status. */
export class PostgresSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'in_place'
  readonly #pool: Pool
  readonly #open = new Set<Batch>()

  constructor({ pool, queue }: PostgresSourceOptions) {
    this.source = queue
    this.#pool = pool
  }

  async drain({ most }: { readonly most: number }): Promise<DrainedBatch> {
    const rows = await ask<DrainedRow>(this.#pool, DRAIN, [this.source, most])
    const batch: Batch = {
      ids: rows.map(([id]) => id),
      tokens: rows.map(([, token]) => token ?? ''),
    }
    this.#open.add(batch)
    return {
      deadLetters: rows.map((row) => this.#read(row)),
      release: () => this.#end(batch, RELEASE),
      abandon: () => this.#end(batch, ABANDON),
    }
  }

  async #end(batch: Batch, text: string): Promise<void> {
    if (!this.#open.has(batch)) return
    await this.#pool.query(text, [batch.ids, batch.tokens])
    this.#open.delete(batch)
  }

  #read(row: DrainedRow): DrainedDeadLetter {
    const [reason, history] = row.slice(CLAIMED_COLUMNS) as [string | null, string]
    const claimed = row.slice(0, CLAIMED_COLUMNS) as ClaimedRow
    const { token: _, generation, ...delivery } = toDelivery(this.source, claimed)
    const failureClass: FailureClass = delivery.cycle.history.at(-1)?.class ?? 'unknown'
    return {
      delivery,
      origin: this.source,
      envelope: { generation: String(generation), failureHistory: history },
      quarantined: QUARANTINED.has(reason ?? ''),
      class: failureClass,
      reason: reason ?? 'unknown',
    }
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    const { delivery, origin, envelope, reason } = deadLetter
    const { id, type, lane, key, contentType, headers, bytes, cycle } = delivery
    const generation = Number(envelope['generation'] ?? 0)
    const copy = {
      queue: origin,
      type,
      lane,
      key: key === id ? undefined : key,
      content_type: contentType,
      headers,
      payload: Buffer.from(bytes).toString('base64'),
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
    await rowsOf(this.#pool, REPLAY, [id, replayId, JSON.stringify(copy), BY])
  }

  async depth(): Promise<number> {
    const [row] = await rowsOf<{ depth: number }>(this.#pool, DEPTH, [this.source])
    return row?.depth ?? 0
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((batch) => this.#end(batch, ABANDON)))
  }
}

/** Who replayed, as far as the outbox is concerned; who asked for it is the control plane's to know. */
const BY = 'redrive'

/** Reasons of a quarantine, in the words of the decision. */
const QUARANTINED: ReadonlySet<string> = new Set(['same_failure_repeated', 'crash_loop'])

interface Batch {
  readonly ids: readonly string[]
  readonly tokens: readonly string[]
}

const CLAIMED_COLUMNS = 10
type DrainedRow = [...ClaimedRow, reason: string | null, failureHistory: string]
