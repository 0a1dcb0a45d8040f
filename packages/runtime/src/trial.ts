import type { Delivery } from '@redrive/core'
import type { PendingDelivery } from './pending-delivery.ts'

/**
 * The trial of a suspect: a message that may crash its process runs alone. No other delivery may be in
 * flight or arriving then. Otherwise a crash would also count for it.
 */
export class Trial<D extends Delivery> {
  phase: 'none' | 'preparing' | 'running' = 'none'
  /** The suspect whose trial is being prepared. */
  suspect: PendingDelivery<D> | undefined
  /**
   * True when the last delivery was a suspect: deliveries then run one at a time until one is not
   * suspect. All deliveries of a crashed process come back together. To return all of them for each
   * trial would take forever.
   */
  isSerial = false
  #waiting: { readonly suspect: PendingDelivery<D>; readonly since: number } | undefined

  /** True while a suspect runs or is about to: no other delivery may stay in this process. */
  get isOn(): boolean {
    return this.phase !== 'none'
  }

  /** Returns since when this suspect waits for the running attempts to end. */
  waitsFrom(suspect: PendingDelivery<D>, now: number): number {
    if (this.#waiting?.suspect !== suspect) this.#waiting = { suspect, since: now }
    return this.#waiting.since
  }

  prepare(suspect: PendingDelivery<D>): void {
    this.phase = 'preparing'
    this.suspect = suspect
    this.#waiting = undefined
    this.isSerial = true
  }

  /** Begins the prepared trial. Returns false when the broker took the suspect back in the meantime. */
  begin(suspect: PendingDelivery<D>): boolean {
    if (this.suspect !== suspect) return false
    this.suspect = undefined
    this.phase = 'running'
    return true
  }

  /** Ends the trial: the suspect was settled, handed off, returned or lost. */
  end(): void {
    this.phase = 'none'
    this.suspect = undefined
  }
}
