import { type BreakerState, CLOSED, ISOLATED, NO_OUTAGE, type OutageState } from '@redrive/core'

/**
 * What this process knows about something its handlers call. Consumers that name the same dependency
 * share one breaker: the first to notice that it is down spares the others.
 */
export class Dependency {
  readonly name: string
  #breaker: BreakerState = CLOSED
  #outage: OutageState = NO_OUTAGE
  readonly #listeners = new Set<() => void>()

  constructor(name: string) {
    this.name = name
  }

  get breaker(): BreakerState {
    return this.#breaker
  }
  get outage(): OutageState {
    return this.#outage
  }

  /** Stops every consumer of this dependency until `restore`. */
  isolate(): void {
    this.learn(ISOLATED, this.#outage)
  }

  /** Closes the breaker, whatever opened it. */
  restore(): void {
    this.learn(CLOSED, NO_OUTAGE)
  }

  learn(breaker: BreakerState, outage: OutageState): void {
    const isNews = breaker !== this.#breaker
    this.#breaker = breaker
    this.#outage = outage
    if (isNews) for (const listener of this.#listeners) listener()
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}

const shared = new Map<string, Dependency>()

/** The dependency of that name in this process; made on first use. */
export function dependency(name: string): Dependency {
  const known = shared.get(name)
  if (known !== undefined) return known
  const made = new Dependency(name)
  shared.set(name, made)
  return made
}
