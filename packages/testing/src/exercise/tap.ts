import assert from 'node:assert/strict'
import type { Decision, Delivery } from '@redrive/core'
import type { Enactment, Receiver, Transport } from '@redrive/runtime'
import type { Evidence } from './evidence.ts'
import type { Patience } from './patience.ts'

/** A receiver that keeps what it gets until the scenario asks for it. */
export class Tap implements Receiver {
  readonly transport: Transport
  readonly deliveries: Delivery[] = []
  /** Deliveries that the transport reported as lost. */
  readonly losses: Delivery[] = []
  readonly #patience: Patience
  readonly #evidence: Evidence
  readonly #arrivals = new Map<Delivery, number>()
  #read = 0

  constructor(patience: Patience, transport: Transport, evidence: Evidence) {
    this.#patience = patience
    this.#evidence = evidence
    this.transport = transport
  }

  deliver(delivery: Delivery): void {
    this.deliveries.push(delivery)
    this.#arrivals.set(delivery, this.#patience.clock.now())
  }

  arrivedAt(delivery: Delivery): number {
    return this.#arrivals.get(delivery) ?? Number.NaN
  }

  lost(delivery: Delivery): void {
    this.losses.push(delivery)
    this.#evidence.addLost(delivery)
  }

  /** The next delivery, in the order they came. */
  async next(): Promise<Delivery> {
    const index = this.#read++
    await this.#patience.until(
      `delivery number ${index + 1} arrives`,
      () => this.deliveries.length > index,
    )
    return this.deliveries[index] as Delivery
  }

  async enact(delivery: Delivery, decision: Decision): Promise<Enactment> {
    try {
      const answer = this.transport.enact(delivery, decision)
      const enactment = await this.#patience.within(`${decision.kind} is enacted`, answer)
      this.#evidence.addEnactment(decision, enactment)
      return enactment
    } catch (error) {
      this.#evidence.addThrown(decision, error)
      throw error
    }
  }

  /** Enacts, and insists that it was done. */
  async put(delivery: Delivery, decision: Decision): Promise<Enactment & { kind: 'done' }> {
    const enactment = await this.enact(delivery, decision)
    assert.ok(enactment.kind === 'done', `${decision.kind} is done, not ${enactment.kind}`)
    return enactment
  }

  close(): Promise<void> {
    return this.#patience.within('the transport closes', this.transport.close({ drainMs: 0 }))
  }
}
