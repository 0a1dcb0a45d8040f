// Redrive without a broker: what is left is the cost of the loop and of deciding.
import { type Decision, type Delivery, FIRST_CYCLE, type PolicyOptions } from '@redrive/core'
import { CAPABILITIES } from '@redrive/memory'
import {
  type Capabilities,
  type Clock,
  consume,
  placed,
  type Receiver,
  SETTLED,
  type Transport,
} from '@redrive/runtime'
import type { Handler } from './peers.ts'

export const DELIVERY: Delivery = {
  id: 'order-1',
  source: 'orders',
  lane: undefined,
  key: 'order-1',
  type: undefined,
  bytes: new TextEncoder().encode('{}'),
  contentType: undefined,
  headers: {},
  cycle: FIRST_CYCLE,
  deliveryCount: 1,
  replayId: undefined,
  headerProblems: [],
}

/** Hands out the same delivery again as soon as it is settled, one at a time. */
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

const DEAD = placed('dead_letter')

/** Waits last as long as a microtask, as for the peers; the deadline tick is real but never due. */
const impatient: Clock = {
  now: () => Math.floor(performance.now()),
  after: (delayMs, callback) => {
    if (delayMs < 100) queueMicrotask(callback)
    return () => {}
  },
}

/** A consumer of its own on an endless source. */
export async function redriveLoop(
  handler: Handler,
  policy: PolicyOptions = {},
): Promise<EndlessTransport> {
  const transport = new EndlessTransport()
  await consume(transport, handler, { ...policy, clock: impatient })
  return transport
}
