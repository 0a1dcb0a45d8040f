import { randomUUID } from 'node:crypto'
import { type Decision, SETTLE } from '@redrive/core'
import { deadLetter, drop, GUARDS_OFF, giveBack, quarantine, retryIn } from '@redrive/dev-support'
import {
  type Consumer,
  type ConsumeOptions,
  consume,
  type Handler,
  onEvent,
  type Receiver,
  type RedriveEvent,
} from '@redrive/runtime'
import { until, type WaitOptions } from '@redrive/testing'
import { Client, Pool, type PoolClient } from 'pg'
import {
  type Outbox,
  type OutboxEvent,
  outbox,
  type PostgresDelivery,
  type PostgresOptions,
  type PostgresSource,
  type PostgresTransport,
  postgres,
  postgresSource,
} from '../src/index.ts'

export {
  deadLetter,
  drop,
  failedCycle,
  giveBack,
  quarantine,
  refusal,
  retryIn,
} from '@redrive/dev-support'
export { until, within } from '@redrive/testing'

// ---- decisions --------------------------------------------------------------------------------

export { SETTLE as settle }

export const HOUR_MS = 3_600_000

/** Every decision, and the resulting status of its row. */
export const DECISIONS: readonly (readonly [name: string, decision: Decision, status: string])[] = [
  ['completion', SETTLE, 'delivered'],
  ['retry', retryIn(HOUR_MS), 'pending'],
  ['dead letter', deadLetter(), 'failed'],
  ['quarantine', quarantine(), 'failed'],
  ['drop', drop(), 'failed'],
  ['return', giveBack, 'pending'],
]

// ---- what the transport asks --------------------------------------------------------------------

export interface Question {
  readonly text: string
  readonly values: readonly unknown[]
}

export interface Hooks {
  /** Called before a query is sent; throws to lose the query. */
  readonly before?: (question: Question) => Promise<void> | void
  /** Called after the server has answered; throws to lose the answer. */
  readonly after?: (question: Question, rows: readonly unknown[]) => Promise<void> | void
}

export const isTurn = ({ text }: Question): boolean => text.includes('outbox_turn(')
/** Returns whether a turn is a full scan. */
export const isSweep = ({ values }: Question): boolean => values[6] === '-infinity'
/** Returns the watermark of a turn, by the clock of the database. */
export const floorOf = ({ values }: Question): number => Date.parse(String(values[6]))
export const isKeep = ({ text }: Question): boolean => text.includes('outbox_keep')
/** Returns the number of rows that a turn claims. */
export const mostOf = ({ values }: Question): number => Number(values[4])
/** Returns the number of rows that a turn finishes. */
const doneOf = ({ values }: Question): number => (values[0] as unknown[]).length
/** Returns the number of rows that a turn hands off. */
const changesOf = ({ values }: Question): number =>
  typeof values[2] === 'string' ? (JSON.parse(values[2]) as unknown[]).length : 0

/** Returns whether a turn settles or hands off rows. */
export const isEnacting = (question: Question): boolean =>
  isTurn(question) && doneOf(question) + changesOf(question) > 0

/** The error of a broken connection, after which the outcome is unknown. */
export const broken = (): Error =>
  Object.assign(new Error('Connection terminated'), { code: 'ECONNRESET' })

/** A pool that records every query of the transport. */
export function hooked(pool: Pool, { before, after }: Hooks): Pool {
  return Object.assign(Object.create(pool) as Pool, {
    async connect(): Promise<PoolClient> {
      const client = await pool.connect()
      const watched = Object.create(client) as PoolClient
      watched.release = (destroy) => client.release(destroy)
      // The overloads of query cannot be declared one by one: like pg, this distinguishes a config from a text.
      watched.query = (async (asked: Question | string, values: readonly unknown[] = []) => {
        const question = typeof asked === 'string' ? { text: asked, values } : asked
        await before?.(question)
        const answer = await client.query<Record<string, unknown>>({
          ...question,
          values: [...question.values],
        })
        await after?.(question, answer.rows)
        return answer
      }) as unknown as PoolClient['query']
      return watched
    },
  })
}

// ---- receiving --------------------------------------------------------------------------------

export class Hand implements Receiver<PostgresDelivery> {
  readonly deliveries: PostgresDelivery[] = []
  readonly lostOnes: PostgresDelivery[] = []
  readonly arrivedAt: number[] = []

