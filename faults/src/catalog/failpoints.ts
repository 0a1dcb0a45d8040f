import { setTimeout as after } from 'node:timers/promises'
import type { DeadLetterSource } from '@redrive/runtime'
import type { Pool, PoolClient } from 'pg'
import { openDatabase } from '../effects.ts'
import { type Sent, watchQueries } from '../postgres/queries.ts'
import type { Failpoint, Point } from './options.ts'

type When = 'before' | 'after'

/** A commit of the transaction in which such a statement was sent. */
const commitOf =
  (statement: string) =>
  ({ text, trail }: Sent) =>
    text === 'commit' && trail.includes(statement)

const PLAN = commitOf('insert into redrive_catalog.replay_item')
const APPROVAL = commitOf('set approved_by')
const INGEST = commitOf('savepoint fresh')
const CONFIRMATIONS = commitOf('set state = $2, proof = $3')

/** Where in the conversation with the database a point is. */
const QUERIES: Partial<Record<Point, readonly [when: When, isIt: (sent: Sent) => boolean]>> = {
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

/** Ends this process, or makes it stand still, at one moment of its work. */
export class Failpoints {
  readonly #failpoint: Failpoint | undefined
  #left: number

  constructor(failpoint: Failpoint | undefined) {
    this.#failpoint = failpoint
    this.#left = failpoint?.nth ?? 0
  }

  /** True when the moment has come. */
  isNow(point: Point): boolean {
    if (this.#failpoint?.point !== point) return false
    this.#left -= 1
    return this.#left === 0
  }

  reach(point: Point): void {
    if (this.isNow(point)) process.kill(process.pid, this.#signal)
  }

  /** A pool of the catalog that is watched. */
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
    // A connection has one question at a time, so the last one is the one that is answered.
    let last: Sent | undefined
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

  /** The same source, with points around what is published. */
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
          // From not yet on the wire to stored: nobody hears of it in any case.
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

/** 100 ms: connected and stored by then, or somewhere between. */
const SENT_MS = 100
/** 300 ms: who does not wait for the broker has gone on by then. */
const UNHEARD_MS = 300
