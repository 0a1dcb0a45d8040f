import type { RabbitMqDelivery } from '../delivery.ts'
import type { LaneOf } from '../options.ts'

/**
 * 500 messages without an acknowledgement. More: a lane that is blocked stops the others later. Fewer: less memory. It
 * must not change with the concurrency: a quorum queue puts a returned message behind earlier returned messages that
 * the next consumer did not take.
 */
export const LANE_PREFETCH = 500

/** Returns the delivery with its lane. */
export function inLane(delivery: RabbitMqDelivery, laneOf: LaneOf | undefined): RabbitMqDelivery {
  const { id, key, raw, headerProblems } = delivery
  const ordered = { ...delivery, deliveryCount: 1, lane: key === id ? WITHOUT_KEY : key }
  if (laneOf === undefined) return ordered
  const failed = (problem: string) => ({
    ...ordered,
    headerProblems: [...headerProblems, `laneOf ${problem}. The default lane is used.`],
  })
  try {
    const lane: unknown = laneOf(raw)
    if (lane === undefined || typeof lane === 'string') return { ...ordered, lane }
    return failed(`returned ${typeof lane}, not a text or undefined`)
  } catch (error) {
    return failed(`threw ${String(error)}`)
  }
}

/** The lane of messages without a key: without one, only the order of the queue is known. */
const WITHOUT_KEY = ''

/**
 * Delivers one message of each lane at a time. The later messages of the lane wait here, unacknowledged, until it
 * is finished. All of them are on one channel: if it is lost, the broker puts them back in their order.
 */
export class Lanes {
  readonly #deliver: (delivery: RabbitMqDelivery) => void
  /** The messages behind the first one of each lane. */
  readonly #waiting = new Map<string, RabbitMqDelivery[]>()
  /** The first messages of their lanes that are not delivered yet. */
  #ready: RabbitMqDelivery[] = []
  readonly #inFlight = new Set<RabbitMqDelivery>()
  #isDeliveringSoon = false
  #limit = 1
  #isPaused = false

  constructor(deliver: (delivery: RabbitMqDelivery) => void) {
    this.#deliver = deliver
  }

  setLimit(count: number): void {
    this.#limit = count
    this.#deliverSoon()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#deliverSoon()
  }

  add(delivery: RabbitMqDelivery): void {
    const { lane } = delivery
    const waiting = lane === undefined ? undefined : this.#waiting.get(lane)
    if (waiting !== undefined) {
      waiting.push(delivery)
      return
    }
    if (lane !== undefined) this.#waiting.set(lane, [])
    this.#ready.push(delivery)
    this.#deliverReady()
  }

  /** Ends a delivery; the next message of its lane is delivered. */
  finish(delivery: RabbitMqDelivery): void {
    if (!this.#inFlight.delete(delivery)) return
    const { lane } = delivery
    if (lane !== undefined) {
      const next = this.#waiting.get(lane)?.shift()
      if (next === undefined) this.#waiting.delete(lane)
      else this.#ready.push(next)
    }
    this.#deliverSoon()
  }

  /** Takes a delivery back to the front of its lane. It is delivered again as `again`. */
  takeBack(delivery: RabbitMqDelivery, again: RabbitMqDelivery): void {
    if (!this.#inFlight.delete(delivery)) return
    this.#ready.unshift(again)
    this.#deliverSoon()
  }

  /** Forgets everything after the channel was lost. Returns the deliveries in flight. */
  clear(): readonly RabbitMqDelivery[] {
    const lost = [...this.#inFlight]
    this.#inFlight.clear()
    this.#waiting.clear()
    this.#ready = []
    return lost
  }

  /**
   * Delivers after the acknowledgements of this turn of the event loop are sent: if they are lost, few messages run twice.
   * And never inside a call of the consumer, which may be about to pause.
   */
  #deliverSoon(): void {
    if (this.#isDeliveringSoon) return
    this.#isDeliveringSoon = true
    setImmediate(() => {
      this.#isDeliveringSoon = false
      this.#deliverReady()
    })
  }

  #deliverReady(): void {
    while (!this.#isPaused && this.#inFlight.size < this.#limit) {
      const next = this.#ready.shift()
      if (next === undefined) return
      this.#inFlight.add(next)
      this.#deliver(next)
    }
  }
}
