import { setTimeout as after } from 'node:timers/promises'
import type { DeadLetterSource } from '@redrive/runtime'
import type { Pool, PoolClient } from 'pg'
import { openDatabase } from '../harness/effects.ts'
import { type SentQuery, watchQueries } from '../postgres/queries.ts'
import type { Failpoint, Point } from './options.ts'

type When = 'before' | 'after'

/** Matches the commit of a transaction that sent such a statement. */
const commitOf =
  (statement: string) =>
  ({ text, trail }: SentQuery) =>
    text === 'commit' && trail.includes(statement)

const PLAN = commitOf('insert into redrive_catalog.replay_item')
const APPROVAL = commitOf('set approved_by')
const INGEST = commitOf('savepoint fresh')
const CONFIRMATIONS = commitOf('set state = $2, proof = $3')

/** The database query at which each point is. */
const QUERIES: Partial<Record<Point, readonly [when: When, isIt: (sent: SentQuery) => boolean]>> = {
  'plan not committed': ['before', PLAN],
  'plan committed': ['after', PLAN],
  'approval not committed': ['before', APPROVAL],
  'approval committed': ['after', APPROVAL],
  claimed: ['after', commitOf('with lapsed as')],
  begun: ['after', ({ text }) => text.includes(`set state = 'publishing'`)],
  'mark wanted': ['before', ({ text }) => text.includes(`set state = 'published', published_at`)],
  'ingest not committed': ['before', INGEST],
  'ingest committed': ['after', INGEST],
  'confirmations not written': ['before', CONFIRMATIONS],
  'confirmations written': ['after', CONFIRMATIONS],
}

const die = () => process.kill(process.pid, 'SIGKILL')

/** Kills or stops this process at one point of its work. */
export class Failpoints {
  readonly #failpoint: Failpoint | undefined
  #left: number

  constructor(failpoint: Failpoint | undefined) {
    this.#failpoint = failpoint
    this.#left = failpoint?.nth ?? 0
  }

  /** Returns true when the point is reached. */
  isNow(point: Point): boolean {
    if (this.#failpoint?.point !== point) return false
    this.#left -= 1
    return this.#left === 0
  }

  reach(point: Point): void {
    if (this.isNow(point)) process.kill(process.pid, this.#signal)
  }

  /** Opens a pool of the catalog with failpoints. */
  pool(url: string): Pool {
    const pool = openDatabase(url)
    pool.on('connect', (client) => this.#watch(client as PoolClient))
    return pool
  }

  #watch(client: PoolClient): void {
    const point = this.#failpoint?.point
    const query = point === undefined ? undefined : QUERIES[point]
    if (point === undefined || query === undefined) return
    const [when, isIt] = query
    // A connection runs one query at a time, so a result belongs to the last query.
    let last: SentQuery | undefined
    watchQueries(client, {
      before: (_, sent) => {
        last = sent
        if (when === 'before' && isIt(sent)) this.reach(point)
      },
      after: () => {
        if (when === 'after' && last !== undefined && isIt(last)) this.reach(point)
      },
    })
  }

  /** Returns the same source with failpoints around its publishes. */
  source(source: DeadLetterSource): DeadLetterSource {
    return {
      source: source.source,
      replay: source.replay,
      drain: (options) => source.drain(options),
      confirmations: (options) => source.confirmations(options),
      depth: () => source.depth(),
      close: () => source.close(),
      publish: async (message) => {
        if (this.isNow('publish lost')) {
          await after(UNHEARD_MS)
          die()
        }
        const proof = source.publish(message)
        if (this.isNow('publish called')) {
          // The message may not be sent yet, or already be stored. The publisher gets no
          // confirmation in either case.
          await Promise.race([proof, after(Math.random() * SENT_MS)])
          die()
        }
        await proof
        this.reach('publish proven')
      },
    }
  }

  get #signal(): NodeJS.Signals {
    return this.#failpoint?.what === 'stop' ? 'SIGSTOP' : 'SIGKILL'
  }
}

/** 100 ms: by then it is connected and stored, or somewhere in between. */
const SENT_MS = 100
/** 300 ms: code that does not wait for the broker has continued by then. */
const UNHEARD_MS = 300
