import type { AlertChannel } from '../channel.ts'
import { deliveryFailureOf, deliverySignal, REJECTIONS_MAX } from '../delivery-failure.ts'
import type { AlertNotice } from '../notice.ts'

/** 1 min after a failure: a service that is down is not called more often. */
const RETRY_MS = 60_000
const HOUR_MS = 3_600_000

export interface OutboxOptions {
  readonly channel: AlertChannel
  /** Maximum number of messages with new alerts in an hour. Critical alerts are not limited. */
  readonly perHour: number
  readonly onError: (error: unknown) => void
}

/** A begin or an end that the channel has not accepted. */
interface Waiting {
  readonly notice: AlertNotice
  readonly rejections: number
  /** Time of the next attempt, epoch ms. */
  readonly retryAt: number
  /** Whether the channel rejected a message that contained it. */
  readonly isAlone: boolean
  /** Whether the channel may have accepted it. */
  readonly isUncertain: boolean
}

/** The alerts that wait for one channel. Their number is at most twice that of active alerts. */
export class Outbox {
  readonly #options: OutboxOptions
  /** Begins by id. */
  readonly #begins = new Map<string, Waiting>()
  /** Ends by id. */
  readonly #ends = new Map<string, Waiting>()
  /** Ids of active alerts whose begin the channel rejected. They need no end. */
  readonly #givenUp = new Set<string>()
  #inFlight: readonly Waiting[] = []
  #retryAt = 0
  #hour = { startedAt: Number.NEGATIVE_INFINITY, messages: 0 }
  #sending: Promise<void> | undefined

  constructor(options: OutboxOptions) {
    this.#options = options
  }

  /** Adds a begin or an end. An alert whose begin was certainly not accepted needs no end. */
  add(notice: AlertNotice): void {
    const { id, status } = notice
    const waiting = { notice, rejections: 0, retryAt: 0, isAlone: false, isUncertain: false }
    if (status === 'firing') return void this.#begins.set(id, waiting)
    if (this.#givenUp.delete(id)) return
    const begin = this.#begins.get(id)
    const isInFlight = begin !== undefined && this.#inFlight.includes(begin)
    if (begin === undefined || begin.isUncertain || isInFlight) this.#ends.set(id, waiting)
    if (!isInFlight) this.#begins.delete(id)
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
      const { channel } = this.#options
      this.#inFlight = batch
      try {
        const notices = batch.map(({ notice }) => notice)
        await channel.send(notices, { signal: deliverySignal(channel) })
        this.#countMessage(batch)
        for (const one of batch) this.#remove(one)
      } catch (error) {
        if (!this.#failed(batch, error, now)) return
      } finally {
        this.#inFlight = []
      }
    }
  }

  /** Returns the next message: first ends and critical alerts, which are not limited. */
  #next(now: number): readonly Waiting[] {
    const { channel, perHour } = this.#options
    if (now - this.#hour.startedAt >= HOUR_MS) this.#hour = { startedAt: now, messages: 0 }
    const begins = [...this.#begins.values()]
    const limited = this.#hour.messages < perHour ? begins.filter(isLimited) : []
    const unlimited = begins.filter((one) => !isLimited(one))
    const all = [...this.#ends.values(), ...unlimited, ...limited]
    const due = all.filter(({ retryAt }) => retryAt <= now)
    const alone = due.find(({ isAlone }) => isAlone)
    return alone === undefined ? due.slice(0, channel.batch) : [alone]
  }

  /** Counts a message that the channel accepted, or may have accepted. */
  #countMessage(batch: readonly Waiting[]): void {
    if (batch.some(isLimited)) this.#hour.messages++
  }

  /** Plans the next attempt. Returns whether other messages can be sent now. */
  #failed(batch: readonly Waiting[], error: unknown, now: number): boolean {
    const failure = deliveryFailureOf(error)
    const [first] = batch
    if (failure === 'rejected' && first !== undefined) {
      if (batch.length === 1) this.#rejected(first, error, now)
      else for (const one of batch) this.#replace(one, { isAlone: true })
      return true
    }
    if (failure === 'unknown') this.#countMessage(batch)
    for (const one of batch) this.#replace(one, failure === 'unknown' ? { isUncertain: true } : {})
    this.#retryAt = now + RETRY_MS
    this.#options.onError(error)
    return false
  }

  #rejected(one: Waiting, error: unknown, now: number): void {
    const { onError } = this.#options
    const { notice, rejections } = one
    if (rejections + 1 < REJECTIONS_MAX) {
      this.#replace(one, { rejections: rejections + 1, retryAt: now + RETRY_MS })
      return onError(error)
    }
    this.#remove(one)
    // An end that was added while the begin was sent is not sent either.
    const needsEnd = notice.status === 'firing' && !this.#ends.delete(notice.id)
    if (needsEnd) this.#givenUp.add(notice.id)
    const what = `${notice.kind} of ${notice.source}`
    onError(new Error(`gave up ${what}, rejected ${REJECTIONS_MAX} times: ${String(error)}`))
  }

  /** Keeps a begin or an end for the next attempt. A begin that ended while it was sent is not sent again. */
  #replace(one: Waiting, change: Partial<Waiting>): void {
    const { id, status } = one.notice
    const next = { ...one, ...change }
    if (status === 'resolved') return void this.#ends.set(id, next)
    if (!this.#ends.has(id)) return void this.#begins.set(id, next)
    this.#begins.delete(id)
    if (!next.isUncertain) this.#ends.delete(id)
  }

  #remove({ notice: { id, status } }: Waiting): void {
    if (status === 'resolved') this.#ends.delete(id)
    else this.#begins.delete(id)
  }
}

const isLimited = ({ notice: { status, severity } }: Waiting) =>
  status === 'firing' && severity !== 'critical'
