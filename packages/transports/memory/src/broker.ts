import { RedriveError } from '@redrive/core'
import { type Awaitable, type Clock, systemClock } from '@redrive/runtime'
import { type Consumer, type Handed, type MemoryMessage, Queue } from './queue.ts'

/**
 * A connection to the broker, as a transport uses it. Every result may come later: a test can wrap
 * this connection to delay, lose or cut requests.
 */
export interface MemoryConnection {
  /** Resolves when the message is stored; rejects when that is refused or unknown. */
  publish(queue: string, message: MemoryMessage, delayMs: number): Awaitable<void>
  /** Subscribes, paused at first: call `limit`, then `resume`. */
  subscribe(queue: string, listener: (handed: Handed) => void): MemorySubscription
  /** Takes up to `most` messages without a subscription. */
  take(queue: string, most: number): Awaitable<readonly Handed[]>
  /** Acknowledges a message. Returns false when this connection no longer owns it. */
  ack(tag: number): Awaitable<boolean>
  /** Returns a message to its position in the queue. Returns false when this connection no longer owns it. */
  release(tag: number): Awaitable<boolean>
  depth(queue: string): Awaitable<number>
  queues(prefix: string): Awaitable<readonly string[]>
  close(): void
}

export interface MemorySubscription {
  /** Sets the maximum number of unsettled messages. */
  limit(count: number): void
  /** Resolves when no delivery is under way any more. */
  pause(): Awaitable<void>
  resume(): void
}

export interface MemoryBrokerOptions {
  /** Clock for delays and timestamps; a test can control it. Default: the system's. */
  readonly clock?: Clock
}

/** The broker with its queues. Create one per test, or share it between transports. */
export class MemoryBroker {
  readonly #clock: Clock
  readonly #queues = new Map<string, Queue>()
  readonly #connections = new Set<Connection>()
  #tags = 0

  constructor({ clock = systemClock }: MemoryBrokerOptions = {}) {
    this.#clock = clock
  }

