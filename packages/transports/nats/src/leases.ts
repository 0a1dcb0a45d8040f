export interface LeaseOptions<T> {
  readonly leaseMs: number
  /** Renews one lease at the server; rejects when the server does not confirm it. */
  readonly renew: (one: T, timeoutMs: number) => Promise<unknown>
  /** Called once when a lease has ended: the server delivers the message again. */
  readonly onEnded: (one: T) => void
}

/** 6 checks per lease: a renewal that fails is repeated three times before the lease ends. */
const CHECKS = 6

interface Term {
  endsAt: number
  isRenewing: boolean
}

/**
 * The messages that this process owns. The server accepts the acknowledgement of a former owner, so ownership is checked
 * here: each lease ends at the earliest time at which the server can have ended it.
 */
export class Leases<T> {
  readonly #options: LeaseOptions<T>
  readonly #terms = new Map<T, Term>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: LeaseOptions<T>) {
    this.#options = options
  }

  get size(): number {
    return this.#terms.size
  }

  all(): readonly T[] {
    return [...this.#terms.keys()]
  }

  /** Adds a message that the server has sent at `sentAfter` or later. Returns false when its lease has ended already. */
  add(one: T, sentAfter: number): boolean {
    const endsAt = sentAfter + this.#options.leaseMs
    // The process was suspended, and the message waited in the socket.
    if (endsAt <= performance.now()) return false
    this.#terms.set(one, { endsAt, isRenewing: false })
    this.#timer ??= setInterval(() => this.#check(), this.#options.leaseMs / CHECKS).unref()
    return true
  }

  /** Returns whether this process still owns it. */
  has(one: T): boolean {
    const term = this.#terms.get(one)
    if (term === undefined) return false
    if (term.endsAt > performance.now()) return true
    this.end(one)
    return false
  }

  /** Removes it. Returns false when this process no longer owned it. */
  remove(one: T): boolean {
    return this.has(one) && this.#terms.delete(one)
  }

  /** Forgets all; nothing is renewed any more. */
  clear(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#terms.clear()
  }

  /** Ends a lease that the server has ended. */
  end(one: T): void {
    if (this.#terms.delete(one)) this.#options.onEnded(one)
  }

  #check(): void {
    const now = performance.now()
    const { leaseMs } = this.#options
    for (const [one, term] of this.#terms) {
      if (term.endsAt <= now) this.end(one)
      else if (term.endsAt - now < (leaseMs * 2) / 3 && !term.isRenewing)
        void this.#renew(one, term)
    }
  }

  async #renew(one: T, term: Term): Promise<void> {
    const { leaseMs, renew } = this.#options
    const sentAt = performance.now()
    term.isRenewing = true
    try {
      await renew(one, leaseMs / CHECKS)
      term.endsAt = sentAt + leaseMs
    } catch {
      // Repeated at the next check. When none is confirmed, the lease ends, and that is reported.
    } finally {
      term.isRenewing = false
    }
  }
}
