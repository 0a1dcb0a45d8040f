import type { JetStreamManager } from '@nats-io/jetstream'

/** 1 s: the clock of a server that is corrected makes a retry early by no more than it is corrected in this time. */
const FRESH_MS = 1_000

/** The clock of the server that stores retries. Its time decides when a retry is due, and this process may have another one. */
export class ServerClock {
  readonly #manager: JetStreamManager
  readonly #stream: string
  #aheadMs: number | undefined
  #readAt = 0
  #reading: Promise<number> | undefined

  constructor(manager: JetStreamManager, stream: string) {
    this.#manager = manager
    this.#stream = stream
  }

  /** Returns the latest time, epoch ms, that the clock of the server can show now. */
  async latest(): Promise<number> {
    const isFresh = this.#aheadMs !== undefined && performance.now() - this.#readAt < FRESH_MS
    if (!isFresh) this.#reading ??= this.#read().finally(() => (this.#reading = undefined))
    const aheadMs = (await this.#reading) ?? this.#aheadMs ?? 0
    return performance.now() + aheadMs
  }

  async #read(): Promise<number> {
    const sentAt = performance.now()
    const { ts } = await this.#manager.streams.info(this.#stream)
    // The server read its clock after the request was sent: it is ahead by no more than this. 1 ms: the time is rounded down.
    this.#aheadMs = Date.parse(String(ts)) + 1 - sentAt
    this.#readAt = sentAt
    return this.#aheadMs
  }
}
