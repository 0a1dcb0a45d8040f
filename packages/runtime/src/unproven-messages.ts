import type { Decision, Delivery } from '@redrive/core'

/** 1,000 messages: the oldest is what matters. */
const MAX_MESSAGES = 1_000
/** 5 min after its next run was due, another process has the message, or it is gone. */
const FORGET_MS = 300_000

interface Unproven {
  readonly since: number
  readonly retryAt: number
}

/** Messages that fail while nothing shows whether they or the dependency are the cause. */
export class UnprovenMessages {
  readonly #messages = new Map<string, Unproven>()

  /** Notes what was decided about a failed message. */
  note({ id }: Delivery, decision: Decision): void {
    this.#messages.delete(id)
    if (decision.kind !== 'retryAt' || decision.cycle.unproven.runs === 0) return
    const since = decision.cycle.firstFailedAt ?? decision.dueAt
    this.#messages.set(id, { since, retryAt: decision.dueAt })
    const [first] = this.#messages.keys()
    if (this.#messages.size > MAX_MESSAGES && first !== undefined) this.#messages.delete(first)
  }

  /** Forgets a message that passed. */
  passed(id: string): void {
    this.#messages.delete(id)
  }

  oldest(now: number): { readonly deliveryId: string; readonly since: number } | undefined {
    let oldest: { readonly deliveryId: string; readonly since: number } | undefined
    for (const [deliveryId, { since, retryAt }] of this.#messages) {
      if (now > retryAt + FORGET_MS) this.#messages.delete(deliveryId)
      else if (oldest === undefined || since < oldest.since) oldest = { deliveryId, since }
    }
    return oldest
  }
}
