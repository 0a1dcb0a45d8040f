import type { Delivery } from '@redrive/core'
import type { Clock } from './clock.ts'
import { type PauseReason, publish } from './events.ts'
import type { Awaitable, Transport } from './ports.ts'

/** What comes in: opens and closes the transport's tap, and remembers to look again. */
export class Intake<D extends Delivery> {
  readonly #transport: Transport<D>
  readonly #clock: Clock
  readonly #onWake: () => void
  #cancelWake: (() => void) | undefined
  #limit = 0
  isOpen = true
  /** When the last closing took effect: nothing is on its way to us after that. */
  closed: Awaitable<void> = undefined

  constructor(transport: Transport<D>, clock: Clock, onWake: () => void) {
    this.#transport = transport
    this.#clock = clock
    this.#onWake = onWake
  }

  open(limit: number): void {
    this.#forgetWake()
    if (limit !== this.#limit) this.#transport.limit(limit)
    this.#limit = limit
    if (this.isOpen) return
    this.isOpen = true
    this.#transport.resume()
    publish({ type: 'consumer_resumed', at: this.#clock.now(), source: this.#transport.source })
  }

  /** Until then, or until someone opens it again. */
  close(reason: PauseReason, until: number | undefined): void {
    const now = this.#clock.now()
    this.#forgetWake()
    if (until !== undefined) this.#cancelWake = this.#clock.after(until - now, this.#onWake)
    if (!this.isOpen) return
    this.isOpen = false
    this.closed = this.#transport.pause()
    publish({ type: 'consumer_paused', at: now, source: this.#transport.source, reason, until })
  }

  #forgetWake(): void {
    this.#cancelWake?.()
    this.#cancelWake = undefined
  }

  stop(): void {
    this.#forgetWake()
  }
}
