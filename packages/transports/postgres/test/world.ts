import { randomUUID } from 'node:crypto'
import type { Transport } from '@redrive/runtime'
import type { SentMessage, TransportFault, TransportFixture } from '@redrive/testing'
import type { Pool, PoolClient } from 'pg'
import { type PostgresOptions, outbox, postgres, postgresSource } from '../src/index.ts'
import { DEFAULT_SCHEMA, inSchema, type Tables } from '../src/schema.ts'

export interface PostgresWorld extends TransportFixture {
  readonly queue: string
  /** The pool of the test. */
  readonly pool: Pool
  transport(fault?: TransportFault, options?: Partial<PostgresOptions>): Transport
}

/** A new queue, with transports whose connections a test can observe and cut. */
export function postgresWorld(pool: Pool, defaults: Partial<PostgresOptions> = {}): PostgresWorld {
  const queue = `orders-${randomUUID()}`
  const processes = new Map<Transport, Process>()
  let isRefusing = true
  const { schema = DEFAULT_SCHEMA } = defaults
  const orders = outbox({ queue, schema })

  function send({ bytes, key, headers, contentType, type, lane }: SentMessage) {
    return orders.add(pool, {
      body: bytes,
      ...(key === undefined ? {} : { key }),
      ...(headers === undefined ? {} : { headers }),
      ...(contentType === undefined ? {} : { contentType }),
      ...(type === undefined ? {} : { type }),
      ...(lane === undefined ? {} : { lane }),
    })
  }

  function transport(fault?: TransportFault, options: Partial<PostgresOptions> = {}): Transport {
    const process = new Process({ pool, schema }, fault, () => isRefusing)
    const made = postgres({
      pool: process.pool,
      queue,
      maintain: false,
      // Hundreds of transports would need a connection each, so they poll.
      listen: false,
      ...defaults,
      ...options,
    })
    processes.set(made, process)
    return made
  }

  return {
    queue,
    pool,
    send,
    transport,
    lease: { ms: SHORT_LEASE_MS, transport: () => transport(undefined, { lease: SHORT_LEASE_MS }) },
    stealOwnership: (of) => processes.get(of)?.loseLeases(),
    dropResponse: (of) => processes.get(of)?.dropResponse(),
    cannot: CANNOT,
    source: () => postgresSource({ pool, queue, schema }),
    async backlog() {
      const { rows } = await pool.query<{ count: number }>(inSchema(BACKLOG, schema), [queue])
      return rows[0]?.count ?? 0
    },
    async crash(of) {
      await processes.get(of)?.die()
    },
    heal() {
      isRefusing = false
    },
    async close() {
      for (const table of ['outbox', 'replay_confirmation']) {
        await pool.query(inSchema(`delete from redrive.${table} where queue = $1`, schema), [queue])
      }
    },
  }
}

const BACKLOG =
  'select count(*)::integer as count from redrive.outbox where queue = $1 and due_at is not null'

/** 1 s: the shortest lease that a transport accepts. */
const SHORT_LEASE_MS = 1_000

const CANNOT: NonNullable<TransportFixture['cannot']> = {
  retentionMs: 'the hourly upkeep removes dead letters of all queues of the database together',
  otherGroup: 'each event of a queue goes to one consumer: there are no groups',
}

/** The process of a transport, which can crash. Its queries are observed on their way to the server. */
class Process {
  readonly pool: Pool
  readonly #fault: TransportFault | undefined
  readonly #isRefusing: () => boolean
  readonly #clients = new Set<PoolClient>()
  readonly #tokens = new Set<string>()
  readonly #asking = new Set<Promise<unknown>>()
  readonly #own: Tables
  #isAlive = true
  #isResponseDropped = false

  constructor(own: Tables, fault: TransportFault | undefined, isRefusing: () => boolean) {
    this.#own = own
    const { pool } = own
    this.#fault = fault
    this.#isRefusing = isRefusing
    // A pool with observed connections of the shared pool.
    this.pool = Object.assign(Object.create(pool) as Pool, { connect: () => this.#connect(pool) })
  }

  /** Ends the process like `kill -9`: nothing more is sent, and no answer is received. */
  async die(): Promise<void> {
    this.#isAlive = false
    // Queries in flight are executed: the server has received them.
    await Promise.allSettled(this.#asking)
    for (const client of this.#clients) client.release(true)
    this.#clients.clear()
    // The server cannot notice the crash; the lease expires. It is expired here to save time.
    await this.#changeClaimed('lease_until = now()')
  }

  /** Expires its leases and changes the tokens, so that it cannot renew them. */
  async loseLeases(): Promise<void> {
    await this.#changeClaimed(`lease_until = now(), lease_token = nextval('redrive.lease_token')`)
  }

  async #changeClaimed(changes: string): Promise<void> {
    const { pool, schema } = this.#own
    const text = `update redrive.outbox set ${changes} where status = 'in_flight' and lease_token = any($1::bigint[])`
    await pool.query(inSchema(text, schema), [[...this.#tokens]])
  }

  /** Commits the next hand-off, but loses its answer. */
  dropResponse(): void {
    this.#isResponseDropped = true
  }

  async #connect(pool: Pool): Promise<PoolClient> {
    if (!this.#isAlive) throw new Error('This process is dead.')
    const client = await pool.connect()
    if (!this.#isAlive) {
      client.release()
      return never()
    }
    this.#clients.add(client)
    const watched = Object.create(client) as PoolClient
    watched.release = (destroy) => {
      if (this.#clients.delete(client)) client.release(destroy)
    }
    // The overloads of query cannot be declared one by one; the transport uses only the one with a config.
    watched.query = ((question: { text: string; values: unknown[] }) =>
      this.#ask(client, question)) as unknown as PoolClient['query']
    return watched
  }

  async #ask(client: PoolClient, question: { text: string; values: unknown[] }): Promise<unknown> {
    if (!this.#isAlive) return never()
    const changes = question.text.includes('outbox_turn') ? question.values[2] : null
    const isHandOff = typeof changes === 'string' && !changes.includes('"returned"')
    if (isHandOff && this.#fault === 'copies_refused' && this.#isRefusing()) {
      // The error of a server with a full disk.
      throw Object.assign(new Error('could not extend file'), { code: '53100', severity: 'ERROR' })
    }
    const asking = client.query(question)
    this.#asking.add(asking)
    const answer = await asking.finally(() => this.#asking.delete(asking))
    for (const [, token] of answer.rows as unknown[][]) {
      if (typeof token === 'string') this.#tokens.add(token)
    }
    if (isHandOff && this.#fault === 'dies_halfway') void this.die()
    if (isHandOff && this.#isResponseDropped) {
      this.#isResponseDropped = false
      throw new Error('Connection terminated unexpectedly')
    }
    return this.#isAlive ? answer : never()
  }
}

const never = () => new Promise<never>(() => undefined)
