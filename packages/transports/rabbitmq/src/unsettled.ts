import type { RabbitMqDelivery } from './headers.ts'

/** The part of a channel that settles deliveries. */
export interface Acknowledger {
  ack(message: RabbitMqDelivery['raw'], allUpTo?: boolean): void
  nack(message: RabbitMqDelivery['raw'], allUpTo?: boolean, requeue?: boolean): void
}

/**
 * The deliveries of one channel that are in our hands, and the acknowledgements not yet sent.
 *
 * Acknowledgements leave together, once per turn of the event loop. Everything below the oldest
 * delivery still in hand goes as one frame; what was finished out of turn goes one by one, so that
 * a slow message never holds back the window of the others.
 */
export class Unsettled {
  readonly #channel: Acknowledger
  /** By tag, ascending: tags are given in the order of delivery. */
  readonly #inHand = new Map<number, RabbitMqDelivery>()
  #done: RabbitMqDelivery['raw'][] = []
  #isFlushing = false

  constructor(channel: Acknowledger) {
    this.#channel = channel
  }

  add(delivery: RabbitMqDelivery): void {
    this.#inHand.set(delivery.raw.fields.deliveryTag, delivery)
  }

  has(delivery: RabbitMqDelivery): boolean {
    return this.#inHand.get(delivery.raw.fields.deliveryTag) === delivery
  }

  /** Acknowledges, soon. False when it is not ours any more. */
  settle(delivery: RabbitMqDelivery): boolean {
    if (!this.#take(delivery)) return false
    this.#done.push(delivery.raw)
    if (!this.#isFlushing) {
      this.#isFlushing = true
      setImmediate(this.#flushLater)
    }
    return true
  }

  /** Back to where it came from, for someone else. False when it is not ours any more. */
  giveBack(delivery: RabbitMqDelivery): boolean {
    if (!this.#take(delivery)) return false
    this.#channel.nack(delivery.raw, false, true)
    return true
  }

  #take(delivery: RabbitMqDelivery): boolean {
    return this.has(delivery) && this.#inHand.delete(delivery.raw.fields.deliveryTag)
  }

  all(): readonly RabbitMqDelivery[] {
    return [...this.#inHand.values()]
  }

  /** The channel is gone: nothing can be settled on it. Answers what was in hand. */
  abandon(): readonly RabbitMqDelivery[] {
    const lost = this.all()
    this.#inHand.clear()
    this.#done = []
    return lost
  }

  readonly #flushLater = () => this.flush()

  flush(): void {
    this.#isFlushing = false
    const done = this.#done
    if (done.length === 0) return
    this.#done = []
    const [oldest = Number.POSITIVE_INFINITY] = this.#inHand.keys()
    let last: RabbitMqDelivery['raw'] | undefined
    for (const raw of done) {
      const tag = raw.fields.deliveryTag
      if (tag > oldest) this.#channel.ack(raw)
      else if (last === undefined || tag > last.fields.deliveryTag) last = raw
    }
    // The broker wants a tag that it still waits for: the newest of these, never one sent before.
    if (last !== undefined) this.#channel.ack(last, true)
  }
}
