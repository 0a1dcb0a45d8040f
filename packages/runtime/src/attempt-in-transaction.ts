import type { FailureRecord } from '@redrive/core'
import type { Attempt, AttemptContext } from './attempt.ts'

/**
 * The context of a handler with an inbox. Each call of the handler has its own: an inbox that calls it again in another
 * transaction does not change the transaction of code that still runs from the call before.
 */
export class AttemptInTransaction implements AttemptContext<unknown> {
  readonly #attempt: Attempt
  readonly tx: unknown

  constructor(attempt: Attempt, tx: unknown) {
    this.#attempt = attempt
    this.tx = tx
  }

  get signal(): AbortSignal {
    return this.#attempt.signal
  }
  get attempt(): number {
    return this.#attempt.attempt
  }
  get runs(): number {
    return this.#attempt.runs
  }
  get cycle(): number {
    return this.#attempt.cycle
  }
  get history(): readonly FailureRecord[] {
    return this.#attempt.history
  }
  get replayId(): string | undefined {
    return this.#attempt.replayId
  }
  get skip(): () => void {
    return this.#attempt.skip
  }
}
