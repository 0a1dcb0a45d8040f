import { randomUUID } from 'node:crypto'
import {
  type Catalog,
  catalog,
  type Replayer,
  type ReplayRequest,
  type ReplayRun,
} from '@redrive/catalog'
import { handledKeys } from '@redrive/postgres'
import type { DeadLetterSource } from '@redrive/runtime'
import type { Pool } from 'pg'
import type { Session } from '../harness/scenario.ts'
import { openDatabase } from '../harness/effects.ts'
import { readHistory } from '../evidence/history.ts'
import { becomesTrue, until } from '../harness/wait.ts'
import type { Broker } from './brokers/broker.ts'
import { type Child, startChild } from '../harness/process.ts'
import type {
  Body,
  CatalogConsumerOptions,
  Failpoint,
  Role,
  WorkerMessage,
  Where,
  WorkerOptions,
} from './options.ts'

/**
 * 60 s for steps that take seconds. Kafka groups wait for dead members, and the machine may be
 * busy.
 */
const PATIENCE_MS = 60_000

export interface StageDeps {
  readonly broker: Broker
  readonly where: Where
  readonly world: Session
}

/** One source with its consumer, and the control plane's view of it. */
export class Stage {
  readonly where: Where
  readonly world: Session
  /** Messages whose acceptance was confirmed to the producers. */
  readonly ids: string[] = []
  /** Connections to the catalog's database; the other pool is for inbox and effects. */
  pool: Pool
  readonly books: Pool
  source: DeadLetterSource
  catalog: Catalog
  replayer: Replayer
  readonly #broker: Broker
  readonly #children: Child<WorkerMessage>[] = []
  #first: Child<WorkerMessage> | undefined
  #consumers = 0

  constructor({ broker, where, world }: StageDeps) {
    this.#broker = broker
    this.where = where
    this.world = world
    this.books = openDatabase(where.consumerUrl)
    this.source = broker.source(where, this.books)
    this.pool = openDatabase(where.catalogUrl)
    this.catalog = catalog({ pool: this.pool })
    this.replayer = this.#newReplayer()
  }

