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
import type { DrillWorld } from '../drill.ts'
import { openDatabase } from '../effects.ts'
import { readHistory } from '../history.ts'
import { becomesTrue, until } from '../wait.ts'
import type { Broker } from './brokers/broker.ts'
import { type Child, startConsumer, startWorker } from './child.ts'
import type {
  Body,
  CatalogConsumerOptions,
  Failpoint,
  Role,
  Where,
  WorkerOptions,
} from './options.ts'

/** 60 s for what takes seconds: groups of Kafka wait for their dead, and the machine may be busy. */
const PATIENCE_MS = 60_000

export interface StageParts {
  readonly broker: Broker
  readonly where: Where
  readonly world: DrillWorld
}

/** One source with its consumer, and the control plane's own view of it. */
export class Stage {
  readonly where: Where
  readonly world: DrillWorld
  /** Messages that producers were told are accepted. */
  readonly ids: string[] = []
  /** Of the database with the catalog, and of the one with inbox and effects. */
  pool: Pool
  readonly books: Pool
  source: DeadLetterSource
  catalog: Catalog
  replayer: Replayer
  readonly #broker: Broker
  readonly #children: Child[] = []
  #first: Child | undefined
  #consumers = 0

  constructor({ broker, where, world }: StageParts) {
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

  /** As a process that starts anew: it remembers nothing of the database. */
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

  get firstConsumer(): Child {
    if (this.#first === undefined) throw new Error('There is no consumer yet.')
    return this.#first
  }

  // ---- processes ------------------------------------------------------------------------------

  async consumer(special: Partial<CatalogConsumerOptions> = {}): Promise<Child> {
    this.#consumers += 1
    const name = `consumer-${this.#consumers}`
    const { folder } = this.world
    const child = startConsumer({ ...this.where, name, folder, ...special })
    this.#children.push(child)
    await child.heard('ready')
    return child
  }

  worker(role: Role, special: Partial<WorkerOptions> = {}): Child {
    const child = startWorker({ ...this.where, role, ...special })
    this.#children.push(child)
    return child
  }

  /** A worker that dies at that point; resolves when it is dead and what it held has lapsed. */
  async crash(
    role: Role,
    failpoint: Failpoint,
    special: Partial<WorkerOptions> = {},
  ): Promise<void> {
    if (role === 'ingest' || role === 'settle') await this.#letGo()
    const child = this.worker(role, { ...special, failpoint })
    const end = await Promise.race([child.gone, patience()])
    if (end !== 'SIGKILL') {
      const told = JSON.stringify(child.told.slice(-3))
      throw new Error(`${role} did not come to '${failpoint.point}': ${String(end)}, ${told}`)
    }
    await this.lapse()
  }

  /** What we would hold as a member of a group, the process that is to die would not get. */
  async #letGo(): Promise<void> {
    await this.source.close()
    this.source = this.#broker.source(this.where, this.books)
    this.replayer = this.#newReplayer()
  }

  /** As if the time was over for which the dead hold what they had. */
  async lapse(): Promise<void> {
    const { queue } = this.where
    await this.pool.query(LAPSE_ITEMS, [queue])
    await this.books.query(LAPSE_DEAD, [queue])
    await this.books.query(LAPSE_SAID, [queue])
  }

  /** The opposite: who has something in hand keeps it, however long the machine takes. */
  async hold(): Promise<void> {
    await this.pool.query(HOLD_ITEMS, [this.where.queue])
  }

  // ---- what happens ---------------------------------------------------------------------------

  /** Messages that fail in so many cycles, until all of them are dead letters of the broker. */
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

  /** Resolves when so many dead letters wait in the broker. */
  async waiting(count: number): Promise<void> {
    const isThere = async () => (await this.source.depth()) >= count
    await until(`${count} dead letters`, isThere, { withinMs: PATIENCE_MS })
  }

  async ingest(): Promise<void> {
    await this.catalog.ingest(this.source)
  }

  /** Ids of the dead letters in the catalog, oldest first. */
  async deadLetters(): Promise<readonly string[]> {
    const { rows } = await this.pool.query<{ id: string }>(IDS, [this.where.queue])
    return rows.map(({ id }) => id)
  }

  async request(special: Partial<ReplayRequest> = {}): Promise<ReplayRequest> {
    const selection = { ids: await this.deadLetters() }
    return { selection, by: 'ada', ratePerSecond: RATE, ramp: [], refailLimit: 1, ...special }
  }

  /** Planned by one and approved by another. */
  async started(special: Partial<ReplayRequest> = {}): Promise<ReplayRun> {
    const { id, hash } = await this.catalog.replays.plan(await this.request(special))
    return this.catalog.replays.approve(id, { hash, by: 'bob' })
  }

  /** Does the work of every role until the runs are over; what paused is let go on. False: not in time. */
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

  /** How many replays consumers were handed, copies included; those of some consumers, or of all. */
  received(isMeant: (consumer: string) => boolean = () => true): number {
    const entries = readHistory(this.world.folder)
    return entries.filter(({ what, by }) => what === 'replay_received' && isMeant(by)).length
  }

  /** Copies that are late must be seen as well: resolves when nothing was handed out for a while. */
  async quiet(): Promise<void> {
    let [seen, since] = [-1, 0]
    const isQuiet = () => {
      const now = readHistory(this.world.folder).length
      if (now !== seen) [seen, since] = [now, performance.now()]
      return performance.now() - since > QUIET_MS
    }
    await until('nothing is handed out any more', isQuiet, { withinMs: PATIENCE_MS })
    // What a dead member of a group had in hand comes when the group notices.
    const isEmpty = async () => {
      await this.settle()
      return (await this.source.depth()) === 0
    }
    await becomesTrue(isEmpty, { withinMs: GROUP_MS })
  }

  async end(): Promise<void> {
    for (const child of this.#children) if (child.isAlive) child.signal('SIGKILL')
    await Promise.all(this.#children.map(({ gone }) => gone))
    await this.source.close()
    await Promise.all([this.pool.end(), this.books.end()])
  }
}

/** 20 s: twice what a group waits for one that died. */
const GROUP_MS = 20_000
/** 500 ms: a copy that is in the broker is handed out in a few. */
const QUIET_MS = 500
/** 1,000 a second: what goes out at once is bounded by what is not proven yet. */
const RATE = 1_000
/** 30 s for what takes seconds. */
const FINISH_MS = 30_000

const OF_SOURCE = `in (select r.id from redrive_catalog.replay_run r join redrive_catalog.source s
  on s.id = r.source_id where s.name = $1)`
const PAST = `lease_until = clock_timestamp() - interval '1 second'`
const LAPSE_ITEMS = `
update redrive_catalog.replay_item set ${PAST} where lease_until is not null and run_id ${OF_SOURCE}`
const HOLD_ITEMS = `
update redrive_catalog.replay_item set lease_until = clock_timestamp() + interval '1 hour'
  where lease_until is not null and run_id ${OF_SOURCE}`
const LAPSE_DEAD = `
update redrive.outbox set ${PAST} where queue = $1 and failed_at is not null and lease_until is not null`
const LAPSE_SAID = `
update redrive.replay_confirmation set ${PAST} where queue = $1 and lease_until is not null`
const IDS = `
select d.id from redrive_catalog.dead_letter d join redrive_catalog.source s on s.id = d.source_id
  where s.name = $1 order by d.id`

async function patience(): Promise<string> {
  await new Promise((resolve) => setTimeout(resolve, PATIENCE_MS).unref())
  return 'not in time'
}
