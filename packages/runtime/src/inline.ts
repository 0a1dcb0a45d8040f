import type { Delivery, Policy } from '@redrive/core'
import type { Capabilities } from './capabilities.ts'
import type { Clock } from './clock.ts'
import { publish } from './events.ts'
import type { PendingDelivery } from './pending-delivery.ts'

/**
 * Returns whether a retry waits in this process. In lane order a message never leaves its position, and
 * a broker without delays cannot delay it. Otherwise only waits too short for a hand-off stay here.
 */
export function isInlineRetry(
  delayMs: number,
  { order, retry }: Policy,
  { delay }: Capabilities,
): boolean {
  if (order === 'lane' || delay.kind === 'none') return true
  return delayMs > 0 && delayMs < retry.maxInlineDelayMs
}

/** Retries that wait in this process until they are due. */
export class InlineRetries<D extends Delivery> {
  readonly #clock: Clock
  readonly #cancels = new Map<PendingDelivery<D>, () => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#cancels.size
  }

  /** Holds a delivery that was admitted before, so it is not checked again when it is due. */
  hold(
    held: PendingDelivery<D>,
    delayMs: number,
    alone: boolean,
    onDue: (pending: PendingDelivery<D>) => void,
  ): void {
    const { id: deliveryId, source } = held.delivery
    publish({ type: 'inline_retry', at: this.#clock.now(), source, deliveryId, delayMs })
    const pending = { ...held, admission: { kind: alone ? 'runAlone' : 'run' } } as const
    const cancel = this.#clock.after(delayMs, () => {
      this.#cancels.delete(pending)
      onDue(pending)
    })
    this.#cancels.set(pending, cancel)
  }

  /** Removes those of these deliveries before they are due, and returns them. */
  takeThose(deliveries: ReadonlySet<D>): readonly PendingDelivery<D>[] {
    const taken: PendingDelivery<D>[] = []
    for (const [pending, cancel] of this.#cancels) {
      if (!deliveries.has(pending.delivery)) continue
      cancel()
      this.#cancels.delete(pending)
      taken.push(pending)
    }
    return taken
  }

  /** Removes all before they are due. */
  takeAll(): readonly PendingDelivery<D>[] {
    const all = [...this.#cancels.keys()]
    for (const cancel of this.#cancels.values()) cancel()
    this.#cancels.clear()
    return all
  }
}
