import { randomUUID } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import { type Script, type ScriptRunner, scriptRunner } from '@redrive/redis-internal'
import type {
  ConfirmationBatch,
  DeadLetterSource,
  DrainedBatch,
  DrainedDeadLetter,
  DrainedQueue,
  ReplayConfirmation,
  ReplayMessage,
} from '@redrive/runtime'
import {
  COUNT_FAILED,
  COUNT_WAITING,
  END_TAKE,
  FORGET_REPLAYS,
  PRUNE,
  READ_FINISHED,
  READ_JOBS,
  RECORD_REPLAY,
  TAKE,
  UNMARK,
} from './bullmq-scripts.ts'
import {
  type JobOptions,
  optionsOf,
  readFailedJob,
  type ReplayRecord,
  type StoredJob,
} from './foreign.ts'
import {
  type BullmqQueue,
  type BullmqSourceOptions,
  type ResolvedBullmqOptions,
  resolveBullmqOptions,
} from './bullmq-options.ts'

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
/** 14 days: a control plane that was stopped for longer gets the outcome from an operator. */
const REPLAYS_MS = 1_209_600_000

/**
 * The failed jobs of a queue of BullMQ. They stay in the queue: Redrive marks those that the catalog has, and a replay
 * retries the job in place. So flows, options and other tools keep working.
 */
