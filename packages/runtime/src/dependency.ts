import type { BreakerState, OutageState } from '@redrive/core'
import { CLOSED, ISOLATED, NO_OUTAGE } from '@redrive/core/internal'

/**
 * The state of a service that handlers call, as observed by this process. Consumers that name the same
 * dependency share one breaker: the first consumer that finds it down protects the others.
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

  /** Pauses every consumer of this dependency until `restore`. */
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

/** Returns the dependency of that name in this process; creates it on first use. */
export function dependency(name: string): Dependency {
  const known = shared.get(name)
  if (known !== undefined) return known
  const made = new Dependency(name)
  shared.set(name, made)
  return made
}
