import type { RabbitMqDelivery } from './delivery.ts'

/** The part of a channel that settles deliveries. */
export interface Acknowledger {
  ack(message: RabbitMqDelivery['raw'], allUpTo?: boolean): void
  nack(message: RabbitMqDelivery['raw'], allUpTo?: boolean, requeue?: boolean): void
}

/**
 * The unacknowledged deliveries of one channel, and the acknowledgements not sent yet.
 *
 * Acknowledgements are sent together, once per turn of the event loop. One frame acknowledges everything
 * below the oldest unacknowledged delivery. Deliveries finished out of order are acknowledged one by one,
 * so that a slow message never blocks the prefetch of the others.
 */
export class UnackedDeliveries {
  readonly #channel: Acknowledger
  /** Deliveries by tag, ascending: the broker assigns tags in the order of delivery. */
  readonly #unacked = new Map<number, RabbitMqDelivery>()
  #done: RabbitMqDelivery['raw'][] = []
  #isFlushing = false

  constructor(channel: Acknowledger) {
    this.#channel = channel
  }

  add(delivery: RabbitMqDelivery): void {
    this.#unacked.set(delivery.raw.fields.deliveryTag, delivery)
  }

  has(delivery: RabbitMqDelivery): boolean {
    return this.#unacked.get(delivery.raw.fields.deliveryTag) === delivery
  }

  /** Acknowledges in this turn of the event loop. Returns false when the delivery is no longer on this channel. */
  settle(delivery: RabbitMqDelivery): boolean {
    if (!this.#remove(delivery)) return false
    this.#done.push(delivery.raw)
    if (!this.#isFlushing) {
      this.#isFlushing = true
      setImmediate(this.#flushLater)
    }
    return true
  }

  /** Returns the delivery to its queue. Returns false when it is no longer on this channel. */
  returnToQueue(delivery: RabbitMqDelivery): boolean {
    if (!this.#remove(delivery)) return false
    this.#channel.nack(delivery.raw, false, true)
    return true
  }

  #remove(delivery: RabbitMqDelivery): boolean {
    return this.has(delivery) && this.#unacked.delete(delivery.raw.fields.deliveryTag)
  }

  all(): readonly RabbitMqDelivery[] {
    return [...this.#unacked.values()]
  }

  /** Clears everything after the channel was lost. Returns the deliveries that were unacknowledged. */
  abandon(): readonly RabbitMqDelivery[] {
    const lost = this.all()
    this.#unacked.clear()
    this.#done = []
    return lost
  }

  readonly #flushLater = () => this.flush()

  flush(): void {
    this.#isFlushing = false
    const done = this.#done
    if (done.length === 0) return
    this.#done = []
    const [oldest = Number.POSITIVE_INFINITY] = this.#unacked.keys()
    let last: RabbitMqDelivery['raw'] | undefined
    for (const raw of done) {
      const tag = raw.fields.deliveryTag
      if (tag > oldest) this.#channel.ack(raw)
      else if (last === undefined || tag > last.fields.deliveryTag) last = raw
    }
    // The broker requires a tag that is still unacknowledged: the newest of these, never one sent before.
    if (last !== undefined) this.#channel.ack(last, true)
  }
}
