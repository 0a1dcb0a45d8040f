import type { Channel, ConsumeMessage } from 'amqplib'
import { answered, type ManagedConnection } from '../connection/connection.ts'
import { codeOf, isRefusal } from '../refusal-codes.ts'

export interface SubscriptionDeps {
  readonly queue: string
  readonly connection: ManagedConnection<Channel>
  /** Returns the function that accepts the messages of the current channel; undefined if no message can be accepted. */
  readonly acceptor: (channel: Channel) => ((raw: ConsumeMessage) => void) | undefined
  /** Sends the acknowledgements that still wait in this process. */
  readonly flush: () => void
  /**
   * The prefetch in lane order. It never changes, and the subscription never pauses: the next consumer would become
   * active while this one still has messages.
   */
  readonly lanePrefetch?: number
}

/** A consumer at the broker. Its prefetch cannot be changed; a new consumer replaces it. */
interface BrokerConsumer {
  readonly tag: string
  readonly prefetch: number
}

/** 250 ms between two changes of the prefetch. The adaptive limit changes with every message; the broker need not follow each change. */
const CHANGE_MS = 250

/** The subscription to the queue. It follows the limit, pauses and resumes, and is renewed when the broker ends it. */
export class Subscription {
  readonly #deps: SubscriptionDeps
  #consumer: BrokerConsumer | undefined
  #lastChange: Promise<void> = Promise.resolve()
  #changeTimer: NodeJS.Timeout | undefined
  #changedAt = 0
  #limit: number
  #isPaused = false
  #wasSubscribed = false
  /** Why the broker rejected the first subscription. */
  refusal: unknown

  constructor(deps: SubscriptionDeps) {
    this.#deps = deps
    this.#limit = deps.lanePrefetch ?? 1
  }

  /** Maximum number of unacknowledged deliveries. */
  get limit(): number {
    return this.#limit
  }

  setLimit(count: number): void {
    this.#limit = count
    if (this.#needsNewPrefetch()) this.#updateSoon()
  }

  /** The last change of the subscription. After a pause, no new delivery arrives when it is finished. */
  get lastChange(): Promise<void> {
    return this.#lastChange
  }

  pause(): Promise<void> {
    this.#isPaused = true
    return this.update()
  }

  resume(): void {
    this.#isPaused = false
    void this.update()
  }

  /** Pauses, and makes no further change later. */
  stop(): Promise<void> {
    clearTimeout(this.#changeTimer)
    return this.pause()
  }

  /** Records that the channel was lost, and the subscription with it. */
  lost(): void {
    this.#consumer = undefined
  }

  /** Brings the subscription up to date; changes run one after the other. */
  update(): Promise<void> {
    const { connection } = this.#deps
    this.#lastChange = this.#lastChange.then(async () => {
      const { channel } = connection
      if (channel === undefined) return
      try {
        await answered(this.#replace(channel))
      } catch (error) {
        // A queue that was deleted just now is declared again.
        const isMissing = codeOf(error) === 404
        if (!this.#wasSubscribed && isRefusal(error) && !isMissing) this.refusal = error
        // The channel broke or hangs. The connection is replaced, and then calls `update` again.
        connection.reset(channel, error)
      }
    })
    return this.#lastChange
  }

  #updateSoon(): void {
    if (this.#changeTimer !== undefined) return
    const waitMs = Math.max(0, this.#changedAt + CHANGE_MS - performance.now())
    this.#changeTimer = setTimeout(() => {
      this.#changeTimer = undefined
      void this.update()
    }, waitMs)
  }

  /** Returns whether the limit is above the prefetch or below half of it, which justifies a new consumer. */
  #needsNewPrefetch(): boolean {
    const { prefetch } = this.#consumer ?? { prefetch: this.#limit }
    return this.#limit > prefetch || this.#limit < prefetch / 2
  }

  /**
   * Subscribes again before it cancels the old consumer. When a node dies, a quorum queue takes back
   * the deliveries of the channels there. But deliveries of a channel with only cancelled consumers stay
   * assigned to it until the queue gets another leader. Until then, no other consumer receives them.
   */
  async #replace(channel: Channel): Promise<void> {
    const old = this.#consumer
    if (this.#isPaused) return this.#cancel(channel, old)
    if (old !== undefined && !this.#needsNewPrefetch()) return
    await this.#subscribe(channel)
    await this.#cancel(channel, old)
  }

  async #cancel(channel: Channel, consumer: BrokerConsumer | undefined): Promise<void> {
    if (consumer === undefined) return
    // The broker responds in order: after this, it has received all acknowledgements, and all deliveries
    // that were on their way have arrived.
    this.#deps.flush()
    await channel.cancel(consumer.tag)
    if (this.#consumer === consumer) this.#consumer = undefined
  }

  async #subscribe(channel: Channel): Promise<void> {
    const { queue, connection, acceptor } = this.#deps
    const accept = acceptor(channel)
    if (accept === undefined) return
    const prefetch = this.#limit
    this.#changedAt = performance.now()
    await channel.prefetch(prefetch)
    let isEnded = false
    let ownTag = ''
    const { consumerTag: tag } = await channel.consume(queue, (raw) => {
      if (raw !== null) return accept(raw)
      isEnded = true
      // The end of a replaced consumer is not relevant.
      const isOld = ownTag !== '' && ownTag !== this.#consumer?.tag
      if (!isOld) this.#endedByBroker(channel)
    })
    // The end may have arrived in the same packet as the confirmation of the subscription.
    if (isEnded || connection.channel !== channel) return
    ownTag = tag
    this.#wasSubscribed = true
    this.#consumer = { tag, prefetch }
    if (this.#needsNewPrefetch()) this.#updateSoon()
  }

  /**
   * Subscribes again after the queue was deleted or its node stopped. Deliveries in flight are kept, except in lane
   * order: another consumer may already have the next message of the lane.
   */
  #endedByBroker(channel: Channel): void {
    const { connection, lanePrefetch } = this.#deps
    if (connection.channel !== channel) return
    this.#consumer = undefined
    if (lanePrefetch === undefined) this.#updateSoon()
    else connection.reset(channel, new Error('The broker ended the subscription.'))
  }
}
