import { isRedriveError, RedriveError } from '@redrive/core'
import type { Clock } from '../clock.ts'
import { publish } from '../events.ts'
import type { DeadLetterStore, StoredDeadLetter } from '../ports/dead-letter-store.ts'
import type { FailedResult, QueuedEvent } from './result.ts'

/** 3 tries: enough for a store that is busy for a short time. A store that is down is not waited for. */
const TRIES = 3
const WAIT_MS = 100
/** 10,000 concurrent saves: a slow store must not fill the memory. */
const MAX_SAVES = 10_000
/** 1,000 job names are counted: names that contain an id must not fill the memory. */
const MAX_JOBS = 1_000
const OTHER_JOBS = '…'

interface Counts {
  stored: number
  dropped: number
  lost: number
}

/** Saves events that did not reach their sink, and counts the results. */
export class DeadLetterWriter {
  readonly #store: DeadLetterStore
  readonly #clock: Clock
  readonly #sinks = new Map<string, Counts>()
  readonly #jobs = new Map<string, Counts>()
  readonly #onIdle: (() => void)[] = []
  #saving = 0

  constructor(store: DeadLetterStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  save(queuedEvent: QueuedEvent, deadLetter: StoredDeadLetter): void {
    if (this.#saving >= MAX_SAVES) {
      const error = new RedriveError(
        'DLQ_FULL',
        `The event cannot be stored: ${MAX_SAVES} dead letters already wait for the store, which is the maximum. The store is too slow. Check its disk or server.`,
      )
      return this.recordResult(deadLetter.sink, queuedEvent, { kind: 'lost', error })
    }
    this.#saving += 1
    void this.#saveWithRetries(deadLetter).then((result) => {
      this.#saving -= 1
      this.recordResult(deadLetter.sink, queuedEvent, result)
      if (this.#saving === 0) for (const resolve of this.#onIdle.splice(0)) resolve()
    })
  }

  async #saveWithRetries(deadLetter: StoredDeadLetter): Promise<FailedResult> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#store.save(deadLetter)
        return { kind: 'stored', reason: deadLetter.reason }
      } catch (error) {
        const isFinal = isRedriveError(error, 'DLQ_CLOSED') || isRedriveError(error, 'DLQ_FULL')
        if (isFinal || tries === TRIES) return { kind: 'lost', error }
        await new Promise<void>((resolve) => {
          this.#clock.after(WAIT_MS * tries, resolve)
        })
      }
    }
  }

  /** Counts and publishes the failed result, and reports it to the caller of `emit`. */
  recordResult(sink: string, queuedEvent: QueuedEvent, result: FailedResult): void {
    const { event, job } = queuedEvent
    this.#count(this.#sinks, sink, result)
    if (job !== undefined) {
      const isKnown = this.#jobs.has(job) || this.#jobs.size < MAX_JOBS
      this.#count(this.#jobs, isKnown ? job : OTHER_JOBS, result)
    }
    const at = this.#clock.now()
    publish({ type: 'emission_failed', at, source: sink, event, result, job })
    queuedEvent.onEnd(result)
  }

  #count(counts: Map<string, Counts>, name: string, { kind }: FailedResult): void {
    const known = counts.get(name) ?? { stored: 0, dropped: 0, lost: 0 }
    known[kind] += 1
    counts.set(name, known)
  }

  countsOf(sink: string): Readonly<Counts> {
    return this.#sinks.get(sink) ?? { stored: 0, dropped: 0, lost: 0 }
  }

  jobs(): Readonly<Record<string, Readonly<Counts>>> {
    return Object.fromEntries([...this.#jobs].map(([job, counts]) => [job, { ...counts }]))
  }

  /** Resolves when no save is in flight. */
  whenIdle(): Promise<void> {
    if (this.#saving === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }
}