export class BullmqSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'in_place'
  readonly #queue: BullmqQueue
  readonly #runScript: ScriptRunner
  readonly #open = new Set<() => Promise<void>>()
  /** Where the next drain starts: a rank, or a time. */
  #start = '0'
  #lastFailedAt = ''
  #fullPassAt = 0
  #replayCursor = '0'

  /** @internal */
  constructor({ client, queue, timeoutMs }: ResolvedBullmqOptions) {
    this.source = queue.name
    this.#queue = queue
    this.#runScript = scriptRunner({ client, timeoutMs, replies: 'text' })
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
    const args = [this.#start, String(EXAMINED), String(room), token, String(LEASE_MS)]
    const reply = (await this.#run(TAKE, ['failed', INGESTED, LEASES], args)) as readonly string[]
    const [next = '', last = '', ...found] = reply
    for (let i = 0; i < found.length; i += 2) {
      taken.push({ id: found[i] ?? '', failedAt: found[i + 1] ?? '' })
    }
    if (last !== '') this.#lastFailedAt = last
    this.#start = next === '' ? await this.#nextPass() : next
    return next === ''
  }

  /** Returns where the next pass starts: at the newest jobs, and every 10 minutes at the oldest. */
  async #nextPass(): Promise<string> {
    const now = performance.now()
    if (this.#lastFailedAt === '') return '0'
    if (now < this.#fullPassAt) return `>${Number(this.#lastFailedAt) - OVERLAP_MS}`
    this.#fullPassAt = now + FULL_PASS_MS
    let cursor = '0'
    do cursor = String(await this.#run(PRUNE, [CYCLES, INGESTED, 'failed', ''], [cursor]))
    while (cursor !== '0')
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
    const reply = await this.#run(READ_JOBS, [REPLAYS, CYCLES, ''], ids)
    const rows = reply as readonly (readonly [string, string, readonly string[]])[]
    return rows.map(([record, ingested, fields]) => ({
      replay: parseRecord(record),
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
    await this.#run(END_TAKE, [INGESTED, LEASES, REPLAYS, 'failed', CYCLES], [token, what, ...rows])
    // An abandoned job is found again at once.
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
  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    const { delivery, envelope } = deadLetter
    const options = optionsOf(envelope['jobOptions'])
    const job = await this.#queue.getJob(delivery.id)
    const isGone = job === undefined || job === null
    const id = isGone ? `redrive-${replayId}` : delivery.id
    const isUnchanged = isGone || String(job.finishedOn) === envelope['failedAt']
    if (!isUnchanged) {
      // It was published before: the job runs, was completed, or failed again.
      const [known] = await this.#readJobs([delivery.id])
      if (known?.replay?.replayId === replayId) return
      throw retriedElsewhere(delivery.id)
    }
    const record: ReplayRecord = {
      replayId,
      hasFailed: false,
      isRemovedOnlyOnComplete: Boolean(options.removeOnComplete) && !options.removeOnFail,
    }
    // Recorded first: the job may be completed before the next request.
    const args = [id, JSON.stringify(record), String(REPLAYS_MS)]
    await this.#run(RECORD_REPLAY, [REPLAYS, INGESTED], args)
    const text = Buffer.from(delivery.bytes).toString()
    if (isGone) return this.#add(delivery.type ?? 'job', text, { ...options, jobId: id })
    if (text !== JSON.stringify(job.data)) await job.updateData(JSON.parse(text))
    await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true })
  }

  /** Adds a job that was removed. BullMQ ignores a second job with the same id. */
  async #add(name: string, text: string, options: JobOptions): Promise<void> {
    const { delay: _, parent: __, repeat: ___, ...rest } = options
    await this.#queue.add(name, JSON.parse(text), rest)
  }

  /** Lets the jobs be drained again: they never left the queue. */
  async putBack(deadLetters: readonly DrainedDeadLetter[]): Promise<void> {
    const ids = deadLetters.map(({ delivery }) => delivery.id)
    const gone = (await this.#run(UNMARK, [INGESTED, 'failed', CYCLES], ids)) as readonly string[]
    this.#start = '0'
    if (gone.length > 0) throw jobsGone(this.source, gone)
  }

  /** Returns replays whose jobs were completed. A replay that failed again is drained with its replay id. */
  async confirmations({ limit }: { readonly limit: number }): Promise<ConfirmationBatch> {
    const keys = [REPLAYS, 'completed', '']
    const reply = await this.#run(READ_FINISHED, keys, [this.#replayCursor, String(limit)])
    const [cursor = '0', ...rows] = reply as readonly string[]
    this.#replayCursor = cursor
    const confirmations: ReplayConfirmation[] = []
    const finished: string[] = []
    for (let i = 0; i < rows.length; i += 3) {
      const [id = '', text = '', completedAt = ''] = rows.slice(i, i + 3)
      const record = parseRecord(text)
      if (record === undefined || (completedAt === '' && !record.isRemovedOnlyOnComplete)) continue
      const at = completedAt === '' ? Date.now() : Number(completedAt)
      confirmations.push({ replayId: record.replayId, outcome: 'handled', at })
      finished.push(id, text)
    }
    return {
      confirmations,
      ...this.#endActions(async (what) => {
        if (what === 'release') await this.#run(FORGET_REPLAYS, [REPLAYS], finished)
      }),
    }
  }

  async depth(): Promise<number> {
    return Number(await this.#run(COUNT_FAILED, ['failed', INGESTED], [String(COMPARED)]))
  }

  async queues(): Promise<readonly DrainedQueue[]> {
    return [{ name: this.#queue.toKey('failed'), depth: await this.depth() }]
  }

  /** Returns the number of jobs that workers could handle now, or handle now. */
  async lag(): Promise<number> {
    return Number(await this.#run(COUNT_WAITING, ['wait', 'paused', 'active', 'prioritized'], []))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((abandon) => abandon()))
  }

  #run(script: Script, names: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#runScript(
      script,
      names.map((name) => this.#queue.toKey(name)),
      args,
    )
  }
}

/** Keys of Redrive, next to those of the queue. */
const INGESTED = 'redrive:ingested'
const LEASES = 'redrive:leases'
const REPLAYS = 'redrive:replays'
const CYCLES = 'redrive:cycles'

interface TakenJob {
  readonly id: string
  /** Milliseconds since 1970, as text. */
  readonly failedAt: string
}

/** Parses the record of a replay. With '!' before it, the replay has failed again, and that was ingested. */
function parseRecord(text: string): ReplayRecord | undefined {
  if (text === '') return undefined
  const hasFailed = text.startsWith('!')
  return { ...(JSON.parse(hasFailed ? text.slice(1) : text) as ReplayRecord), hasFailed }
}

const retriedElsewhere = (id: string) =>
  new RedriveError(
    'REFUSED',
    `Another program has retried the job "${id}". Discard the dead letter, or wait for the result of the job.`,
  )

const jobsGone = (queue: string, ids: readonly string[]) =>
  new RedriveError(
    'REFUSED',
    `The queue "${queue}" no longer has ${ids.length} of these jobs as failed: ${ids.slice(0, 5).join(', ')}. Replay or discard them.`,
  )

/** Creates the control plane's access to the failed jobs of a queue of BullMQ. */
export function bullmqSource(options: BullmqSourceOptions): BullmqSource {
  return new BullmqSource(resolveBullmqOptions(options))
}