  deliver(delivery: PostgresDelivery): void {
    this.deliveries.push(delivery)
    this.arrivedAt.push(performance.now())
  }

  lost(delivery: PostgresDelivery): void {
    this.lostOnes.push(delivery)
  }

  get ids(): readonly string[] {
    return this.deliveries.map(({ id }) => id)
  }

  /** Waits until this number of deliveries has arrived, and returns the last one. */
  async nth(count: number, options?: WaitOptions): Promise<PostgresDelivery> {
    const accept = (seen: number) => seen >= count
    await until(`${count} deliveries`, () => this.deliveries.length, { ...options, accept })
    return this.deliveries[count - 1] as PostgresDelivery
  }
}

export interface Started {
  readonly transport: PostgresTransport
  readonly hand: Hand
}

export type StartOptions = Partial<PostgresOptions> & {
  readonly hooks?: Hooks
  readonly limit?: number
}

/** A row of the outbox, without its payload. */
export interface Row {
  readonly id: string
  readonly status: string
  readonly due_at: Date | null
  readonly lease_until: Date | null
  readonly lease_token: string | null
  readonly generation: string
  readonly attempts: number
  readonly lapses: number
  readonly first_failed_at: Date | null
  readonly failed_at: Date | null
  readonly delivered_at: Date | null
  readonly deleted_at: Date | null
  readonly key: string | null
  readonly lane: string | null
  readonly replay_id: string | null
  readonly replaces: string | null
  readonly reason: string | null
  readonly last_error: string | null
  readonly cycle: unknown
  readonly failure_history: readonly Readonly<Record<string, unknown>>[]
}

const ROW = `
select id, status, due_at, lease_until, lease_token::text, generation::text, attempts, lapses, first_failed_at,
  failed_at, delivered_at, deleted_at, key, lane, replay_id, replaces, reason, last_error, cycle, failure_history
from redrive.outbox`

const calmPools = new WeakMap<Pool, Pool>()

/** Returns a pool on the same database for looking at tables: `pg` reads only dates in the ISO format. */
function calm(pool: Pool): Pool {
  const known = calmPools.get(pool)
  if (known !== undefined) return known
  const options = '-c datestyle=ISO -c default_transaction_isolation=read\\ committed'
  const made = new Pool({ ...pool.options, max: 5, allowExitOnIdle: true, options })
  made.on('error', () => undefined)
  calmPools.set(pool, made)
  return made
}

/** A policy without guards and with immediate retries, because these tests check the transport and not the rules. */
const PLAIN: ConsumeOptions = {
  ...GUARDS_OFF,
  concurrency: 10,
  retry: { attempts: 50, maxInlineDelay: 0, minDelay: 1, backoff: { kind: 'fixed', delay: 20 } },
}

/** A separate queue in the database, with helpers for a test. */
export class Rig {
  readonly queue: string = `rig-${randomUUID()}`
  readonly pool: Pool
  readonly outbox: Outbox
  /** Errors on connections of `ownPool` without a listener; each would have ended the process. */
  readonly unheard: unknown[] = []
  readonly #ends: (() => Promise<unknown>)[] = []

  constructor(pool: Pool) {
    this.pool = pool
    this.outbox = outbox({ queue: this.queue, pool })
  }

  /** Runs when the rig is cleared, last one first. */
  atEnd(work: () => Promise<unknown>): void {
    this.#ends.unshift(work)
  }

  add(event: Partial<OutboxEvent> = {}): Promise<string> {
    return this.outbox.add(this.pool, { body: {}, ...event })
  }

  addMany(count: number, of: (index: number) => Partial<OutboxEvent> = () => ({})) {
    const events = Array.from({ length: count }, (_, index) => ({ body: index, ...of(index) }))
    return this.outbox.addMany(this.pool, events)
  }

  /** Returns a separate connection. */
  async connect(): Promise<PoolClient> {
    const client = await this.pool.connect()
    client.on('error', () => undefined)
    this.atEnd(async () => client.release(true))
    return client
  }

  transport(wanted: Omit<StartOptions, 'limit'> = {}): PostgresTransport {
    const { hooks, pool = this.pool, ...options } = wanted
    const transport = postgres({
      pool: hooks === undefined ? pool : hooked(pool, hooks),
      queue: this.queue,
      maintain: false,
      listen: false,
      ...options,
    })
    this.atEnd(() => transport.close())
    return transport
  }

