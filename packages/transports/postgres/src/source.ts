import type { FailureClass } from '@redrive/core'
import type {
  ConfirmationBatch,
  DeadLetterSource,
  DrainedBatch,
  DrainedDeadLetter,
  ReplayConfirmation,
  ReplayMessage,
} from '@redrive/runtime'
import type { Pool } from 'pg'
import { ask } from './ask.ts'
import { rowsOf } from './query.ts'
import { type ClaimedRow, HEX_PAYLOAD, stackIn, toDelivery } from './rows.ts'

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
  returning o.id, o.lease_token, o.failed_at, o.type, o.lane, o.key, o.content_type, o.headers, ${HEX_PAYLOAD},
    jsonb_build_object('attempts', o.attempts, 'lapses', 0, 'generation', o.generation,
      'replayId', o.replay_id, 'replaces', o.replaces, 'closedCycles', jsonb_array_length(o.failure_history),
      'cycle', o.cycle, 'firstFailedAt', (extract(epoch from o.first_failed_at) * 1000)::bigint),
    o.reason, o.failure_history::text`

/** Only what is still as it was drained: a replay may have taken it already. */
const OURS = `
  from unnest($1::uuid[], $2::bigint[]) as d (id, token)
  where o.id = d.id and o.lease_token = d.token and o.failed_at is not null`
const RELEASE = `update redrive.outbox o set deleted_at = now(), lease_until = null ${OURS}`
const ABANDON = `update redrive.outbox o set lease_until = null ${OURS}`

/** Oldest first, in hand for as long as dead letters are. */
const CONFIRMATIONS = `
with waiting as materialized (
  select replay_id from redrive.replay_confirmation
    where queue = $1 and (lease_until is null or lease_until < now())
    order by confirmed_at limit $2
    for no key update skip locked
), token as materialized (select nextval('redrive.lease_token') as token)
update redrive.replay_confirmation c set lease_until = now() + ${LEASE}, lease_token = token.token
  from waiting, token where c.queue = $1 and c.replay_id = waiting.replay_id
  returning c.replay_id, c.lease_token, c.outcome, (extract(epoch from c.confirmed_at) * 1000)::bigint`

const IN_HAND = `queue = $1 and replay_id = any($2::text[]) and lease_token = any($3::bigint[])`
const FORGET = `delete from redrive.replay_confirmation where ${IN_HAND}`
const PUT_BACK = `update redrive.replay_confirmation set lease_until = null where ${IN_HAND}`

/** Not those that wait for their time. */
const LAG = `
select count(*)::integer as depth from redrive.outbox
  where queue = $1 and status in ('pending', 'in_flight') and due_at <= now()`

const DEPTH = `
select count(*)::integer as depth from redrive.outbox
  where queue = $1 and failed_at is not null and deleted_at is null`

/**
 * In place: id, key and place in the lane stay, and the cycle that ended is kept in the history. The body
 * travels as bytes: as text within JSON, a large one would be in memory four times.
 */
const REPLAY = `
select redrive.outbox_republish($1, $2, $3::jsonb || jsonb_build_object('payload', encode($5::bytea, 'base64')), $4)`

/** The control plane's side of a queue: its dead letters are rows with a status. */
export class PostgresSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'in_place'
  readonly #pool: Pool
  /** Lets go of what is in hand. */
  readonly #open = new Set<() => Promise<void>>()

  constructor({ pool, queue }: PostgresSourceOptions) {
    this.source = queue
    this.#pool = pool
  }

  async drain({ most }: { readonly most: number }): Promise<DrainedBatch> {
    const rows = await ask<DrainedRow>(this.#pool, DRAIN, [this.source, most])
    const values = [rows.map(([id]) => id), rows.map(([, token]) => token)]
    const deadLetters = rows.map((row) => this.#read(row))
    return { deadLetters, ...this.#inHand(values, { release: RELEASE, abandon: ABANDON }) }
  }

  async confirmations({ most }: { readonly most: number }): Promise<ConfirmationBatch> {
    const rows = await ask<ConfirmationRow>(this.#pool, CONFIRMATIONS, [this.source, most])
    const values = [this.source, rows.map(([id]) => id), rows.map(([, token]) => token)]
    const confirmations = rows.map(([replayId, , outcome, at]) => ({
      replayId,
      outcome,
      at: Number(at),
    }))
    return { confirmations, ...this.#inHand(values, { release: FORGET, abandon: PUT_BACK }) }
  }

  /** Ends once, one way or the other; with us at the latest. */
  #inHand(values: unknown[], { release, abandon }: Endings): Ends {
    const end = async (text: string) => {
      if (!this.#open.has(leave)) return
      await this.#pool.query(text, values)
      this.#open.delete(leave)
    }
    const leave = () => end(abandon)
    this.#open.add(leave)
    return { release: () => end(release), abandon: leave }
  }

  #read(row: DrainedRow): DrainedDeadLetter {
    const [reason, history] = row.slice(CLAIMED_COLUMNS) as [string | null, string]
    const claimed = row.slice(0, CLAIMED_COLUMNS) as ClaimedRow
    const { token: _, generation, ...delivery } = toDelivery(this.source, claimed)
    const failureClass: FailureClass = delivery.cycle.history.at(-1)?.class ?? 'unknown'
    const stack = stackIn(claimed)
    return {
      delivery,
      origin: this.source,
      envelope: { generation: String(generation), failureHistory: history },
      quarantined: QUARANTINED.has(reason ?? ''),
      class: failureClass,
      reason: reason ?? 'unknown',
      naming: 'named',
      ...(stack === undefined ? {} : { stack }),
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
    await rowsOf(this.#pool, REPLAY, [id, replayId, JSON.stringify(copy), BY, body])
  }

  async depth(): Promise<number> {
    const [row] = await rowsOf<{ depth: number }>(this.#pool, DEPTH, [this.source])
    return row?.depth ?? 0
  }

  /** Events that are due: how far the consumers are behind. */
  async lag(): Promise<number> {
    const [row] = await rowsOf<{ depth: number }>(this.#pool, LAG, [this.source])
    return row?.depth ?? 0
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((leave) => leave()))
  }
}

/** Who replayed, as far as the outbox is concerned; who asked for it is the control plane's to know. */
const BY = 'redrive'

/** Reasons of a quarantine, in the words of the decision. */
const QUARANTINED: ReadonlySet<string> = new Set(['same_failure_repeated', 'crash_loop'])

/** What is asked of the database at the end. */
interface Endings {
  readonly release: string
  readonly abandon: string
}
type Ends = Pick<DrainedBatch, 'release' | 'abandon'>

type ConfirmationRow = [
  replayId: string,
  token: string,
  outcome: ReplayConfirmation['outcome'],
  at: string,
]

const CLAIMED_COLUMNS = 10
type DrainedRow = [...ClaimedRow, reason: string | null, failureHistory: string]

/** The control plane's side of a queue: its dead letters. */
export function postgresSource(options: PostgresSourceOptions): PostgresSource {
  return new PostgresSource(options)
}
