import type { Decision, FailureCycle } from '@redrive/core'

/** 5 min after its next run was due, another process has the message, or it is gone. */
const FORGET_MS = 300_000

/** 1 s: the longest tick. The time of a success is rounded down to a tick. */
const SUCCESS_PRECISION_MS = 1_000

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

  /** Returns true when such a message failed and no message passed after it, or in the second before it. */
  isOn(handledAt: number, now: number): boolean {
    return handledAt + SUCCESS_PRECISION_MS <= this.#failedAt && now <= this.#endsAt
  }
}