  #newReplayer(): Replayer {
    const { source, books } = this
    const consumer = this.where.queue
    const handled = (keys: readonly string[]) => handledKeys(books, { consumer, keys })
    return this.catalog.replays.replayer({ sources: [{ source, handled }] })
  }

  /** Reopens the catalog as a new process does, without cached state. */
  async reopen(): Promise<void> {
    await this.pool.end()
    this.pool = openDatabase(this.where.catalogUrl)
    this.catalog = catalog({ pool: this.pool })
    this.replayer = this.#newReplayer()
  }

  /** Starts the first consumer. */
  async open(special: Partial<CatalogConsumerOptions> = {}): Promise<void> {
    this.#first = await this.consumer(special)
  }

  get firstConsumer(): Child<WorkerMessage> {
    if (this.#first === undefined)
      throw new Error('The first consumer is not started. Call open() first.')
    return this.#first
  }

  // ---- processes ------------------------------------------------------------------------------

  async consumer(special: Partial<CatalogConsumerOptions> = {}): Promise<Child<WorkerMessage>> {
    this.#consumers += 1
    const name = `consumer-${this.#consumers}`
    const { folder } = this.world
    const child = this.#start(CONSUMER, { ...this.where, name, folder, ...special })
    await child.waitFor('ready')
    return child
  }

  worker(role: Role, special: Partial<WorkerOptions> = {}): Child<WorkerMessage> {
    return this.#start(WORKER, { ...this.where, role, ...special })
  }

  #start(program: URL, options: WorkerOptions | CatalogConsumerOptions): Child<WorkerMessage> {
    const child = startChild<WorkerMessage>(program, options)
    this.#children.push(child)
    return child
  }

  /** Starts a worker that dies at that point. Resolves when it is dead and its leases have expired. */
  async crash(
    role: Role,
    failpoint: Failpoint,
    special: Partial<WorkerOptions> = {},
  ): Promise<void> {
    if (role === 'ingest' || role === 'settle') await this.#leaveGroup()
    const child = this.worker(role, { ...special, failpoint })
    const end = await Promise.race([child.gone, patience()])
    if (end !== 'SIGKILL') {
      const messages = JSON.stringify(child.messages.slice(-3))
      throw new Error(`${role} did not reach '${failpoint.point}': ${String(end)}, ${messages}`)
    }
    await this.expireLeases()
  }

  /**
   * Leaves the group. A partition that the harness holds would not be assigned to the process that
   * has to die.
   */
  async #leaveGroup(): Promise<void> {
    await this.source.close()
    this.source = this.#broker.source(this.where, this.books)
    this.replayer = this.#newReplayer()
  }

  /** Expires the leases of dead processes. */
  async expireLeases(): Promise<void> {
    const { queue } = this.where
    await this.pool.query(EXPIRE_ITEMS, [queue])
    await this.books.query(EXPIRE_DEAD, [queue])
    await this.books.query(EXPIRE_CONFIRMATIONS, [queue])
  }

  /** Extends all leases, so that in-flight items keep their owner on a slow machine. */
  async extendLeases(): Promise<void> {
    await this.pool.query(EXTEND_ITEMS, [this.where.queue])
  }

  // ---- messages and runs ----------------------------------------------------------------------

  /** Sends messages that fail in `fails` cycles. Resolves when all are dead letters in the broker. */
  async fill(count: number, fails = 1): Promise<void> {
    const sink = this.#broker.sink(this.where, this.books)
    const bodies = Array.from({ length: count }, (): Body => ({ id: randomUUID(), fails }))
    const events = bodies.map((body) => ({
      ...{ id: body.id, key: body.id, type: 'order.placed', lane: undefined, at: Date.now() },
      ...{ contentType: 'application/json', headers: {} },
      bytes: Buffer.from(JSON.stringify(body)),
    }))
    await sink.send(events, { signal: AbortSignal.timeout(PATIENCE_MS) })
    await sink.close()
    this.ids.push(...bodies.map(({ id }) => id))
    await this.waiting(count)
  }

  /** Resolves when `count` dead letters wait in the broker. */
  async waiting(count: number): Promise<void> {
    const isThere = async () => (await this.source.depth()) >= count
    await until(`${count} dead letters`, isThere, { withinMs: PATIENCE_MS })
  }

  async ingest(): Promise<void> {
    await this.catalog.ingest(this.source)
  }

  /** Returns the ids of the dead letters in the catalog, oldest first. */
  async deadLetters(): Promise<readonly string[]> {
    const { rows } = await this.pool.query<{ id: string }>(IDS, [this.where.queue])
    return rows.map(({ id }) => id)
  }

  async request(special: Partial<ReplayRequest> = {}): Promise<ReplayRequest> {
    const selection = { ids: await this.deadLetters() }
    return { selection, by: 'ada', ratePerSecond: RATE, canary: [], maxFailureRatio: 1, ...special }
  }

  /** Plans a replay and approves it as another person. */
  async started(special: Partial<ReplayRequest> = {}): Promise<ReplayRun> {
    const { id, hash } = await this.catalog.replays.plan(await this.request(special))
    return this.catalog.replays.approve(id, { hash, by: 'bob' })
  }

  /**
   * Does the work of every role until the runs have ended, and resumes paused runs. Returns false
   * after the time limit.
   */
  async finish(...runs: readonly string[]): Promise<boolean> {
    const { replays } = this.catalog
    const isOver = async () => {
      await this.replayer.turn()
      await this.settle()
      const states = await Promise.all(runs.map((id) => replays.run(id)))
      for (const run of states) {
        if (run?.state === 'paused') await replays.resume(run.id, { by: 'ada' })
      }
      return states.every((run) => run?.state === 'done')
    }
    return becomesTrue(isOver, { withinMs: FINISH_MS, everyMs: 20 })
  }

  async settle(): Promise<void> {
    await this.replayer.confirm()
    await this.ingest()
    await this.replayer.sweep()
  }

  /** Counts the replays delivered to consumers, copies included; optionally of some consumers only. */
  received(isMeant: (consumer: string) => boolean = () => true): number {
    const entries = readHistory(this.world.folder)
    return entries.filter(({ what, by }) => what === 'replay_received' && isMeant(by)).length
  }

  /** Resolves when no delivery happened for a while, so that late copies are counted as well. */
  async quiet(): Promise<void> {
    let [seen, since] = [-1, 0]
    const isQuiet = () => {
      const now = readHistory(this.world.folder).length
      if (now !== seen) [seen, since] = [now, performance.now()]
      return performance.now() - since > QUIET_MS
    }
    await until('no more deliveries happen', isQuiet, { withinMs: PATIENCE_MS })
    // In-flight messages of a dead group member arrive when the group notices the death.
    const isEmpty = async () => {
      await this.settle()
      return (await this.source.depth()) === 0
    }
    await becomesTrue(isEmpty, { withinMs: GROUP_MS })
  }

  async end(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.kill()))
    await this.source.close()
    await Promise.all([this.pool.end(), this.books.end()])
  }
}

const WORKER = new URL('./worker.ts', import.meta.url)
const CONSUMER = new URL('./consumer.ts', import.meta.url)

/** 20 s: twice the time a group waits for a dead member. */
const GROUP_MS = 20_000
/** 500 ms: a copy in the broker is delivered within a few ms. */
const QUIET_MS = 500
/** 1,000 per second: the number of unconfirmed items limits the concurrent publishes. */
const RATE = 1_000
/** 30 s for steps that take seconds. */
const FINISH_MS = 30_000

const OF_SOURCE = `in (select r.id from redrive_catalog.replay_run r join redrive_catalog.source s
  on s.id = r.source_id where s.name = $1)`
const PAST = `lease_until = clock_timestamp() - interval '1 second'`
const EXPIRE_ITEMS = `
update redrive_catalog.replay_item set ${PAST} where lease_until is not null and run_id ${OF_SOURCE}`
const EXTEND_ITEMS = `
update redrive_catalog.replay_item set lease_until = clock_timestamp() + interval '1 hour'
  where lease_until is not null and run_id ${OF_SOURCE}`
const EXPIRE_DEAD = `
update redrive.outbox set ${PAST} where queue = $1 and failed_at is not null and lease_until is not null`
const EXPIRE_CONFIRMATIONS = `
update redrive.replay_confirmation set ${PAST} where queue = $1 and lease_until is not null`
const IDS = `
select d.id from redrive_catalog.dead_letter d join redrive_catalog.source s on s.id = d.source_id
  where s.name = $1 order by d.id`

async function patience(): Promise<string> {
  await new Promise((resolve) => setTimeout(resolve, PATIENCE_MS).unref())
  return 'not in time'
}
