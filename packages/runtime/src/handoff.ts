import type { Decision, Delivery } from '@redrive/core'
import type { Clock } from './clock.ts'
import { hasListeners, publish } from './events.ts'
import { type Awaitable, type Enactment, SETTLED, type Transport } from './ports.ts'

/** 3 unknown answers in a row: the broker is in trouble, or refuses just this one. */
const STUCK_AFTER = 3
const WAIT_BASE_MS = 100
/** 5 s: how long a broker that works again waits for us at most. */
const WAIT_CAP_MS = 5_000

/**
 * Carries decisions to the transport and does not let go until the answer is known. An unknown
 * answer keeps the original and is asked again; it never falls back to something weaker.
 */
export class HandOff<D extends Delivery> {
  readonly #transport: Transport<D>
  readonly #clock: Clock
  readonly #onChange: () => void
  readonly #wakes = new Set<() => void>()
  readonly #onIdle: (() => void)[] = []
  #isFailing = false
  #isAbandoned = false
  pending = 0
  /** Hand-offs that have been unknown several times in a row. */
  stuck = 0

  constructor(transport: Transport<D>, clock: Clock, onChange: () => void) {
    this.#transport = transport
    this.#clock = clock
    this.#onChange = onChange
  }

  /** Hand-offs do not go through: true from the first stuck one until any of them is confirmed. */
  get isFailing(): boolean {
    return this.#isFailing && this.stuck > 0
  }

  /**
   * The common case of a broker that answers: the message is settled and nobody listens. No more than
   * one step for it, because this is the hot path; everything else goes the long way.
   */
  settle(delivery: D, decision: Decision, settling: Promise<Enactment>, onDone: () => void): void {
    this.pending += 1
    const told = (begun: Enactment) => {
      this.pending -= 1
      if (begun === SETTLED && !this.#isFailing && !hasListeners()) {
        this.#checkIdle()
        onDone()
      } else void this.enact(delivery, decision, begun).then(onDone)
    }
    settling.then(told, (error: unknown) => told({ kind: 'unknown', error }))
  }

  async enact(delivery: D, decision: Decision, begun?: Awaitable<Enactment>): Promise<void> {
    this.pending += 1
    try {
      await this.#insist(delivery, decision, begun)
    } finally {
      this.pending -= 1
      this.#checkIdle()
    }
  }

  async #insist(delivery: D, decision: Decision, begun?: Awaitable<Enactment>): Promise<void> {
    for (let tries = 1; ; tries++) {
      const enactment = await this.#ask(delivery, decision, tries === 1 ? begun : undefined)
      this.#report(delivery, decision, enactment)
      if (enactment.kind !== 'unknown' || this.#isAbandoned) return this.#through(tries, enactment)
      if (tries === STUCK_AFTER) this.#getStuck(delivery, enactment.error)
      await this.#wait(Math.min(WAIT_CAP_MS, WAIT_BASE_MS * 2 ** (tries - 1)))
      // The transport is closing: it gives back by itself what is not settled.
      if (this.#isAbandoned) return
    }
  }

  /** A transport that throws has not said what it did, which is all that unknown means. */
  async #ask(delivery: D, decision: Decision, begun?: Awaitable<Enactment>): Promise<Enactment> {
    try {
      return await (begun ?? this.#transport.enact(delivery, decision))
    } catch (error) {
      return { kind: 'unknown', error }
    }
  }

  #getStuck({ id: deliveryId, source }: D, error: unknown): void {
    this.stuck += 1
    this.#isFailing = true
    publish({ type: 'hand_off_stuck', at: this.#clock.now(), source, deliveryId, error })
    this.#changed()
  }

  /** One that goes through shows that the broker works; whatever is still stuck is refused for its own sake. */
  #through(tries: number, { kind }: Enactment): void {
    const wasStuck = tries > STUCK_AFTER
    if (wasStuck) this.stuck -= 1
    const hasRecovered = this.#isFailing && kind === 'done'
    if (hasRecovered) this.#isFailing = false
    if (wasStuck || hasRecovered) this.#changed()
  }

  #changed(): void {
    this.#checkIdle()
    this.#onChange()
  }

  #wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        cancel()
        this.#wakes.delete(wake)
        resolve()
      }
      const cancel = this.#clock.after(delayMs, wake)
      this.#wakes.add(wake)
    })
  }

  /** Resolves when nothing is being handed off but what is stuck. */
  whenIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle.push(resolve)
      this.#checkIdle()
    })
  }

  #checkIdle(): void {
    if (this.pending === this.stuck) for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  /** The consumer is closing: whatever is still unknown stays with the broker. */
  abandon(): void {
    this.#isAbandoned = true
    for (const wake of [...this.#wakes]) wake()
  }

  #report({ id, source }: D, decision: Decision, enactment: Enactment): void {
    const at = this.#clock.now()
    publish({ type: 'enacted', at, source, deliveryId: id, decision, enactment })
  }
}
