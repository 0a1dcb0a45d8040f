import { BROWN_OUT_SHARE, type OutageKind } from './dependency.ts'

export interface ShortestDrainOptions {
  readonly kind: OutageKind
  readonly outageFrom: number
  readonly outageUntil: number
  /** Time that the dependency needs for one message when it is healthy. */
  readonly serviceMs: number
  /** The source is drained when it has at most this many messages. */
  readonly drainedDepth: number
}

/**
 * Returns the time that the backlog of the outage needs on average: it is served with the spare capacity. At a
 * few messages a second, the real arrivals of a run differ from the average by a third.
 */
export function expectedDrainMs({
  kind,
  outageMs,
  arrivalsPerSecond,
  capacityPerSecond,
}: {
  readonly kind: OutageKind
  readonly outageMs: number
  readonly arrivalsPerSecond: number
  readonly capacityPerSecond: number
}): number {
  const servedPerSecond = kind === 'refuse' ? 0 : capacityPerSecond * BROWN_OUT_SHARE
  const backlog = Math.max(0, arrivalsPerSecond - servedPerSecond) * outageMs
  return backlog / (capacityPerSecond - arrivalsPerSecond)
}

/**
 * The shortest drain of the arrivals of one run. It passes the same arrivals to a dependency that is never
 * idle while a message waits, without attempts that fail.
 */
export class ShortestDrain {
  readonly #options: ShortestDrainOptions
  /** When each message would be handled. */
  readonly #handledAt: number[] = []
  #drainedAt: number | undefined

  constructor(options: ShortestDrainOptions) {
    this.#options = options
  }

  /** Adds the next arrival. */
  arrive(at: number): void {
    if (this.#drainedAt !== undefined) return
    const reachedAt = this.#reachedAt()
    if (at >= this.#options.outageUntil && reachedAt <= at) this.#drainedAt = reachedAt
    else this.#handledAt.push(this.#handled(Math.max(at, this.#handledAt.at(-1) ?? 0)))
  }

  /** Returns the time from the end of the outage until the source is drained. */
  get ms(): number {
    return (this.#drainedAt ?? this.#reachedAt()) - this.#options.outageUntil
  }

  /** Returns when the messages so far are few enough, not before the end of the outage. */
  #reachedAt(): number {
    const { outageUntil, drainedDepth } = this.#options
    return Math.max(outageUntil, this.#handledAt.at(-1 - drainedDepth) ?? 0)
  }

  #handled(beginsAt: number): number {
    const { kind, outageFrom, outageUntil, serviceMs } = this.#options
    if (beginsAt < outageFrom || beginsAt >= outageUntil) return beginsAt + serviceMs
    const share = kind === 'refuse' ? 0 : BROWN_OUT_SHARE
    const doneMs = (outageUntil - beginsAt) * share
    return doneMs >= serviceMs ? beginsAt + serviceMs / share : outageUntil + serviceMs - doneMs
  }
}
