import type { Decision, Delivery } from '@redrive/core'
import type { Clock } from './clock.ts'
import { publish } from './events.ts'
import type { Awaitable, Enactment, Transport } from './ports.ts'

/** 3 unknown answers in a row: the broker is in trouble, and taking in more would only pile up here. */
const FAILING_AFTER = 3
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
  #failing = 0
  #isAbandoned = false
  pending = 0

  constructor(transport: Transport<D>, clock: Clock, onChange: () => void) {
    this.#transport = transport
    this.#clock = clock
    this.#onChange = onChange
  }

  /** Some hand-off has been unknown several times: consume no more until it went through. */
  get isFailing(): boolean {
    return this.#failing > 0
  }

  async enact(delivery: D, decision: Decision, begun?: Awaitable<Enactment>): Promise<void> {
    this.pending += 1
    try {
      await this.#insist(delivery, decision, begun)
    } finally {
      this.pending -= 1
      if (this.pending === 0) for (const resolve of this.#onIdle.splice(0)) resolve()
    }
  }

  async #insist(delivery: D, decision: Decision, begun?: Awaitable<Enactment>): Promise<void> {
    let answer = begun ?? this.#transport.enact(delivery, decision)
    for (let tries = 1; ; tries++) {
      const enactment = await answer
      this.#report(delivery, decision, enactment)
      if (enactment.kind !== 'unknown' || this.#isAbandoned) {
        if (tries > FAILING_AFTER) this.#changeFailing(-1)
        return
      }
      if (tries === FAILING_AFTER) this.#changeFailing(1)
      await this.#wait(Math.min(WAIT_CAP_MS, WAIT_BASE_MS * 2 ** (tries - 1)))
      // The transport is closing: it gives back by itself what is not settled.
      if (this.#isAbandoned) return
      answer = this.#transport.enact(delivery, decision)
    }
  }

  #changeFailing(by: number): void {
    this.#failing += by
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

  /** Resolves when nothing is being handed off. */
  whenIdle(): Promise<void> {
    if (this.pending === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
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
