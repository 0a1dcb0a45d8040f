import { isRedriveError, RedriveError } from '@redrive/core'
import type { Clock } from '../clock.ts'
import { publish } from '../events.ts'
import type { DeadLetterStore, StoredDeadLetter } from '../ports/dead-letter-store.ts'
import type { FailedResult, QueuedEvent, Undelivered } from './result.ts'

/** 3 tries: enough for a store that is busy for a short time. A store that is down is not waited for. */
const TRIES = 3
const WAIT_MS = 100
/** 5,000 concurrent saves, and 8 MiB of bodies: a store writes them in batches, and limits what it buffers. */
const MAX_SAVES = 5_000
const MAX_SAVES_BYTES = 8 * 2 ** 20
/** 256 MiB of events wait for the store: a store that hangs must not fill the memory. */
const MAX_WAITING_BYTES = 256 * 2 ** 20
/** 1 KiB for the objects of an event, in addition to its body. */
const EVENT_BYTES = 1_024
/** 1,000 job names are counted: names that contain an id must not fill the memory. */
const MAX_JOBS = 1_000
const OTHER_JOBS = '…'

interface Counts {
  stored: number
  dropped: number
  lost: number
}

interface Save {
  readonly deadLetter: StoredDeadLetter
  readonly bytes: number
  readonly onSaved: OnSaved
}

/** Receives why the dead letter was not saved; undefined when it was. */
type OnSaved = (failed: { readonly error: unknown } | undefined) => void

/**
 * Saves events that did not reach their sink, and counts the results. A burst waits in memory until the
 * store has room, because a store that is only slower than the burst must lose nothing.
 */
export class DeadLetterWriter {
  readonly #store: DeadLetterStore
  readonly #clock: Clock
  readonly #sinks = new Map<string, Counts>()
  readonly #jobs = new Map<string, Counts>()
  readonly #onIdle: (() => void)[] = []
  readonly #onCaughtUp: (() => void)[] = []
  /** Saves that wait for the store, from `#head` on. */
  #waiting: Save[] = []
  #head = 0
  #waitingBytes = 0
  #saving = 0
  #savingBytes = 0

  constructor(store: DeadLetterStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** Saves an event that did not reach its sink, and reports the result. */
  save(queuedEvent: QueuedEvent, why: Undelivered, sink: string): void {
    this.write(this.deadLetterOf(queuedEvent, why, sink), (failed) => {
      // An event that was stored before it was sent is still there, with its first reason.
      const isStored = failed === undefined || queuedEvent.stored !== undefined
      const stored = { kind: 'stored', reason: why.reason } as const
      this.recordResult(
        sink,
        queuedEvent,
        isStored ? stored : { kind: 'lost', error: failed.error },
      )
    })
  }

  deadLetterOf(
    { event, job, requested }: QueuedEvent,
    why: Undelivered,
    sink: string,
  ): StoredDeadLetter {
    const deadLetter = {
      id: `${event.id}/${sink}`,
      sink,
      event,
      job,
      savedAt: this.#clock.now(),
      ...why,
    }
    if (requested === undefined) return deadLetter
    const { cycleNumber, ...replay } = requested
    return { ...deadLetter, ...replay, cycle: { ...why.cycle, number: cycleNumber } }
  }

  /** Saves a dead letter as soon as the store has room. */
  write(deadLetter: StoredDeadLetter, onSaved: OnSaved): void {
    const bytes = deadLetter.event.bytes.length + EVENT_BYTES
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      const error = new RedriveError(
        'DLQ_FULL',
        `The event cannot be stored: events of ${MAX_WAITING_BYTES / 2 ** 20} MiB already wait for the store, which is the maximum. The store is too slow. Check its disk or server.`,
      )
      return onSaved({ error })
    }
    this.#waiting.push({ deadLetter, bytes, onSaved })
    this.#waitingBytes += bytes
    this.#startSaves()
  }

  /** True while events wait for the store because it is slower than the failures. */
  get isBehind(): boolean {
    return this.#head < this.#waiting.length
  }

  #startSaves(): void {
    while (this.isBehind && this.#saving < MAX_SAVES && this.#savingBytes < MAX_SAVES_BYTES) {
      const save = this.#waiting[this.#head++] as Save
      this.#waitingBytes -= save.bytes
      void this.#save(save)
    }
    // Started saves are removed together, not one by one.
    if (this.#head * 2 <= this.#waiting.length) return
    this.#waiting = this.#waiting.slice(this.#head)
    this.#head = 0
  }

  async #save({ deadLetter, bytes, onSaved }: Save): Promise<void> {
    this.#saving += 1
    this.#savingBytes += bytes
    const failed = await this.#saveWithRetries(deadLetter)
    this.#saving -= 1
    this.#savingBytes -= bytes
    onSaved(failed)
    this.#startSaves()
    if (!this.isBehind) for (const resolve of this.#onCaughtUp.splice(0)) resolve()
    if (this.#saving === 0) for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  async #saveWithRetries(deadLetter: StoredDeadLetter): Promise<Parameters<OnSaved>[0]> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#store.save(deadLetter)
        return undefined
      } catch (error) {
        const isFinal = isRedriveError(error, 'DLQ_CLOSED') || isRedriveError(error, 'DLQ_FULL')
        if (isFinal || tries === TRIES) return { error }
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

  /** Resolves when the store has accepted the events that waited for it. */
  whenCaughtUp(): Promise<void> {
    if (!this.isBehind) return Promise.resolve()
    return new Promise((resolve) => this.#onCaughtUp.push(resolve))
  }

  /** Resolves when no save is in flight. */
  whenIdle(): Promise<void> {
    if (this.#saving === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }
}
