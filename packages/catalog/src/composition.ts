import { type Consumer, consume, type Message, type StopOptions } from '@redrive/runtime'
import { type Outbox, outbox, postgres } from '@redrive/postgres'
import type { Pool } from 'pg'
import {
  type BackgroundParts,
  type BackgroundRole,
  type BackgroundSource,
  CHORES,
  CHORES_OF,
  runChore,
  type Trouble,
} from './background/chores.ts'
import type { Catalog } from './catalog.ts'
import { resolveIngest } from './ingest/options.ts'
import type { Alert, AlertLimits } from './watch/metrics.ts'

export interface BackgroundOptions {
  readonly catalog: Catalog
  /** Of the database that has the catalog and the outbox. At least 12 connections. */
  readonly pool: Pool
  readonly sources: readonly BackgroundSource[]
  /** Told of every alert that holds, once a minute in each process. Default: nobody is told. */
  readonly onAlerts?: (alerts: readonly Alert[]) => Promise<void>
  readonly alertLimits?: AlertLimits
  /** Told of every chore that fails. It is done again; without this, only counts say so. Default: nobody is told. */
  readonly onTrouble?: (trouble: Trouble) => void
  /** See `replayer()`. Default: none. */
  readonly witness?: string
  /**
   * Which part of the work. The parts go through queues of their own, so that a process never takes what it
   * has no role for; between them, some process must do each. Default `'all'`.
   */
  readonly role?: BackgroundRole
  /** The queue of the outbox that the work goes through. Default 'redrive.catalog', and the role after a dot. */
  readonly queue?: string
}

/** The work of the catalog, going on until it is stopped. */
export interface Background {
  /** Of the chores: what runs, fails and is retried. */
  readonly consumer: Consumer
  /** Ends shifts at once, finishes what is begun and gives back the rest. */
  stop(options?: StopOptions): Promise<void>
}

const QUEUE = 'redrive.catalog'
const queueOf = (role: BackgroundRole) => (role === 'all' ? QUEUE : `${QUEUE}.${role}`)
/** 60 s: ten times as long as the longest shift. */
const TIMEOUT = '60s'
/** Two rounds: what nobody took by then is asked for again anyway. */
const STALE_ROUNDS = 2

/**
 * Ingest, replay, retention and alerts, on our own runtime and outbox. Each process asks for every chore as
 * often as it is due, and whoever is free takes it: two processes do twice the work. A process that dies
 * leaves its chore to the others, one that fails is retried, and what fails for good is a dead letter of
 * the queue, like anybody's.
 */
export async function startBackground(options: BackgroundOptions): Promise<Background> {
  const { catalog, pool, sources, witness, role = 'all', queue = queueOf(role) } = options
  // What no ingest would take is refused now, and not every few seconds.
  for (const { ingest, name, source } of sources) resolveIngest(ingest ?? {}, name ?? source.source)
  const chores = CHORES_OF[role]
  const replayer = catalog.replays.replayer({
    sources,
    ...(witness === undefined ? {} : { witness }),
  })
  const parts: BackgroundParts = { ...options, replayer }
  const box = outbox({ queue, pool })
  // Shifts end at once when we stop, and not when their time is over.
  const stopping = new AbortController()
  const consumer = await consume<Asked>(
    postgres({ pool, queue, keepDelivered: '1h' }),
    (message, { signal }) => work(parts, message, AbortSignal.any([signal, stopping.signal])),
    {
      name: queue,
      // Whatever the role: while one waits for a broker that is silent, the next round goes on with the others.
      concurrency: Object.keys(CHORES).length,
      timeout: TIMEOUT,
      // Slower chores are not a sign of trouble, and one that fails must not stop the others.
      limit: 'off',
      breaker: 'off',
      outage: 'off',
    },
  )
  const timers = chores.map((name) => asking(box, pool, name))
  return {
    consumer,
    async stop(stop) {
      for (const timer of timers) clearInterval(timer)
      stopping.abort()
      await consumer.stop(stop)
    },
  }
}

interface Asked {
  readonly at: number
}

async function work(
  parts: BackgroundParts,
  { type = '', body }: Message<Asked>,
  signal: AbortSignal,
): Promise<void> {
  const chore = CHORES[type]
  // Of another release: it is asked for by those who know it.
  if (chore === undefined || Date.now() - body.at > STALE_ROUNDS * chore.everyMs) return
  await runChore(type, chore, { ...parts, signal })
}

function asking(box: Outbox, pool: Pool, name: string): NodeJS.Timeout {
  const ask = () => {
    const asked = box.add(pool, { type: name, body: { at: Date.now() } })
    // The database does not answer now: it is asked for again in the next round.
    asked.then(() => box.wake()).catch(() => undefined)
  }
  ask()
  return setInterval(ask, CHORES[name]?.everyMs)
}
