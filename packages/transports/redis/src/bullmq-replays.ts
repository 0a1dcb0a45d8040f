import { RedriveError } from '@redrive/core'
import type { ReplayConfirmation, ReplayMessage } from '@redrive/runtime'
import type { BullmqKeys } from './bullmq-keys.ts'
import type { BullmqQueue } from './bullmq-options.ts'
import {
  CONFIRM_REPLAYS,
  PRUNE_REPLAYS,
  READ_FINISHED,
  READ_REPLAYS,
  RECORD_REPLAY,
  UNMARK_REPLAYED,
} from './bullmq-scripts.ts'
import {
  type JobOptions,
  optionsOf,
  parseReplay,
  type ReplayRecord,
  type StoredReplay,
} from './foreign.ts'

/** 14 days: a control plane that was stopped for longer gets the outcome from an operator. */
const OPEN_MS = 1_209_600_000
/** A day: a control plane repeats a publish within minutes. */
const ENDED_MS = 86_400_000
/** BullMQ keeps a job that was added again for a day, so that a repeated publish finds it. */
const KEPT = { age: ENDED_MS / 1000 }

/** Starts replays of failed jobs, and finds out which ones were completed. */
export class BullmqReplays {
  readonly #queue: BullmqQueue
  readonly #keys: BullmqKeys
  #cursor = '0'

  constructor(queue: BullmqQueue, keys: BullmqKeys) {
    this.#queue = queue
    this.#keys = keys
  }

  /** Retries the job in its queue, with all its attempts. A job that does not exist any more is added again. */
  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    const { delivery, envelope } = deadLetter
    const { failedAt = '' } = envelope
    const options = optionsOf(envelope['jobOptions'])
    const text = Buffer.from(delivery.bytes).toString()
    const job = await this.#queue.getJob(delivery.id)
    if (job === undefined || job === null) {
      // It was published before: the job was completed or failed, and BullMQ removed it.
      if ((await this.#last(delivery.id))?.replayId === replayId) return
      await this.#add(delivery.type ?? 'job', text, { replayId, failedAt, options })
    } else if (String(job.finishedOn) !== failedAt) {
      // It was published before: the job runs, was completed, or failed again.
      if ((await this.#last(delivery.id))?.replayId === replayId) return
      throw retriedElsewhere(delivery.id)
    } else {
      await this.#record(delivery.id, { replayId, failedAt, options })
      if (text !== JSON.stringify(job.data)) await job.updateData(JSON.parse(text))
      await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true })
    }
    await this.#keys.run(UNMARK_REPLAYED, ['ingested'], [delivery.id, failedAt])
  }

  /** Adds a job that was removed. BullMQ ignores a second job with the same id. */
  async #add(name: string, text: string, replay: NewReplay): Promise<void> {
    const { delay: _, parent: __, repeat: ___, ...rest } = replay.options
    const removeOnComplete = rest.removeOnComplete === false ? false : KEPT
    const removeOnFail = rest.removeOnFail ? KEPT : false
    const options = { ...rest, removeOnComplete, removeOnFail }
    const jobId = `redrive-${replay.replayId}`
    await this.#record(jobId, { ...replay, options })
    await this.#queue.add(name, JSON.parse(text), { ...options, jobId })
  }

  /** Records a replay before it starts: the job may be completed before the next request. */
  async #record(id: string, { replayId, failedAt, options }: NewReplay): Promise<void> {
    const record: ReplayRecord = {
      replayId,
      failedAt,
      recordedAt: Date.now(),
      isRemovedOnlyOnComplete: Boolean(options.removeOnComplete) && !options.removeOnFail,
    }
    await this.#keys.run(RECORD_REPLAY, ['replays'], [id, JSON.stringify(record), String(OPEN_MS)])
  }

  async #last(id: string): Promise<StoredReplay | undefined> {
    const [text = ''] = (await this.#keys.run(READ_REPLAYS, ['replays'], [id])) as string[]
    return parseReplay(text)
  }

  /** Returns replays whose jobs were completed. A replay that failed again is drained with its replay id. */
  async completed(limit: number): Promise<CompletedReplays> {
    const args = [this.#cursor, String(limit)]
    const reply = await this.#keys.run(READ_FINISHED, ['replays', 'completed', ''], args)
    const [cursor = '0', ...rows] = reply as readonly string[]
    this.#cursor = cursor
    const confirmations: ReplayConfirmation[] = []
    const records: string[] = []
    for (let i = 0; i < rows.length; i += 3) {
      const [id = '', text = '', completedAt = ''] = rows.slice(i, i + 3)
      const record = parseReplay(text)
      if (record === undefined || (completedAt === '' && !record.isRemovedOnlyOnComplete)) continue
      const at = completedAt === '' ? Date.now() : Number(completedAt)
      confirmations.push({ replayId: record.replayId, outcome: 'handled', at })
      records.push(id, text)
    }
    return {
      confirmations,
      end: async () => void (await this.#keys.run(CONFIRM_REPLAYS, ['replays'], records)),
    }
  }

  prune(): Promise<void> {
    return this.#keys.scan(PRUNE_REPLAYS, ['replays'], [String(OPEN_MS), String(ENDED_MS)])
  }
}

interface NewReplay {
  readonly replayId: string
  readonly failedAt: string
  readonly options: JobOptions
}

export interface CompletedReplays {
  readonly confirmations: readonly ReplayConfirmation[]
  /** Marks them as confirmed. */
  readonly end: () => Promise<void>
}

const retriedElsewhere = (id: string) =>
  new RedriveError(
    'REFUSED',
    `Another program has retried the job "${id}". Discard the dead letter, or wait for the result of the job.`,
  )
