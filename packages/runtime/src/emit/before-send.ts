import type { Clock } from '../clock.ts'
import { publish } from '../events.ts'
import type { DeadLetterStore } from '../ports/dead-letter-store.ts'
import type { DeadLetterWriter } from './dead-letter-writer.ts'
import { BEFORE_SEND, type QueuedEvent, type SinkResult } from './result.ts'
import type { SinkQueue } from './sink-queue.ts'

/** 100 concurrent claims for each sink: enough for a batch, and a store lists its claims quickly. */
const MAX_CLAIMS = 100

const STORED: SinkResult = Object.freeze({ kind: 'stored', reason: 'before_send' })

export interface BeforeSendOptions {
  readonly store: DeadLetterStore
  readonly writer: DeadLetterWriter
  readonly clock: Clock
  readonly maxWaitMs: number
}

/**
 * Stores the events of one sink before it sends them. The send is a replay of the store: its claim prevents that
 * another process or an automatic replay sends the event too, and it deletes the event when the sink has it.
 */
export class BeforeSend {
  readonly #options: BeforeSendOptions
  readonly #sinkQueue: SinkQueue
  /** Stored events that wait for a claim. Their bodies are only in the store. */
  readonly #waiting: Pick<QueuedEvent, 'event' | 'job'>[] = []
  #claims = 0

  constructor(options: BeforeSendOptions, sinkQueue: SinkQueue) {
    this.#options = options
    this.#sinkQueue = sinkQueue
  }

  /** Stores an event that is in flight, reports it as stored, and sends it. */
  start(queuedEvent: QueuedEvent): void {
    const { writer, clock, maxWaitMs } = this.#options
    const { event, job, onEnd } = queuedEvent
    const deadLetter = writer.deadLetterOf(queuedEvent, BEFORE_SEND, this.#sinkQueue.name)
    writer.write(deadLetter, (failed) => {
      if (failed !== undefined) {
        // The sink may accept what the store did not.
        const deadline = clock.now() + maxWaitMs
        return this.#sinkQueue.send({ event, job, stored: undefined, deadline, onEnd })
      }
      onEnd(STORED)
      this.#waiting.push({ event: { ...event, bytes: NO_BYTES }, job })
      this.#claimNext()
    })
  }

  #claimNext(): void {
    if (this.#sinkQueue.isStopped) return this.stop()
    while (this.#claims < MAX_CLAIMS) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      this.#claims += 1
      void this.#sendStored(next).finally(() => {
        this.#claims -= 1
        this.#claimNext()
      })
    }
  }

  /** Leaves the events that wait for a claim in the store. */
  stop(): void {
    for (const one of this.#waiting.splice(0)) this.#leave(one)
  }

  async #sendStored(stored: Pick<QueuedEvent, 'event' | 'job'>): Promise<void> {
    const { store, clock, maxWaitMs } = this.#options
    const { name } = this.#sinkQueue
    let isSent = false
    try {
      const isOurs = await store.replay(`${stored.event.id}/${name}`, ({ event, job }) => {
        isSent = true
        const { promise, resolve, reject } = Promise.withResolvers<void>()
        const onEnd = ({ kind }: SinkResult) =>
          kind === 'delivered' || kind === 'dropped' ? resolve() : reject(NOT_DELIVERED)
        const deadline = clock.now() + maxWaitMs
        this.#sinkQueue.send({ event, job, stored: 'pending', deadline, onEnd })
        return promise
      })
      // Another process or an automatic replay sends it.
      if (!isOurs && !isSent) this.#sinkQueue.leave()
    } catch (error) {
      if (error === NOT_DELIVERED) return
      // The store failed. The event is in it, or the sink has it and gets it once more.
      publish({
        type: 'user_code_failed',
        at: clock.now(),
        source: 'store',
        where: 'before_send',
        error,
      })
      if (!isSent) this.#leave(stored)
    }
  }

  #leave({ event, job }: Pick<QueuedEvent, 'event' | 'job'>): void {
    const { writer } = this.#options
    const ended = {
      event,
      job,
      stored: 'pending',
      deadline: 0,
      onEnd: () => undefined,
    } as const
    writer.recordResult(this.#sinkQueue.name, ended, { kind: 'stored', reason: 'before_send' })
    this.#sinkQueue.leave()
  }
}

const NO_BYTES = new Uint8Array()
const NOT_DELIVERED = new Error('the sink did not accept the event')
