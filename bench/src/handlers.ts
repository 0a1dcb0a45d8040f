// Handlers that only count their calls, and return or throw.

export type Handler = () => Promise<void>

/**
 * A new error for each call, as in real code. The cost of reading its stack belongs to the code
 * that reads it.
 */
export class Declined extends Error {}

/** Counts calls of the handler; callers can wait for a number. */
export class Tally {
  calls = 0
  #expected = Number.POSITIVE_INFINITY
  #onReached: () => void = () => {}

  expect(calls: number): Promise<void> {
    this.calls = 0
    this.#expected = calls
    return new Promise((resolve) => {
      this.#onReached = resolve
    })
  }

  count(): void {
    this.calls += 1
    if (this.calls === this.#expected) this.#onReached()
  }
}

/**
 * Creates a separate function for each candidate. A shared one would be compiled for all of them
 * together.
 */
export function succeeding(tally: Tally): Handler {
  return async () => {
    tally.count()
  }
}

export function failing(tally: Tally): Handler {
  return async () => {
    tally.count()
    throw new Declined('declined')
  }
}
