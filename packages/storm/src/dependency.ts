import type { VirtualTime } from './time.ts'

export type OutageKind = 'refuse' | 'brown-out'

export interface DependencyOptions {
  /** Calls it can serve per second when healthy. */
  readonly capacityPerSecond: number
  readonly kind: OutageKind
  readonly outageFrom: number
  readonly outageUntil: number
}

/** The remaining share of its capacity in a brown-out. */
export const BROWN_OUT_SHARE = 0.2
/** Calls it queues before it refuses more. */
const QUEUE_BOUND = 3_000

/** Fails like a socket. One shared error, because capturing stacks would take most of a run. */
const REFUSAL = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

/**
 * A single server with a first-in, first-out queue and without load shedding. It also processes calls whose
 * caller has given up long ago. That is why an overload sustains itself.
 */
export class Dependency {
  readonly #time: VirtualTime
  readonly #options: DependencyOptions
  #freeAt = 0
  calls = 0
  /** Calls in each second since the start. */
  readonly callsPerSecond: number[] = []
  readonly #startedAt: number

  constructor(time: VirtualTime, options: DependencyOptions) {
    this.#time = time
    this.#options = options
    this.#startedAt = time.now()
  }

  call(): Promise<void> {
    this.#count()
    const now = this.#time.exactly
    const isOut = now >= this.#options.outageFrom && now < this.#options.outageUntil
    if (isOut && this.#options.kind === 'refuse') return this.#refuse()
    const share = isOut ? BROWN_OUT_SHARE : 1
    const serviceMs = 1_000 / (this.#options.capacityPerSecond * share)
    if (this.#freeAt - now > QUEUE_BOUND * serviceMs) return this.#refuse()
    this.#freeAt = Math.max(now, this.#freeAt) + serviceMs
    return new Promise((resolve) => void this.#time.after(this.#freeAt - now, resolve))
  }

  #refuse(): Promise<void> {
    return new Promise((_, reject) => void this.#time.after(1, () => reject(REFUSAL)))
  }

  #count(): void {
    const second = Math.floor((this.#time.now() - this.#startedAt) / 1_000)
    this.calls += 1
    this.callsPerSecond[second] = (this.callsPerSecond[second] ?? 0) + 1
  }
}
