// Handlers that do nothing but count themselves, and return or throw.

export type Handler = () => Promise<void>

/** Thrown anew each time, as in real code: what it costs to read its stack belongs to who reads it. */
export class Declined extends Error {}

/** Calls of the handler, awaited by number. */
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

/** A function of its own for each candidate: a shared one would be compiled for all of them together. */
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