  /** Connects. `onLost` is called when the broker ends the connection: this side no longer owns its deliveries. */
  connect(onLost: () => void): MemoryConnection {
    const connection = new Connection(this, onLost, (gone) => this.#connections.delete(gone))
    this.#connections.add(connection)
    return connection
  }

  /** Returns the time of this broker. */
  now(): number {
    return this.#clock.now()
  }

  /** @internal */
  queue(name: string): Queue {
    const known = this.#queues.get(name)
    if (known !== undefined) return known
    const made = new Queue(this.#clock, () => ++this.#tags)
    this.#queues.set(name, made)
    return made
  }

  names(prefix = ''): readonly string[] {
    return [...this.#queues.keys()].filter((name) => name.startsWith(prefix)).sort()
  }

  /** Returns the number of messages in a queue: ready, delayed and delivered. */
  depth(queue: string): number {
    return this.queue(queue).depth
  }

  /** Returns all messages of a queue: ready, delayed and delivered. */
  contents(queue: string): readonly MemoryMessage[] {
    return this.queue(queue).contents()
  }

  /** Sets the capacity of a queue. Further messages are rejected with `DLQ_FULL`. */
  limitQueue(queue: string, capacity: number): void {
    this.queue(queue).capacity = capacity
  }

  /** Ends every connection and keeps every stored message. */
  restart(): void {
    const connections = [...this.#connections]
    // All together: a delivery of one must not go to another that is about to end too.
    for (const connection of connections) connection.silence()
    for (const connection of connections) connection.sever()
  }

  close(): void {
    for (const connection of [...this.#connections]) connection.close()
    for (const queue of this.#queues.values()) queue.close()
  }
}

class Connection implements MemoryConnection {
  readonly #broker: MemoryBroker
  readonly #onLost: () => void
  readonly #onGone: (connection: Connection) => void
  readonly #subscriptions: Subscription[] = []
  readonly #puller: Consumer = { wantsMore: () => false, hand: () => undefined }
  readonly #holders = new Map<number, { readonly queue: Queue; readonly consumer: Consumer }>()
  #isOpen = true

  constructor(broker: MemoryBroker, onLost: () => void, onGone: (connection: Connection) => void) {
    this.#broker = broker
    this.#onLost = onLost
    this.#onGone = onGone
  }

  publish(name: string, message: MemoryMessage, delayMs: number): void {
    this.#check()
    const queue = this.#broker.queue(name)
    if (queue.capacity < Number.POSITIVE_INFINITY && queue.depth >= queue.capacity) {
      throw new RedriveError(
        'DLQ_FULL',
        `Queue "${name}" is full: it has ${queue.capacity} messages. Consume some of them, or set a higher limit with limitQueue().`,
      )
    }
    queue.put(message, delayMs)
  }

  subscribe(name: string, listener: (handed: Handed) => void): MemorySubscription {
    this.#check()
    const queue = this.#broker.queue(name)
    const subscription: Subscription = new Subscription(queue, (handed) => {
      this.#holders.set(handed.tag, { queue, consumer: subscription })
      listener(handed)
    })
    this.#subscriptions.push(subscription)
    queue.attach(subscription)
    return subscription
  }

  take(name: string, most: number): readonly Handed[] {
    this.#check()
    const queue = this.#broker.queue(name)
    const taken: Handed[] = []
    while (taken.length < most) {
      const handed = queue.take(this.#puller)
      if (handed === undefined) break
      this.#holders.set(handed.tag, { queue, consumer: this.#puller })
      taken.push(handed)
    }
    return taken
  }

  ack(tag: number): boolean {
    return this.#settle(tag, (queue, consumer) => queue.ack(tag, consumer))
  }

  release(tag: number): boolean {
    return this.#settle(tag, (queue, consumer) => queue.release(tag, consumer))
  }

  #settle(tag: number, act: (queue: Queue, consumer: Consumer) => boolean): boolean {
    const holder = this.#holders.get(tag)
    if (!this.#isOpen || holder === undefined) return false
    this.#holders.delete(tag)
    if (holder.consumer instanceof Subscription) holder.consumer.settledOne()
    return act(holder.queue, holder.consumer)
  }

  depth(name: string): number {
    return this.#broker.queue(name).depth
  }

  queues(prefix: string): readonly string[] {
    return this.#broker.names(prefix)
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#onGone(this)
    const held = new Set([...this.#holders.values()].map((holder) => holder.queue))
    for (const subscription of this.#subscriptions) subscription.end()
    for (const queue of held) queue.detach(this.#puller)
  }

  /** Stops deliveries; unsettled ones stay unsettled. */
  silence(): void {
    for (const subscription of this.#subscriptions) subscription.pause()
  }

  /** Ends the connection from the broker's side. */
  sever(): void {
    this.close()
    this.#onLost()
  }

  #check(): void {
    if (!this.#isOpen)
      throw new RedriveError('CLOSED', 'The connection to the memory broker is closed.')
  }
}

class Subscription implements Consumer, MemorySubscription {
  readonly #queue: Queue
  readonly #listener: (handed: Handed) => void
  #limit = 1
  #held = 0
  #isPaused = true
  #isEnded = false

  constructor(queue: Queue, listener: (handed: Handed) => void) {
    this.#queue = queue
    this.#listener = listener
  }

  wantsMore(): boolean {
    return !this.#isPaused && !this.#isEnded && this.#held < this.#limit
  }

  hand(handed: Handed): void {
    this.#held += 1
    this.#listener(handed)
  }

  settledOne(): void {
    this.#held -= 1
  }

  limit(count: number): void {
    this.#limit = count
    this.#queue.dispatch()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#queue.dispatch()
  }

  end(): void {
    this.#isEnded = true
    this.#queue.detach(this)
  }
}
