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
  /** Resolves when the last closing took effect: nothing is on its way to us after that. */
  closed: Promise<void> = Promise.resolve()

  constructor(transport: Transport<D>, clock: Clock, onWake: () => void) {
    this.#transport = transport
    this.#clock = clock
    this.#onWake = onWake
  }

  /** `until`: when to look again, if something changes by itself then. */
  open(limit: number, until: number | undefined): void {
    this.#wakeAt(until)
    if (limit !== this.#limit) void this.#ask('limit', () => this.#transport.limit(limit))
    this.#limit = limit
    if (this.isOpen) return
    this.isOpen = true
    // Told first: what comes in at once may close it again.
    publish({ type: 'consumer_resumed', at: this.#clock.now(), source: this.#transport.source })
    void this.#ask('resume', () => this.#transport.resume())
  }

  /** Until then, or until someone opens it again. */
  close(reason: PauseReason, until: number | undefined): void {
    const now = this.#clock.now()
    this.#wakeAt(until)
    if (!this.isOpen) return
    this.isOpen = false
    this.closed = this.#ask('pause', () => this.#transport.pause())
    publish({ type: 'consumer_paused', at: now, source: this.#transport.source, reason, until })
  }

  /** A transport that throws here has lost its connection, and with it what we asked for; it is told again when it is back. */
  async #ask(what: string, act: () => Awaitable<void>): Promise<void> {
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
      until === undefined ? undefined : this.#clock.after(until - this.#clock.now(), this.#onWake)
  }

  stop(): void {
    this.#wakeAt(undefined)
  }
}
