// Redrive without a broker: only the cost of the loop and of the decision.
import type { Decision, Delivery, PolicyOptions } from '@redrive/core'
import { aDelivery } from '@redrive/dev-support'
import { CAPABILITIES } from '@redrive/memory/internal'
import {
  type Capabilities,
  type Clock,
  consume,
  movedTo,
  type Receiver,
  SETTLED,
  type Transport,
} from '@redrive/runtime'
import type { Handler } from './peers.ts'

export const DELIVERY: Delivery = aDelivery('order-1')

/** Delivers the same delivery again as soon as it is settled, one at a time. */
export class EndlessTransport implements Transport {
  readonly source = 'orders'
  readonly capabilities: Capabilities = CAPABILITIES
  #receiver: Receiver | undefined
  #left = 0
  #onDone: () => void = () => {}

  /** Resolves when `count` deliveries are settled. */
  run(count: number): Promise<void> {
    this.#left = count
    return new Promise((resolve) => {
      this.#onDone = resolve
      this.#receiver?.deliver(DELIVERY)
    })
  }

  enact(_: Delivery, decision: Decision): typeof SETTLED {
    this.#left -= 1
    if (this.#left > 0) this.#receiver?.deliver(DELIVERY)
    else this.#onDone()
    return decision.kind === 'settle' ? SETTLED : DEAD
  }

  receive(receiver: Receiver): void {
    this.#receiver = receiver
  }
  open(): Promise<void> {
    return Promise.resolve()
  }
  close(): Promise<void> {
    return Promise.resolve()
  }
  limit(): void {}
  pause(): void {}
  resume(): void {}
}

const DEAD = movedTo('dead_letter')

/** Waits take one microtask, as for the peers; the deadline timer is real but never due. */
const impatient: Clock = {
  now: () => Math.floor(performance.now()),
  after: (delayMs, callback) => {
    if (delayMs < 100) queueMicrotask(callback)
    return () => {}
  },
}

/** Starts a separate consumer on an endless source. */
export async function redriveLoop(
  handler: Handler,
  policy: PolicyOptions = {},
): Promise<EndlessTransport> {
  const transport = new EndlessTransport()
  await consume(transport, handler, { ...policy, clock: impatient })
  return transport
}
