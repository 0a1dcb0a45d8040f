import { randomUUID } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type {
  ConfirmationBatch,
  DeadLetterSource,
  DrainedBatch,
  DrainedDeadLetter,
  DrainedQueue,
  ReplayMessage,
} from '@redrive/runtime'
import { BullmqKeys } from './bullmq-keys.ts'
import {
  type BullmqSourceOptions,
  type ResolvedBullmqOptions,
  resolveBullmqOptions,
} from './bullmq-options.ts'
import { BullmqReplays } from './bullmq-replays.ts'
import {
  COUNT_FAILED,
  COUNT_WAITING,
  END_TAKE,
  PRUNE,
  PRUNE_LEASES,
  READ_JOBS,
  TAKE,
  UNMARK,
} from './bullmq-scripts.ts'
import { parseReplay, readFailedJob, type StoredJob } from './foreign.ts'

/** 1 minute: the time that a crashed control plane keeps its dead letters. */
const LEASE_MS = 60_000
/** 500 jobs per script, about a millisecond, and 2,000 per drain, so that a drain ends soon. */
const EXAMINED = 500
const PAGES = 4
/** 10 minutes: workers set the time of a failure, and their clocks differ. Later failures are found by the next full pass. */
const OVERLAP_MS = 600_000
const FULL_PASS_MS = 600_000
/** 10,000 marks are compared in a few milliseconds. With more, the depth is the difference of two counts. */
const COMPARED = 10_000

/**
 * The failed jobs of a queue of BullMQ. They stay in the queue: Redrive marks the jobs in the catalog, and a replay
 * retries the job in place. So flows, options and other tools keep working.
 */
