import { systemClock } from '@redrive/runtime'
import type { ReceivedMessage } from './delivery.ts'
import { MAX_ENTRIES } from './requests.ts'

export interface ReaderOptions {
  /** Receives at most this number of messages. */
  readonly receive: (most: number) => Promise<readonly ReceivedMessage[]>
  /** Returns the number of messages that may be in flight in addition. */
  readonly room: () => number
  /** Receives each message, with the time before its request. */
  readonly deliver: (message: ReceivedMessage, sentAt: number) => void
  /** Receives the result of each request. Undefined: SQS has responded. */
  readonly onResult: (error: unknown) => void
}

/** 1 s before the next request after an error: SQS throttles, or is unreachable. */
const PROBLEM_MS = 1_000
/** 4 requests for messages at the same time, while each returns as many as it may: one consumer reads thousands per second. */
const MAX_READERS = 4

/** Requests messages while there is room for them. */
export class Reader {
  readonly #options: ReaderOptions
  readonly #reading = new Set<Promise<void>>()
  /** Messages that requests in progress may still return. */
  #expected = 0
  #cancelPause: (() => void) | undefined
  #isStopped = false

  constructor(options: ReaderOptions) {
    this.#options = options
  }

  /** Starts a request, unless one is in progress or there is no room. */
  read(): void {
    if (this.#reading.size === 0 && this.#cancelPause === undefined) this.#readMore()
  }

  /** Resolves when the requests in progress have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#reading)
  }

  /** Starts no more requests. Those in progress continue. */
  stop(): void {
    this.#isStopped = true
    this.#cancelPause?.()
  }

  /** Returns false when there is no room. */
  #readMore(): boolean {
    const most = Math.min(MAX_ENTRIES, this.#options.room() - this.#expected)
    if (most <= 0 || this.#isStopped) return false
    const reading = this.#readSome(most).then((isFull) => {
      this.#reading.delete(reading)
      // More messages may wait than one request returns.
      const wanted = isFull ? Math.min(MAX_READERS, this.#reading.size + 2) : 0
      while (this.#reading.size < wanted && this.#readMore());
      this.read()
    })
    this.#reading.add(reading)
    return true
  }

  /** Returns whether the request returned as many messages as it may. */
  async #readSome(most: number): Promise<boolean> {
    const { receive, deliver, onResult } = this.#options
    const sentAt = systemClock.now()
    this.#expected += most
    try {
      const messages = await receive(most)
      this.#expected -= most
      onResult(undefined)
      for (const message of messages) deliver(message, sentAt)
      return messages.length === most
    } catch (error) {
      this.#expected -= most
      onResult(error)
      this.#readLater()
      return false
    }
  }

  #readLater(): void {
    if (this.#isStopped) return
    this.#cancelPause ??= systemClock.after(PROBLEM_MS, () => {
      this.#cancelPause = undefined
      this.read()
    })
  }
}
