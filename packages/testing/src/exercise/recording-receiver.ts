import assert from 'node:assert/strict'
import type { Decision, Delivery } from '@redrive/core'
import type { Enactment, Receiver, Transport } from '@redrive/runtime'
import type { Evidence } from './evidence.ts'
import type { Polling } from './polling.ts'

/** A receiver that keeps its deliveries until the scenario reads them. */
export class RecordingReceiver implements Receiver {
  readonly transport: Transport
  readonly deliveries: Delivery[] = []
  /** Deliveries that the transport reported as lost. */
  readonly losses: Delivery[] = []
  readonly #polling: Polling
  readonly #evidence: Evidence
  readonly #arrivals = new Map<Delivery, number>()
  #read = 0

  constructor(polling: Polling, transport: Transport, evidence: Evidence) {
    this.#polling = polling
    this.#evidence = evidence
    this.transport = transport
  }

  deliver(delivery: Delivery): void {
    this.deliveries.push(delivery)
    this.#arrivals.set(delivery, this.#polling.clock.now())
  }

  arrivedAt(delivery: Delivery): number {
    return this.#arrivals.get(delivery) ?? Number.NaN
  }

  lost(delivery: Delivery): void {
    this.losses.push(delivery)
    this.#evidence.addLost(delivery)
  }

  /** Returns the next delivery, in the order of arrival. */
  async next(): Promise<Delivery> {
    const index = this.#read++
    await this.#polling.until(
      `delivery number ${index + 1} arrives`,
      () => this.deliveries.length > index,
    )
    return this.deliveries[index] as Delivery
  }

  async enact(delivery: Delivery, decision: Decision): Promise<Enactment> {
    try {
      const result = this.transport.enact(delivery, decision)
      const enactment = await this.#polling.within(`${decision.kind} is enacted`, result)
      this.#evidence.addEnactment(decision, enactment)
      return enactment
    } catch (error) {
      this.#evidence.addThrown(decision, error)
      throw error
    }
  }

  /** Enacts the decision, and asserts that it was done. */
  async put(delivery: Delivery, decision: Decision): Promise<Enactment & { kind: 'done' }> {
    const enactment = await this.enact(delivery, decision)
    assert.ok(enactment.kind === 'done', `${decision.kind} is done, not ${enactment.kind}`)
    return enactment
  }

  close(): Promise<void> {
    return this.#polling.within('the transport closes', this.transport.close({ drainMs: 0 }))
  }
}
