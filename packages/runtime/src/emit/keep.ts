import { isRedriveError, RedriveError } from '@redrive/core'
import type { Clock } from '../clock.ts'
import { publish } from '../events.ts'
import type { DeadLetterStore, StoredDeadLetter } from '../ports.ts'
import type { FailedResult, Parcel } from './result.ts'

/** 3 tries: a store that is busy for a moment is asked again, one that is gone is not waited for. */
const TRIES = 3
const WAIT_MS = 100
/** 10,000 saves at once: a store that is slower than what fails must not fill the memory. */
const MOST_SAVES = 10_000
/** 1,000 names of jobs are counted; a name with an id in it must not fill the memory. */
const MOST_JOBS = 1_000
const OTHER_JOBS = '…'

interface Counts {
  stored: number
  dropped: number
  lost: number
}

/** Keeps what does not reach its sink, and counts how it ended. */
export class Keeping {
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

  save(parcel: Parcel, deadLetter: StoredDeadLetter): void {
    if (this.#saving >= MOST_SAVES) {
      const error = new RedriveError(
        'DLQ_FULL',
        `${MOST_SAVES} dead letters wait to be stored: the store is too slow for what fails.`,
      )
      return this.ended(deadLetter.sink, parcel, { kind: 'lost', error })
    }
    this.#saving += 1
    void this.#insist(deadLetter).then((result) => {
      this.#saving -= 1
      this.ended(deadLetter.sink, parcel, result)
      if (this.#saving === 0) for (const resolve of this.#onIdle.splice(0)) resolve()
    })
  }

  async #insist(deadLetter: StoredDeadLetter): Promise<FailedResult> {
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

  /** It did not arrive: counted, told of, and told to whoever waits. */
  ended(sink: string, parcel: Parcel, result: FailedResult): void {
    const { event, job } = parcel
    this.#count(this.#sinks, sink, result)
    if (job !== undefined) {
      const isKnown = this.#jobs.has(job) || this.#jobs.size < MOST_JOBS
      this.#count(this.#jobs, isKnown ? job : OTHER_JOBS, result)
    }
    const at = this.#clock.now()
    publish({ type: 'emission_failed', at, source: sink, event, result, job })
    parcel.onEnd(result)
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

  /** Resolves when nothing is being saved. */
  whenIdle(): Promise<void> {
    if (this.#saving === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }
}