export class BullmqSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'in_place'
  readonly #failedKey: string
  readonly #isLeasing: boolean
  readonly #keys: BullmqKeys
  readonly #replays: BullmqReplays
  readonly #open = new Set<() => Promise<void>>()
  /** Where the next drain starts: a rank, or a time. */
  #start = '0'
  #lastFailedAt = ''
  #fullPassAt = 0

  /** @internal */
  constructor(options: ResolvedBullmqOptions) {
    const { queue, isLeasing } = options
    this.source = queue.name
    this.#failedKey = queue.toKey('failed')
    this.#isLeasing = isLeasing
    this.#keys = new BullmqKeys(options)
    this.#replays = new BullmqReplays(queue, this.#keys)
  }

  async drain({ limit }: { readonly limit: number }): Promise<DrainedBatch> {
    const token = randomUUID()
    const taken: TakenJob[] = []
    for (let page = 0; page < PAGES && taken.length < limit; page++) {
      const isAtEnd = await this.#take(taken, limit, token)
      if (isAtEnd) break
    }
    return {
      deadLetters: await this.#read(taken),
      ...this.#endActions((what) => this.#endTake(token, what, taken)),
    }
  }

  /** Leases jobs of one page. Returns true at the end of the failed jobs. */
  async #take(taken: TakenJob[], limit: number, token: string): Promise<boolean> {
    const room = Math.min(limit - taken.length, EXAMINED)
    const lease = this.#isLeasing ? String(LEASE_MS) : ''
    const args = [this.#start, String(EXAMINED), String(room), token, lease]
    const reply = await this.#keys.run(TAKE, ['failed', 'ingested', 'leases'], args)
    const [next = '', last = '', ...found] = reply as readonly string[]
    for (let i = 0; i < found.length; i += 2) {
      taken.push({ id: found[i] ?? '', failedAt: found[i + 1] ?? '' })
    }
    if (last !== '') this.#lastFailedAt = last
    this.#start = next === '' ? await this.#nextPass() : next
    return next === ''
  }

  /** Returns where the next pass starts: at the newest jobs, and every 10 minutes at the oldest. */
  async #nextPass(): Promise<string> {
    // Without leases, an earlier start would return the same jobs again.
    if (!this.#isLeasing) return AFTER_ALL
    const now = performance.now()
    if (this.#lastFailedAt === '') return '0'
    if (now < this.#fullPassAt) return `>${Number(this.#lastFailedAt) - OVERLAP_MS}`
    this.#fullPassAt = now + FULL_PASS_MS
    await this.#keys.scan(PRUNE, ['cycles', 'ingested', 'failed', ''], [])
    await this.#keys.scan(PRUNE_LEASES, ['leases'], [])
    await this.#replays.prune()
    return '0'
  }

  async #read(taken: readonly TakenJob[]): Promise<readonly DrainedDeadLetter[]> {
    if (taken.length === 0) return []
    const jobs = await this.#readJobs(taken.map(({ id }) => id))
    return taken.flatMap(({ id, failedAt }, i) => {
      const job = jobs[i]
      // Another program removed the job in the meantime.
      return job?.fields.size ? [readFailedJob(this.source, { ...job, id, failedAt })] : []
    })
  }

  async #readJobs(ids: readonly string[]): Promise<readonly StoredJob[]> {
    const reply = await this.#keys.run(READ_JOBS, ['replays', 'cycles', ''], ids)
    const rows = reply as readonly (readonly [string, string, readonly string[]])[]
    return rows.map(([record, ingested, fields]) => ({
      replay: parseReplay(record),
      ingested: Number(ingested),
      fields: new Map(fields.flatMap((name, i) => (i % 2 ? [] : [[name, fields[i + 1] ?? '']]))),
    }))
  }

  async #endTake(
    token: string,
    what: 'release' | 'abandon',
    taken: readonly TakenJob[],
  ): Promise<void> {
    const rows = taken.flatMap(({ id, failedAt }) => [id, failedAt])
    const names = ['ingested', 'leases', 'replays', 'failed', 'cycles']
    await this.#keys.run(END_TAKE, names, [token, what, ...rows])
    // The next drain finds an abandoned job immediately.
    if (what === 'abandon') this.#start = '0'
  }

  /** Returns the two actions that end a batch. Only the first call has an effect; `close` ends open batches. */
  #endActions(
    endBatch: (what: 'release' | 'abandon') => Promise<void>,
  ): Pick<DrainedBatch, 'release' | 'abandon'> {
    const end = async (what: 'release' | 'abandon') => {
      if (!this.#open.has(abandon)) return
      await endBatch(what)
      this.#open.delete(abandon)
    }
    const abandon = () => end('abandon')
    this.#open.add(abandon)
    return { release: () => end('release'), abandon }
  }

  /** Retries the job in its queue, with all its attempts. A job that does not exist any more is added again. */
  publish(message: ReplayMessage): Promise<void> {
    return this.#replays.publish(message)
  }

  /** Lets the jobs be drained again: they never left the queue. */
  async putBack(deadLetters: readonly DrainedDeadLetter[]): Promise<void> {
    const ids = deadLetters.map(({ delivery }) => delivery.id)
    const gone = (await this.#keys.run(
      UNMARK,
      ['ingested', 'failed', 'cycles'],
      ids,
    )) as readonly string[]
    this.#start = '0'
    if (gone.length > 0) throw jobsGone(this.source, gone)
  }

  /** Returns replays whose jobs were completed. A replay that failed again is drained with its replay id. */
  async confirmations({ limit }: { readonly limit: number }): Promise<ConfirmationBatch> {
    const { confirmations, end } = await this.#replays.completed(limit)
    return {
      confirmations,
      ...this.#endActions(async (what) => {
        if (what === 'release') await end()
      }),
    }
  }

  async depth(): Promise<number> {
    return Number(await this.#keys.run(COUNT_FAILED, ['failed', 'ingested'], [String(COMPARED)]))
  }

  async queues(): Promise<readonly DrainedQueue[]> {
    return [{ name: this.#failedKey, depth: await this.depth() }]
  }

  /** Returns the number of jobs that workers could handle now, or handle now. */
  async lag(): Promise<number> {
    return Number(
      await this.#keys.run(COUNT_WAITING, ['wait', 'paused', 'active', 'prioritized'], []),
    )
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((abandon) => abandon()))
  }
}

/** A time after each failure. */
const AFTER_ALL = '>9999999999999'

interface TakenJob {
  readonly id: string
  /** Milliseconds since 1970, as text. */
  readonly failedAt: string
}

const jobsGone = (queue: string, ids: readonly string[]) =>
  new RedriveError(
    'REFUSED',
    `The queue "${queue}" no longer has ${ids.length} of these jobs as failed: ${ids.slice(0, 5).join(', ')}. Replay or discard them.`,
  )

/** Creates the control plane's access to the failed jobs of a queue of BullMQ. */
export function bullmqSource(options: BullmqSourceOptions): BullmqSource {
  return new BullmqSource(resolveBullmqOptions(options))
}
