import type { Decision, FailureCycle } from '@redrive/core'

/** 5 min after its next run was due, another process has the message, or it is gone. */
const FORGET_MS = 300_000

/** Remembers the last failure that was not the fault of its message, because many messages failed together. */
export class FailingTogether {
  #failedAt = 0
  #endsAt = 0

  /** Notes what was decided about a failed message. */
  note(before: FailureCycle, decision: Decision, now: number): void {
    if (decision.kind !== 'retryAt') return
    const { attempts, unproven } = decision.cycle
    if (attempts > before.attempts || unproven.runs > before.unproven.runs) return
    this.#failedAt = now
    this.#endsAt = decision.dueAt + FORGET_MS
  }

  /** Returns true when such a message failed and no message passed after it. */
  isOn(handledAt: number, now: number): boolean {
    return handledAt < this.#failedAt && now <= this.#endsAt
  }
}
