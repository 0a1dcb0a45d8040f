import { type Delivery, isRedriveError } from '@redrive/core'
import type { Attempt } from './attempt.ts'
import type { Clock } from './clock.ts'
import { publish } from './events.ts'
import type { PendingDelivery } from './pending-delivery.ts'

/** A delivery that waits until an earlier run of its message has ended. */
export interface HeldDelivery<D extends Delivery> {
  readonly pending: PendingDelivery<D>
  readonly alone: boolean
}

interface UnendedRun<D extends Delivery> {
  readonly attempt: Attempt<D>
  /** Ends the timer of the grace period; undefined when the run is hung. */
  cancel: (() => void) | undefined
}

/**
 * The runs of a message whose signal was aborted. `ending`: all that are alive are in their grace period. `hung`: one of
 * them is past it.
 */
export type MessageState = 'ended' | 'ending' | 'hung'

/**
 * Runs that continue although their signal was aborted: it timed out, the consumer stops, or the broker took
 * the delivery back. A run keeps its slot during the grace period. After that it is hung: its message is
 * decided without it, and it counts against the concurrency until it ends.
 */
export class UnendedRuns<D extends Delivery> {
  readonly #clock: Clock
  readonly #graceMs: number
  readonly #onHung: (attempt: Attempt<D>, held: readonly HeldDelivery<D>[]) => void
  readonly #runs = new Map<Attempt<D>, UnendedRun<D>>()
  /** All runs of a message: copies of it may run at the same time, and each of them may hang. */
  readonly #byMessage = new Map<string, Set<UnendedRun<D>>>()
  readonly #held = new Map<string, HeldDelivery<D>[]>()
  /** Runs past their grace period. */
  hung = 0

  constructor(
    clock: Clock,
    graceMs: number,
    onHung: (attempt: Attempt<D>, held: readonly HeldDelivery<D>[]) => void,
  ) {
    this.#clock = clock
    this.#graceMs = graceMs
    this.#onHung = onHung
  }

  get size(): number {
    return this.#runs.size
  }

  get held(): number {
    let count = 0
    for (const held of this.#held.values()) count += held.length
    return count
  }

  add(attempt: Attempt<D>): void {
    const cancel = this.#clock.after(this.#graceMs, () => this.#hang(run))
    const run: UnendedRun<D> = { attempt, cancel }
    this.#runs.set(attempt, run)
    const { id } = attempt.delivery
    this.#byMessage.set(id, (this.#byMessage.get(id) ?? new Set()).add(run))
  }

  /** Returns whether runs of a message are alive, and whether one of them is hung. */
  stateOf(messageId: string): MessageState {
    const runs = this.#byMessage.get(messageId)
    if (runs === undefined) return 'ended'
    for (const { cancel } of runs) if (cancel === undefined) return 'hung'
    return 'ending'
  }

  /** Holds a delivery until all runs of its message have ended, or one of them is hung. */
  hold(delivery: HeldDelivery<D>): void {
    const { id } = delivery.pending.delivery
    const held = this.#held.get(id) ?? []
    held.push(delivery)
    this.#held.set(id, held)
  }

  /** Ends a run because its handler ended. Returns whether it was hung, and the deliveries that may run now. */
  end(attempt: Attempt<D>): { wasHung: boolean; held: readonly HeldDelivery<D>[] } {
    const run = this.#runs.get(attempt)
    if (run === undefined) return { wasHung: false, held: [] }
    this.#runs.delete(attempt)
    const { id } = attempt.delivery
    const runs = this.#byMessage.get(id)
    runs?.delete(run)
    if (runs?.size === 0) this.#byMessage.delete(id)
    const wasHung = run.cancel === undefined
    if (wasHung) this.hung -= 1
    else run.cancel?.()
    return { wasHung, held: this.stateOf(id) === 'ended' ? this.#takeHeld(id) : [] }
  }

  #takeHeld(messageId: string): readonly HeldDelivery<D>[] {
    const held = this.#held.get(messageId) ?? []
    this.#held.delete(messageId)
    return held
  }

  get attempts(): readonly Attempt<D>[] {
    return [...this.#runs.keys()]
  }

  /** Removes the held deliveries that the broker took back, and returns them. */
  takeHeld(lost: ReadonlySet<D>): readonly HeldDelivery<D>[] {
    const removed: HeldDelivery<D>[] = []
    for (const [id, held] of this.#held) {
      const kept = held.filter(({ pending }) => !lost.has(pending.delivery))
      removed.push(...held.filter(({ pending }) => lost.has(pending.delivery)))
      if (kept.length === 0) this.#held.delete(id)
      else this.#held.set(id, kept)
    }
    return removed
  }

  /** Ends the grace period of every run now: the consumer has no more time. */
  endGrace(): void {
    for (const run of [...this.#runs.values()]) {
      if (run.cancel === undefined) continue
      run.cancel()
      this.#hang(run)
    }
  }

  #hang(run: UnendedRun<D>): void {
    run.cancel = undefined
    this.hung += 1
    const { delivery, interruptedBy } = run.attempt
    // A consumer that stops gives its handlers less time.
    if (!isRedriveError(interruptedBy, 'STOPPING')) {
      const { id: deliveryId, source } = delivery
      publish({
        type: 'handler_hung',
        at: this.#clock.now(),
        source,
        deliveryId,
        hung: this.hung,
      })
    }
    this.#onHung(run.attempt, this.#takeHeld(delivery.id))
  }

  /** Ends all timers: a remaining one would keep the process alive. */
  stop(): void {
    for (const { cancel } of this.#runs.values()) cancel?.()
  }
}
