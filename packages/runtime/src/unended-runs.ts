import { type Delivery, isRedriveError } from '@redrive/core'
import type { Attempt } from './attempt.ts'
import type { Clock } from './clock.ts'
import { type HungReason, publish } from './events.ts'
import type { PendingDelivery } from './pending-delivery.ts'
import type { AliveRun, GroupMember, MessageState, RunGroup } from './run-group.ts'

/** A delivery that waits until an earlier run of its message has ended. */
export interface HeldDelivery<D extends Delivery> {
  readonly pending: PendingDelivery<D>
  readonly alone: boolean
}

interface UnendedRun<D extends Delivery> extends AliveRun {
  readonly attempt: Attempt<D>
  /** Ends the timer of the grace period. */
  readonly cancel: () => void
}

export interface UnendedRunsDeps<D extends Delivery> {
  readonly clock: Clock
  readonly graceMs: number
  /** The runs of all consumers of this process that share their messages. */
  readonly group: RunGroup
  /** Returns whether this consumer runs the message, and its signal is not aborted. */
  readonly isRunning: (messageId: string) => boolean
  /** Called when a run of this consumer is hung, with the deliveries that waited for it. */
  readonly onHung: (attempt: Attempt<D>, held: readonly HeldDelivery<D>[]) => void
  /** Called when a run of another consumer ended or hung, with the deliveries that waited for it. */
  readonly onOther: (state: MessageState, held: readonly HeldDelivery<D>[]) => void
}

/**
 * Runs that continue although their signal was aborted: it timed out, the consumer stops, or the broker took
 * the delivery back. A run keeps its slot during the grace period. After that it is hung: its message is
 * decided without it, and it counts against the concurrency until it ends.
 */
export class UnendedRuns<D extends Delivery> implements GroupMember {
  readonly #deps: UnendedRunsDeps<D>
  readonly #leave: () => void
  readonly #runs = new Map<Attempt<D>, UnendedRun<D>>()
  readonly #held = new Map<string, HeldDelivery<D>[]>()
  /** Runs past their grace period. */
  hung = 0

  constructor(deps: UnendedRunsDeps<D>) {
    this.#deps = deps
    this.#leave = deps.group.join(this)
  }

  /** True while no delivery of this consumer can have an earlier run in this process. */
  get isQuiet(): boolean {
    return this.#deps.group.isQuiet
  }

  isRunning(messageId: string): boolean {
    return this.#deps.isRunning(messageId)
  }

  get held(): number {
    let count = 0
    for (const held of this.#held.values()) count += held.length
    return count
  }

  add(attempt: Attempt<D>): void {
    const { clock, graceMs, group } = this.#deps
    const cancel = clock.after(graceMs, () => this.#hang(run))
    const { id: messageId } = attempt.delivery
    const run: UnendedRun<D> = { attempt, messageId, isHung: false, cancel }
    this.#runs.set(attempt, run)
    group.add(run)
  }

  /** Returns whether runs of a message are alive in this process, and whether one of them is hung. */
  stateOf(messageId: string): MessageState {
    return this.#deps.group.stateFor(messageId, this)
  }

  /** Holds a delivery until all runs of its message have ended, or one of them is hung. */
  hold(delivery: HeldDelivery<D>): void {
    const { id } = delivery.pending.delivery
    const held = this.#held.get(id) ?? []
    held.push(delivery)
    this.#held.set(id, held)
  }

  /** Notes that a run ended whose signal was not aborted: a delivery of another consumer may wait for it. */
  finish(messageId: string): void {
    this.#deps.group.finish(messageId, this)
  }

  /** Ends a run because its handler ended. Returns whether it was hung, and the deliveries that may run now. */
  end(attempt: Attempt<D>): { wasHung: boolean; held: readonly HeldDelivery<D>[] } {
    const run = this.#runs.get(attempt)
    if (run === undefined) return { wasHung: false, held: [] }
    this.#runs.delete(attempt)
    this.#deps.group.end(run, this)
    const { messageId, isHung: wasHung } = run
    if (wasHung) this.hung -= 1
    else run.cancel()
    return { wasHung, held: this.stateOf(messageId) === 'ended' ? this.#takeHeld(messageId) : [] }
  }

  #takeHeld(messageId: string): readonly HeldDelivery<D>[] {
    const held = this.#held.get(messageId) ?? []
    this.#held.delete(messageId)
    return held
  }

  /** Continues with the deliveries that waited for a run of another consumer. */
  onChange(messageId: string): void {
    if (!this.#held.has(messageId)) return
    const state = this.stateOf(messageId)
    if (state === 'ending') return
    this.#deps.onOther(state, this.#takeHeld(messageId))
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

  /** Removes all held deliveries and returns them: the consumer stops. */
  takeAllHeld(): readonly PendingDelivery<D>[] {
    const all = [...this.#held.values()].flat().map(({ pending }) => pending)
    this.#held.clear()
    return all
  }

  /** Ends the grace period of every run now: the consumer has no more time. */
  endGrace(): void {
    for (const run of [...this.#runs.values()]) {
      if (run.isHung) continue
      run.cancel()
      this.#hang(run)
    }
  }

  #hang(run: UnendedRun<D>): void {
    const { attempt, messageId } = run
    this.hung += 1
    this.#deps.group.hang(run, this)
    // A consumer that stops reports its runs when it has no more time for them.
    if (!isRedriveError(attempt.interruptedBy, 'STOPPING')) this.#report(attempt)
    this.#deps.onHung(attempt, this.#takeHeld(messageId))
  }

  #report({ delivery: { id: deliveryId, source }, interruptedBy }: Attempt<D>): void {
    const at = this.#deps.clock.now()
    const reason = reasonOf(interruptedBy)
    publish({ type: 'handler_hung', at, source, deliveryId, reason, hung: this.hung })
  }

  /** Reports the handlers that continue after the stop of the consumer. */
  reportRemaining(): void {
    for (const attempt of this.#runs.keys()) {
      if (isRedriveError(attempt.interruptedBy, 'STOPPING')) this.#report(attempt)
    }
  }

  /**
   * Ends all timers: a remaining one would keep the process alive. The runs stay in their group until they end: a new
   * consumer must not run their messages before.
   */
  stop(): void {
    for (const { cancel } of this.#runs.values()) cancel()
    this.#leave()
  }
}

function reasonOf(interruptedBy: unknown): HungReason {
  if (isRedriveError(interruptedBy, 'DELIVERY_LOST')) return 'lost'
  return isRedriveError(interruptedBy, 'STOPPING') ? 'stopping' : 'timeout'
}
