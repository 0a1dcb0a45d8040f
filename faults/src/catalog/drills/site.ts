import { randomBytes } from 'node:crypto'
import {
  type Catalog,
  catalog,
  migrate as migrateCatalog,
  type ReplayRequest,
  type ReplayRun,
} from '@redrive/catalog'
import { migrate as migrateOutbox } from '@redrive/postgres'
import type { OutboundEvent } from '@redrive/runtime'
import type { Pool } from 'pg'
import { notPlayed, type Result } from '../../harness/scenario.ts'
import { makeTables, openDatabase } from '../../harness/effects.ts'
import { createDatabase, dropDatabase } from '../../postgres/database.ts'
import { urlsOf } from '../../harness/services.ts'
import { type Span, stoodMs, watchStandstills } from '../../evidence/stalls.ts'
import { until } from '../../harness/wait.ts'
import { type Broker, brokerOf } from '../brokers/broker.ts'
import type { Kind, Where } from '../options.ts'
import type { BackgroundProgram } from './background.ts'
import type { ConsumerProgram } from './consumer.ts'
import type { Pause } from './pauses.ts'
import { type Child, startChild } from '../../harness/process.ts'

/** A broker, a consumer, a catalog and its background work, each started as users start them. */
export class Site {
  readonly where: Where
  readonly broker: Broker
  readonly pool: Pool
  readonly catalog: Catalog
  readonly #processes: Child[] = []
  /** Every automatic pause of a run, with its reason. */
  readonly pauses: Pause[] = []
  readonly #standstills: Span[] = []
  #stopWatching: () => void = () => undefined

  constructor(where: Where, broker: Broker) {
    this.where = where
    this.broker = broker
    this.pool = openDatabase(where.catalogUrl)
    this.catalog = catalog({ pool: this.pool })
  }

  async consumer(special: Omit<ConsumerProgram, keyof Where>): Promise<Child> {
    return this.start('./consumer.ts', { ...this.where, ...special })
  }

  async background(special: Omit<BackgroundProgram, keyof Where> = {}): Promise<Child> {
    return this.start('./background.ts', { ...this.where, ...special })
  }

  /** Starts a program of this folder. */
  async start(program: string, options: object): Promise<Child> {
    const started = startChild(new URL(program, import.meta.url), options)
    this.#processes.push(started)
    await started.waitFor('ready')
    return started
  }

  /** Resolves when the broker has accepted all of them. */
  async send(events: readonly OutboundEvent[]): Promise<void> {
    const sink = this.broker.sink(this.where, this.pool)
    try {
      for (let at = 0; at < events.length; at += sink.batch) {
        const signal = AbortSignal.timeout(ACCEPT_MS)
        await sink.send(events.slice(at, at + sink.batch), { signal })
      }
    } finally {
      await sink.close()
    }
  }

  /** Number of dead letters in each status. */
  async statuses(): Promise<Readonly<Record<string, number>>> {
    const text = 'select status, count(*)::int from redrive_catalog.dead_letter group by 1'
    const { rows } = await this.pool.query<{ status: string; count: number }>(text)
    return Object.fromEntries(rows.map(({ status, count }) => [status, count]))
  }

  /** Resolves when the catalog has `count` dead letters. */
  async ingested(count: number, withinMs: number = INGEST_MS): Promise<void> {
    const isThere = async () => {
      const all = Object.values(await this.statuses())
      return all.reduce((sum, one) => sum + one, 0) >= count
    }
    await until(`${count} dead letters in the catalog`, isThere, { withinMs })
  }

  /** Plans a replay of all open dead letters and approves it as another person. */
  async replay(special: Partial<ReplayRequest> = {}): Promise<ReplayRun> {
    const query = { after: Date.now() - HOUR_MS, sources: [this.where.queue] }
    const { replays } = this.catalog
    const { id, hash } = await replays.plan({ selection: { query }, by: 'ada', ...special })
    return replays.approve(id, { hash, by: 'bob' })
  }

  /** Resolves when the run has ended. It records automatic pauses and resumes the run. */
  async finished({ id }: ReplayRun, withinMs: number): Promise<ReplayRun> {
    const { replays } = this.catalog
    let run = await replays.run(id)
    const isDone = async () => {
      run = await replays.run(id)
      if (run?.state === 'paused') await this.resumeRun(run)
      return run?.state === 'done'
    }
    await until(`run ${id} has ended`, isDone, { withinMs })
    return run as ReplayRun
  }

  /** Records why the run paused and resumes it. */
  async resumeRun({ id, pausedAt = 0, pauseReason = '' }: ReplayRun): Promise<void> {
    this.pauses.push({ run: id, at: pausedAt, because: pauseReason })
    await this.catalog.replays.resume(id, { by: 'ada' })
  }

  /** Starts to record when the machine stalls, including its disk. */
  watch(): void {
    const record = (standstill: Span) => void this.#standstills.push(standstill)
    this.#stopWatching = watchStandstills(record, () => this.pool.query(BEAT))
  }

  stoodMs(span: Span): number {
    return stoodMs(span, this.#standstills)
  }

  async end(): Promise<void> {
    this.#stopWatching()
    await Promise.all(this.#processes.map((one) => one.kill()))
    await this.pool.end()
    await this.broker.forget(this.where)
  }
}

const ACCEPT_MS = 30_000
/** The smallest commit that waits for the disk. */
const BEAT = `select pg_logical_emit_message(true, 'faults', 'beat')`
/** 3 min for 10,000 failures and their ingest on a machine that does everything concurrently. */
const INGEST_MS = 180_000
const HOUR_MS = 3_600_000

/**
 * Plays a scenario on servers with a separate database. After a failure the database stays for
 * inspection.
 */
export async function onSite(
  name: string,
  kind: Kind,
  play: (site: Site) => Promise<Result>,
): Promise<Result> {
  const where = await newSite(name, kind)
  const site = new Site(where, await brokerOf(kind))
  const result = await play(site).catch((error) => notPlayed(error))
  await site.end()
  if (result.broken.length === 0) await dropDatabase(where.catalogUrl)
  return result
}

/** Plays several parts concurrently and merges their results. */
export async function together(...plays: readonly Promise<Result>[]): Promise<Result> {
  const played = await Promise.all(plays)
  return {
    events: played.reduce((sum, { events }) => sum + events, 0),
    figures: played.flatMap(({ figures }) => figures),
    broken: played.flatMap(({ broken }) => broken),
  }
}

async function newSite(name: string, kind: Kind): Promise<Where> {
  const [amqpUrl = ''] = kind === 'rabbitmq' ? await urlsOf('rabbitmq') : []
  const [kafkaBroker = ''] = kind === 'kafka' ? await urlsOf('kafka') : []
  const [serverUrl = ''] = await urlsOf('postgres')
  const url = await createDatabase(serverUrl, `drill-${name}`)
  const pool = openDatabase(url)
  await migrateOutbox(pool)
  await migrateCatalog(pool)
  await makeTables(pool)
  await pool.end()
  const queue = `faults-${name}-${randomBytes(4).toString('hex')}`
  const where = { kind, queue, amqpUrl, kafkaBroker, consumerUrl: url, catalogUrl: url }
  await (await brokerOf(kind)).declare(where)
  return where
}
