import type { AlertChannel } from '../channel.ts'
import type { AlertNotice } from '../notice.ts'

/** 10 s for a delivery, including the DNS lookup. */
const SEND_MS = 10_000
/** 1 min: a channel that does not accept is not called more often. */
const RETRY_MS = 60_000
const HOUR_MS = 3_600_000

export interface OutboxOptions {
  readonly channel: AlertChannel
  /** Maximum number of messages with new alerts in an hour. */
  readonly perHour: number
  readonly onError: (error: unknown) => void
}

/** The alerts that wait for one channel. Their number is at most twice that of active alerts. */
export class Outbox {
  readonly #options: OutboxOptions
  /** Begins that the channel has not accepted, by id. */
  readonly #begins = new Map<string, AlertNotice>()
  readonly #ends = new Map<string, AlertNotice>()
  #retryAt = 0
  #hour = { startedAt: Number.NEGATIVE_INFINITY, messages: 0 }
  #sending: Promise<void> | undefined

  constructor(options: OutboxOptions) {
    this.#options = options
  }

  /** Adds a begin or an end. An alert whose begin was not sent needs no end. */
  add(notice: AlertNotice): void {
    if (notice.status === 'firing') this.#begins.set(notice.id, notice)
    else if (!this.#begins.delete(notice.id)) this.#ends.set(notice.id, notice)
  }

  /** Sends what waits, one message after the other. Does nothing while a message is being sent. */
  send(now: number): Promise<void> {
    if (now < this.#retryAt) return Promise.resolve()
    this.#sending ??= this.#sendAll(now).finally(() => {
      this.#sending = undefined
    })
    return this.#sending
  }

  async #sendAll(now: number): Promise<void> {
    for (let batch = this.#next(now); batch.length > 0; batch = this.#next(now)) {
      const { channel, onError } = this.#options
      try {
        await channel.send(batch, { signal: AbortSignal.timeout(SEND_MS) })
      } catch (error) {
        this.#retryAt = now + RETRY_MS
        onError(error)
        return
      }
      if (batch.some(({ status }) => status === 'firing')) this.#hour.messages++
      this.#accepted(batch)
    }
  }

  /** Returns the next message: ends first, because they are not limited. */
  #next(now: number): readonly AlertNotice[] {
    const { channel, perHour } = this.#options
    if (now - this.#hour.startedAt >= HOUR_MS) this.#hour = { startedAt: now, messages: 0 }
    const begins = this.#hour.messages < perHour ? [...this.#begins.values()] : []
    return [...this.#ends.values(), ...begins].slice(0, channel.batch)
  }

  /** An alert that ended while its begin was being sent is ended next. */
  #accepted(batch: readonly AlertNotice[]): void {
    for (const { id, status } of batch) {
      if (status === 'resolved') this.#ends.delete(id)
      else this.#begins.delete(id)
    }
  }
}