  /** Returns a transport that receives. */
  async start({ limit = 100, ...options }: StartOptions = {}): Promise<Started> {
    const transport = this.transport(options)
    const hand = new Hand()
    await transport.open()
    transport.limit(limit)
    transport.receive(hand)
    return { transport, hand }
  }

  /** A consumer: the loop around a transport. */
  async consume<Tx = undefined>(
    handler: Handler<unknown, Tx>,
    { transport = this.transport(), ...options }: ConsumerOptions<Tx> = {},
  ): Promise<Consumer> {
    const consumer = await consume<unknown, Tx, PostgresDelivery>(transport, handler, {
      ...PLAIN,
      logger: 'off',
      ...options,
    } as ConsumeOptions<unknown, Tx>)
    this.atEnd(() => consumer.stop({ drain: '2s' }))
    return consumer
  }

  source(): PostgresSource {
    const source = postgresSource({ pool: this.pool, queue: this.queue })
    this.atEnd(() => source.close())
    return source
  }

  /** Returns a separate pool with the name of the queue as application name. */
  ownPool(url: string, max = 5): Pool {
    const unheard = this.unheard
    class Watched extends Client {
      // This would end the process; here it is only recorded.
      override emit(event: string, ...args: unknown[]): boolean {
        if (event !== 'error' || this.listenerCount('error') > 0) return super.emit(event, ...args)
        unheard.push(args[0])
        return false
      }
    }
    const options = { connectionString: url, max, application_name: this.queue, Client: Watched }
    const pool = new Pool(options)
    pool.on('error', () => undefined)
    this.atEnd(() => pool.end())
    return pool
  }

  /** Returns the process ids of the backends of `ownPool` whose last statement matches. */
  async backends(like = '%'): Promise<readonly number[]> {
    const rows = await this.query<{ pid: number }>(
      'select pid from pg_stat_activity where application_name = $1 and query ilike $2',
      [this.queue, like],
    )
    return rows.map(({ pid }) => pid)
  }

  async kill(pids: readonly number[]): Promise<void> {
    await this.query('select pg_terminate_backend(pid) from unnest($1::integer[]) as pid', [pids])
  }

  /** Collects the events of this queue from now on. */
  events(): RedriveEvent[] {
    const events: RedriveEvent[] = []
    const off = onEvent((event) => {
      if ('source' in event && event.source === this.queue) events.push(event)
    })
    this.atEnd(() => Promise.resolve(off()))
    return events
  }

  async query<R extends object>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    return (await calm(this.pool).query<R>(text, [...values])).rows
  }

  async row(id: string): Promise<Row> {
    const [row] = await this.query<Row>(`${ROW} where id = $1`, [id])
    if (row === undefined) throw new Error(`no row ${id}`)
    return row
  }

  /** Returns all rows of the queue, in the order they were added. */
  rows(): Promise<Row[]> {
    return this.query<Row>(`${ROW} where queue = $1 order by position`, [this.queue])
  }

  async count(status: 'pending' | 'in_flight' | 'delivered' | 'failed'): Promise<number> {
    const [row] = await this.query<{ count: number }>(
      'select count(*)::integer as count from redrive.outbox where queue = $1 and status = $2',
      [this.queue, status],
    )
    return row?.count ?? 0
  }

  /** Waits until the row has this status. */
  async becomes(id: string, status: string, options?: WaitOptions): Promise<void> {
    await until(`${status}`, async () => (await this.row(id)).status === status, options)
  }

  /** Expires the lease now, as if its owner had crashed earlier. */
  async expire(...ids: readonly string[]): Promise<void> {
    await this.query(
      `update redrive.outbox set lease_until = now() - interval '1 millisecond' where id = any($1::uuid[])`,
      [ids],
    )
  }

  async clear(): Promise<void> {
    for (const end of this.#ends) await end()
    for (const table of ['outbox', 'replay_confirmation']) {
      await this.query(`delete from redrive.${table} where queue = $1`, [this.queue])
    }
  }
}

export type ConsumerOptions<Tx> = ConsumeOptions<unknown, Tx> & {
  readonly transport?: PostgresTransport
}

/** Runs the test on a separate rig. */
export const onRig = (pool: Pool, test: (rig: Rig) => Promise<void>) => async () => {
  const rig = new Rig(pool)
  try {
    await test(rig)
  } finally {
    await rig.clear()
  }
}
