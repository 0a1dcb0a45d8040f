import type { DeadLetter, Delivery } from '@redrive/core'
import type { Clock } from './clock.ts'

/**
 * 500 dead letters wait here at most; at the default rate the last one waits for 8 minutes. Kafka lists them in
 * the text of a commit, which has no room for many more.
 */
const MAX_SLOWED = 500

/** 15 min: shorter than the 30 min after which RabbitMQ takes unsettled deliveries back. */
const MAX_HOLD_MS = 900_000

interface Slowed {
  readonly decision: DeadLetter
  /** Messages handled before it was decided. */
  readonly handledBefore: number
  readonly cancel: () => void
}

/** The parts of the loop that slowed dead letters need. */
interface LoopParts<D extends Delivery> {
  readonly guardState: { readonly handledCount: number }
  readonly enacting: { enact(delivery: D, decision: DeadLetter): void }
  readonly capacity: { refresh(): void }
  readonly trial: { readonly isOn: boolean }
}

/**
 * Dead letters that the flood guard slows. Their messages are decided and do not run again. Good messages
 * continue meanwhile. When too many wait, the oldest is written early if others passed since it was decided.
 * Otherwise every message fails, and the consumer pauses.
 */
export class SlowedDeadLetters<D extends Delivery> {
  readonly #clock: Clock
  readonly #loop: LoopParts<D>
  readonly #slowed = new Map<D, Slowed>()
  #isStopped = false

  constructor(clock: Clock, loop: LoopParts<D>) {
    this.#clock = clock
    this.#loop = loop
  }

  get size(): number {
    return this.#slowed.size
  }

  /** Returns the room to keep for them. It grows in steps, because a broker follows a new limit only after some time. */
  roomFor(concurrency: number): number {
    return this.size === 0 ? 0 : (Math.floor(this.size / concurrency) + 2) * concurrency
  }

  get isFull(): boolean {
    return this.#slowed.size >= MAX_SLOWED
  }

  /** Returns when there is room again. */
  get fullUntil(): number | undefined {
    const dueTimes = [...this.#slowed.values()].map(({ decision }) => decision.notBefore ?? 0)
    return this.isFull ? Math.min(...dueTimes) : undefined
  }

  /** Keeps a dead letter until it is due. Returns false when it must be written now. */
  hold(delivery: D, decision: DeadLetter): boolean {
    const delayMs = (decision.notBefore ?? 0) - this.#clock.now()
    if (delayMs <= 0 || this.#isStopped || this.#loop.trial.isOn) return false
    const cancel = this.#clock.after(Math.min(delayMs, MAX_HOLD_MS), () => this.#writeNow(delivery))
    const { handledCount: handledBefore } = this.#loop.guardState
    this.#slowed.set(delivery, { decision, handledBefore, cancel })
    this.#makeRoom()
    queueMicrotask(() => this.#loop.capacity.refresh())
    return true
  }

  #makeRoom(): void {
    for (const [delivery, { handledBefore }] of this.#slowed) {
      if (!this.isFull || handledBefore === this.#loop.guardState.handledCount) return
      this.#writeNow(delivery)
    }
  }

  #writeNow(delivery: D): void {
    const slowed = this.#slowed.get(delivery)
    if (slowed === undefined) return
    slowed.cancel()
    this.#slowed.delete(delivery)
    this.#loop.enacting.enact(delivery, slowed.decision)
    this.#loop.capacity.refresh()
  }

  /** Writes all of them early: a message must run alone. */
  writeAll(): void {
    for (const delivery of [...this.#slowed.keys()]) this.#writeNow(delivery)
  }

  /** Writes all of them and each later one at once: the consumer stops. */
  stop(): void {
    this.#isStopped = true
    this.writeAll()
  }

  /** Forgets all of them: the consumer did not start. */
  cancelAll(): void {
    for (const { cancel } of this.#slowed.values()) cancel()
    this.#slowed.clear()
  }

  /** Forgets those that the broker took back. */
  forget(lost: ReadonlySet<D>): void {
    for (const [delivery, { cancel }] of this.#slowed) {
      if (!lost.has(delivery)) continue
      cancel()
      this.#slowed.delete(delivery)
    }
  }
}
