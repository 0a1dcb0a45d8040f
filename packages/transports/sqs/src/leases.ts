import { type Clock, systemClock } from '@redrive/runtime'
import { type EntryResult, isNotOwned, MAX_ENTRIES } from './requests.ts'

/** A renewal of one message. */
export interface Renewal<T> {
  readonly one: T
  /** Its next lease, from now on. */
  readonly forMs: number
}

export interface LeasesOptions<T> {
  readonly leaseMs: number
  /** Renews up to ten leases. Returns the result of each; rejects when the request failed. */
  readonly renew: (
    some: readonly Renewal<T>[],
    timeoutMs: number,
  ) => Promise<readonly EntryResult[]>
  /** Called once when a lease has ended: another consumer may own the message. */
  readonly onEnded: (one: T) => void
  readonly onError: (error: unknown) => void
  readonly clock?: Clock
}

/** Two of three renewals may fail before a lease ends. */
const RENEWALS_PER_LEASE = 3
/** 12 h from the receipt, the limit of SQS for all leases of a delivery together. */
const LONGEST_MS = 43_200_000
const MS_PER_SECOND = 1_000

interface Term {
  readonly claimedAt: number
  /** The earliest time at which SQS can have ended the lease. */
  endsAt: number
  isRenewing: boolean
}

/**
 * The messages that this process owns. SQS may accept the receipt handle of a former owner, so ownership is checked
 * here: each lease ends at the earliest time at which SQS can have ended it, also while SQS does not respond.
 */
export class Leases<T> {
  readonly #options: LeasesOptions<T>
  readonly #clock: Clock
  readonly #intervalMs: number
  readonly #terms = new Map<T, Term>()
  #cancelRenewal: (() => void) | undefined
  /** The timer of the lease that ends first. */
  #check: { readonly at: number; readonly cancel: () => void } | undefined

  constructor(options: LeasesOptions<T>) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#intervalMs = options.leaseMs / RENEWALS_PER_LEASE
  }

  get size(): number {
    return this.#terms.size
  }

  /** Returns the messages in the order of their claims. */
  all(): readonly T[] {
    return [...this.#terms.keys()]
  }

  /** Adds a message. Pass the time before the request that claimed it. Returns false when its lease has ended already. */
  add(one: T, claimedAt: number): boolean {
    const endsAt = claimedAt + this.#options.leaseMs
    // The process was suspended, or the response took longer than the lease.
    if (endsAt <= this.#clock.now()) return false
    this.#terms.set(one, { claimedAt, endsAt, isRenewing: false })
    this.#checkAt(endsAt)
    if (this.#cancelRenewal === undefined) this.#renewLater()
    return true
  }

  /** Returns whether this process still owns it. */
  has(one: T): boolean {
    const term = this.#terms.get(one)
    if (term === undefined) return false
    if (term.endsAt > this.#clock.now()) return true
    this.end(one)
    return false
  }

  /** Removes a message that is settled. Returns false when this process no longer owned it. */
  delete(one: T): boolean {
    return this.#terms.delete(one)
  }

  /** Ends a lease before its time, and reports it. */
  end(one: T): void {
    if (this.#terms.delete(one)) this.#options.onEnded(one)
  }

  /** Ends the renewals and forgets all messages. */
  clear(): void {
    this.#cancelRenewal?.()
    this.#cancelRenewal = undefined
    this.#check?.cancel()
    this.#check = undefined
    this.#terms.clear()
  }

  // ---- ends -----------------------------------------------------------------------------------

  #checkAt(at: number): void {
    if (this.#check !== undefined && this.#check.at <= at) return
    this.#check?.cancel()
    const delayMs = Math.max(0, at - this.#clock.now())
    const cancel = this.#clock.after(delayMs, () => this.#endDue(), { isBackground: true })
    this.#check = { at, cancel }
  }

  #endDue(): void {
    this.#check = undefined
    const now = this.#clock.now()
    for (const [one, { endsAt }] of this.#terms) if (endsAt <= now) this.end(one)
    const ends = [...this.#terms.values()].map(({ endsAt }) => endsAt)
    if (ends.length > 0) this.#checkAt(Math.min(...ends))
  }

  // ---- renewals -------------------------------------------------------------------------------

  #renewLater(): void {
    this.#cancelRenewal = this.#clock.after(
      this.#intervalMs,
      () => {
        this.#cancelRenewal = undefined
        // A renewal without a response does not delay the next one.
        if (this.#terms.size > 0) this.#renewLater()
        this.#renewOld()
      },
      { isBackground: true },
    )
  }

  /** Renews the leases that are older than a half of the interval, so fast handlers cost no requests. */
  #renewOld(): void {
    const now = this.#clock.now()
    const old = [...this.#terms].flatMap(([one, { claimedAt, endsAt, isRenewing }]) => {
      const isYoung = endsAt - now > this.#options.leaseMs - this.#intervalMs / 2
      // SQS counts whole seconds, and rejects a lease that is longer than the rest.
      const rest = Math.floor((claimedAt + LONGEST_MS - now) / MS_PER_SECOND) * MS_PER_SECOND
      const forMs = Math.min(this.#options.leaseMs, rest)
      return isYoung || isRenewing || now + forMs <= endsAt ? [] : [{ one, forMs }]
    })
    for (let i = 0; i < old.length; i += MAX_ENTRIES)
      void this.#renew(old.slice(i, i + MAX_ENTRIES))
  }

  async #renew(some: readonly Renewal<T>[]): Promise<void> {
    const sentAt = this.#clock.now()
    const terms = some.map(({ one }) => this.#terms.get(one))
    for (const term of terms) if (term !== undefined) term.isRenewing = true
    try {
      const results = await this.#options.renew(some, this.#intervalMs)
      some.forEach(({ one, forMs }, index) => {
        const term = terms[index]
        if (isNotOwned(results[index])) this.end(one)
        else if (results[index] === undefined && term !== undefined) term.endsAt = sentAt + forMs
      })
    } catch (error) {
      // Repeated after a third of the lease. When none is confirmed, the lease ends, and that is reported.
      this.#options.onError(error)
    } finally {
      for (const term of terms) if (term !== undefined) term.isRenewing = false
    }
  }
}
