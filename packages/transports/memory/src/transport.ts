import type { Decision } from '@redrive/core'
import {
  type Awaitable,
  type Capabilities,
  type Enactment,
  LOST,
  type Receiver,
  type Transport,
  type TransportGroup,
  type TransportNeeds,
} from '@redrive/runtime'
import { isUnfinished } from '@redrive/runtime/internal'
import type { MemoryConnection, MemorySubscription } from './broker.ts'
import { enactOn, notOpen, type Proven } from './enact.ts'
import { type MemoryDelivery, toDelivery } from './delivery.ts'
import type { ResolvedOptions } from './options.ts'

/** The transport: keeps a connection and a subscription, and recreates both when the broker ends them. */
export class MemoryTransport implements Transport<MemoryDelivery> {
  readonly source: string
  readonly system = 'memory'
  readonly capabilities: Capabilities
  readonly group: TransportGroup
  readonly #options: ResolvedOptions
  readonly #proven: Proven = new WeakMap()
  readonly #held = new Map<number, MemoryDelivery>()
  #connection: MemoryConnection | undefined
  #subscription: MemorySubscription | undefined
  #receiver: Receiver<MemoryDelivery> | undefined
  /** Number of lost connections. A delivery of a lost one may arrive late, and belongs to another consumer. */
  #losses = 0
  #limit = 1
  #isPaused = false
  #handler: string | undefined

  /** @internal */
  constructor(options: ResolvedOptions) {
    this.source = options.queue
    this.capabilities = options.capabilities
    this.group = { name: options.queue, owner: options.broker }
    this.#options = options
  }

  /** Connects. Dead letters are kept as long as the broker lives, which is one test. */
  open(needs?: TransportNeeds): Promise<void> {
    this.#handler = needs?.handler
    this.#isPaused = false
    this.#connection = this.#options.connect(() => this.#reconnect())
    return Promise.resolve()
  }

  receive(receiver: Receiver<MemoryDelivery>): void {
    this.#receiver = receiver
    this.#subscribe()
  }

  enact(delivery: MemoryDelivery, decision: Decision): Awaitable<Enactment> {
    if (this.#connection === undefined) throw notOpen()
    if (!this.#held.has(delivery.tag)) return LOST
    const { capabilities, now } = this.#options
    const settings = { capabilities, now, handler: this.#handler }
    const answer = enactOn(this.#connection, this.#proven, delivery, decision, settings)
    if (!(answer instanceof Promise)) return this.#noted(delivery, answer)
    return answer.then((enactment) => this.#noted(delivery, enactment))
  }

  /** Removes a delivery from those in flight, unless its result is unknown. */
  #noted({ tag }: MemoryDelivery, enactment: Enactment): Enactment {
    if (!isUnfinished(enactment)) this.#held.delete(tag)
    return enactment
  }

  limit(count: number): void {
    this.#limit = count
    this.#subscription?.limit(count)
  }

  pause(): Awaitable<void> {
    this.#isPaused = true
    return this.#subscription?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#subscription?.resume()
  }

  async close(): Promise<void> {
    const connection = this.#connection
    this.#receiver = undefined
    this.#connection = undefined
    if (connection === undefined) return
    // A returned delivery must not be delivered to this transport again.
    await this.#subscription?.pause()
    // Returned one by one, so that the broker does not treat a graceful stop as a crash. Deliveries without
    // a response also return when the connection ends.
    await Promise.allSettled(Array.from(this.#held.keys(), async (tag) => connection.release(tag)))
    this.#held.clear()
    connection.close()
  }

  #subscribe(): void {
    if (this.#connection === undefined) throw notOpen()
    const losses = this.#losses
    this.#subscription = this.#connection.subscribe(this.source, (handed) => {
      if (losses !== this.#losses) return
      const delivery = toDelivery(this.source, handed)
      this.#held.set(handed.tag, delivery)
      this.#receiver?.deliver(delivery)
    })
    this.#subscription.limit(this.#limit)
    if (!this.#isPaused) this.#subscription.resume()
  }

  #reconnect(): void {
    this.#losses += 1
    const lost = [...this.#held.values()]
    this.#held.clear()
    for (const delivery of lost) this.#receiver?.lost(delivery)
    if (this.#connection === undefined) return
    this.#connection = this.#options.connect(() => this.#reconnect())
    if (this.#receiver !== undefined) this.#subscribe()
  }
}
