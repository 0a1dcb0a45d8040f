import type { BreakerState, Failure, OutageState } from '@redrive/core'
import { CLOSED, ISOLATED, NO_OUTAGE, readOptions } from '@redrive/core/internal'
import { visibleName } from './checks.ts'
import { addFailure, type DependencyCounts, NO_COUNTS } from './dependency-counts.ts'
import { type DependencyUser, settingsDifferences } from './dependency-settings.ts'

/**
 * The state of a service that handlers call, as observed by this process. Consumers that name the same
 * dependency share one breaker: the first consumer that finds it down protects the others.
 */
export class Dependency {
  readonly name: string
  #breaker: BreakerState = CLOSED
  #outage: OutageState = NO_OUTAGE
  #probesInFlight = 0
  #counts: DependencyCounts = NO_COUNTS
  readonly #listeners = new Set<() => void>()
  readonly #users = new Set<DependencyUser>()

  constructor(name: string) {
    this.name = checkedName(name)
  }

  get breaker(): BreakerState {
    return this.#breaker
  }
  get outage(): OutageState {
    return this.#outage
  }
  /** What this process has observed since it started. */
  get counts(): DependencyCounts {
    return this.#counts
  }
  /**
   * Number of probes in flight, of all consumers.
   * @internal
   */
  get probesInFlight(): number {
    return this.#probesInFlight
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
    if (breaker.phase !== this.#breaker.phase) this.#add('transitions', 1)
    this.#breaker = breaker
    this.#outage = outage
    if (isNews) this.#notify()
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** @internal */
  countSuccesses(count: number): void {
    this.#add('calls', count)
  }

  /** @internal */
  countFailure(failure: Failure, at: number): void {
    this.#counts = addFailure(this.#counts, failure, at)
  }

  /** @internal */
  countRejection(): void {
    this.#add('rejections', 1)
  }

  #add(name: 'calls' | 'rejections' | 'transitions', count: number): void {
    this.#counts = { ...this.#counts, [name]: this.#counts[name] + count }
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) if (this.#listeners.has(listener)) listener()
  }

  /**
   * Returns why this consumer cannot share the dependency; undefined when it can.
   * @internal
   */
  conflictWith(user: DependencyUser): string | undefined {
    for (const other of this.#users) {
      const found = settingsDifferences(other, user)
      if (found.length === 0) continue
      return `"${this.name}" is shared with the consumer of "${other.source}", which has other settings: ${found.join(', ')}; use the same settings in all consumers of a dependency, or another dependency`
    }
    return undefined
  }

  /**
   * Adds a consumer until the returned function is called.
   * @internal
   */
  join(user: DependencyUser): () => void {
    this.#users.add(user)
    return () => void this.#users.delete(user)
  }

  /**
   * Counts a probe until the returned function is called. Then other consumers may send theirs.
   * @internal
   */
  beginProbe(): () => void {
    let isInFlight = true
    this.#probesInFlight += 1
    this.#rotate()
    return () => {
      if (!isInFlight) return
      isInFlight = false
      this.#probesInFlight -= 1
      if (this.#breaker.phase === 'open') this.#notify()
    }
  }

  /** Moves the first listener to the end: the first consumer with a message probes, so each is first in turn. */
  #rotate(): void {
    const [first] = this.#listeners
    if (first === undefined) return
    this.#listeners.delete(first)
    this.#listeners.add(first)
  }
}

const NAME = visibleName("a name such as 'payments-api'")

function checkedName(name: string): string {
  return readOptions('dependency()', { name }, (options) => options.required('name', NAME))
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
