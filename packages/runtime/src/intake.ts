import type { Delivery } from '@redrive/core'
import type { Clock } from './clock.ts'
import { type PauseReason, publish } from './events.ts'
import type { Awaitable } from './awaitable.ts'
import type { Transport } from './ports/transport.ts'

/** Opens and closes the intake of the transport, and schedules the next check. */
export class Intake<D extends Delivery> {
  readonly #transport: Transport<D>
  readonly #clock: Clock
  readonly #onWake: () => void
  #cancelWake: (() => void) | undefined
  #limit = 0
  #isStopped = false
  isOpen = true
  /** Resolves when the last close took effect: no delivery arrives after that. */
  closed: Promise<void> = Promise.resolve()

  constructor(transport: Transport<D>, clock: Clock, onWake: () => void) {
    this.#transport = transport
    this.#clock = clock
    this.#onWake = onWake
  }

  /** Opens the intake. `until`: time of the next check, when the state changes then. */
  open(limit: number, until: number | undefined): void {
    this.#wakeAt(until)
    const wasOpen = this.isOpen
    const isNew = limit !== this.#limit
    this.#limit = limit
    if (isNew) void this.#callTransport('limit', () => this.#transport.limit(limit))
    // A delivery that arrives during the call may close the intake. Then it must stay closed.
    if (wasOpen || this.isOpen) return
    this.isOpen = true
    // Published first: a delivery that arrives immediately may close the intake again.
    publish({ type: 'consumer_resumed', at: this.#clock.now(), source: this.#transport.source })
    void this.#callTransport('resume', () => this.#transport.resume())
  }

  /** Closes the intake until that time, or until the next `open`. */
  close(reason: PauseReason, until: number | undefined): void {
    const now = this.#clock.now()
    this.#wakeAt(until)
    if (!this.isOpen) return
    this.isOpen = false
    this.closed = this.#callTransport('pause', () => this.#transport.pause())
    publish({ type: 'consumer_paused', at: now, source: this.#transport.source, reason, until })
  }

  /** Calls the transport. One that throws has lost its connection and this setting; it is applied again after a reconnect. */
  async #callTransport(what: string, act: () => Awaitable<void>): Promise<void> {
    try {
      await act()
    } catch (error) {
      const { source } = this.#transport
      const where = `transport.${what}`
      publish({ type: 'user_code_failed', at: this.#clock.now(), source, where, error })
    }
  }

  #wakeAt(until: number | undefined): void {
    this.#cancelWake?.()
    this.#cancelWake =
      until === undefined || this.#isStopped
        ? undefined
        : this.#clock.after(until - this.#clock.now(), this.#onWake)
  }

  stop(): void {
    this.#isStopped = true
    this.#wakeAt(undefined)
  }
}
