import type { Clock } from '@redrive/runtime'
import { Heap } from './heap.ts'

/** A message as the broker stores it. */
export interface MemoryMessage {
  readonly id: string
  readonly bytes: Uint8Array
  readonly contentType: string | undefined
  readonly type: string | undefined
  /** The unit of ordering. Messages without one have no order among themselves. */
  readonly lane: string | undefined
  readonly headers: Readonly<Record<string, unknown>>
}

/** A message delivered to a consumer. The tag settles it. */
export interface Handed {
  readonly tag: number
  readonly message: MemoryMessage
  readonly deliveryCount: number
}

export interface Consumer {
  /** Returns true when it can receive another message now. */
  wantsMore(): boolean
  hand(handed: Handed): void
}

interface Stored {
  readonly message: MemoryMessage
  /** Position in the queue; it stays the same when a message returns. */
  readonly place: number
  readonly dueAt: number
  /** Number of deliveries that were never settled. */
  readonly unsettled: number
}

interface Outstanding {
  readonly stored: Stored
  readonly consumer: Consumer
}

/** One queue: ready messages by position, delayed ones by due time, delivered ones by tag. */
export class Queue {
  readonly #clock: Clock
  readonly #nextTag: () => number
  readonly #ready = new Heap<Stored>((stored) => stored.place)
  readonly #delayed = new Heap<Stored>((stored) => stored.dueAt)
  readonly #outstanding = new Map<number, Outstanding>()
  /** Messages whose lane is busy, in order, per lane. */
  readonly #parked = new Map<string, Heap<Stored>>()
  readonly #busyLanes = new Set<string>()
  readonly #consumers: Consumer[] = []
  #places = 0
  #wake: { readonly at: number; readonly cancel: () => void } | undefined
  #isDispatching = false
  capacity: number = Number.POSITIVE_INFINITY

  constructor(clock: Clock, nextTag: () => number) {
    this.#clock = clock
    this.#nextTag = nextTag
  }

  get depth(): number {
    const parked = [...this.#parked.values()].reduce((sum, heap) => sum + heap.size, 0)
    return this.#ready.size + this.#delayed.size + this.#outstanding.size + parked
  }

  /** Returns all messages in any state, for tests and checkers. */
  contents(): readonly MemoryMessage[] {
    const parked = [...this.#parked.values()].flatMap((heap) => heap.items())
    const handed = [...this.#outstanding.values()].map((one) => one.stored)
    return [...this.#ready.items(), ...this.#delayed.items(), ...parked, ...handed].map(
      (stored) => stored.message,
    )
  }

  put(message: MemoryMessage, delayMs: number): void {
    const stored = {
      message,
      place: this.#places++,
      dueAt: this.#clock.now() + delayMs,
      unsettled: 0,
    }
    if (delayMs > 0) this.#delayed.push(stored)
    else this.#makeReady(stored)
    this.dispatch()
  }

  attach(consumer: Consumer): void {
    this.#consumers.push(consumer)
    this.dispatch()
  }

  /** Removes a consumer. Its deliveries return and count as not settled. */
  detach(consumer: Consumer): void {
    const index = this.#consumers.indexOf(consumer)
    if (index >= 0) this.#consumers.splice(index, 1)
    for (const [tag, one] of this.#outstanding) {
      if (one.consumer === consumer) this.#giveBack(tag, one.stored.unsettled + 1)
    }
    this.dispatch()
  }

  /** Takes one message for a consumer that pulls. */
  take(consumer: Consumer): Handed | undefined {
    this.#releaseDue()
    const stored = this.#nextReady()
    return stored === undefined ? undefined : this.#handOut(stored, consumer)
  }

  /** Acknowledges a message. Returns false when this consumer no longer has the tag. */
  ack(tag: number, consumer: Consumer): boolean {
    const one = this.#outstanding.get(tag)
    if (one?.consumer !== consumer) return false
    this.#outstanding.delete(tag)
    this.#freeLane(one.stored.message.lane)
    this.dispatch()
    return true
  }

  /** Returns a message to its position, as if it had not been delivered. */
  release(tag: number, consumer: Consumer): boolean {
    const one = this.#outstanding.get(tag)
    if (one?.consumer !== consumer) return false
    this.#giveBack(tag, one.stored.unsettled)
    this.dispatch()
    return true
  }

  #giveBack(tag: number, unsettled: number): void {
    const one = this.#outstanding.get(tag)
    if (one === undefined) return
    this.#outstanding.delete(tag)
    this.#freeLane(one.stored.message.lane)
    this.#makeReady({ ...one.stored, unsettled })
  }

  #makeReady(stored: Stored): void {
    const { lane } = stored.message
    if (lane === undefined) this.#ready.push(stored)
    else this.#park(lane, stored)
  }

  /** Parks a message of a busy lane. A lane has at most one ready message: its head, while none of it is delivered. */
  #park(lane: string, stored: Stored): void {
    const heap = this.#parked.get(lane) ?? new Heap<Stored>((one) => one.place)
    this.#parked.set(lane, heap)
    heap.push(stored)
  }

  #freeLane(lane: string | undefined): void {
    if (lane !== undefined) this.#busyLanes.delete(lane)
  }

  #nextReady(): Stored | undefined {
    let best: { heap: Heap<Stored>; place: number } | undefined
    const head = this.#ready.first
    if (head !== undefined) best = { heap: this.#ready, place: head.place }
    for (const [lane, heap] of this.#parked) {
      const first = heap.first
      if (first === undefined) this.#parked.delete(lane)
      else if (!this.#busyLanes.has(lane) && (best === undefined || first.place < best.place)) {
        best = { heap, place: first.place }
      }
    }
    return best?.heap.pop()
  }

  #handOut(stored: Stored, consumer: Consumer): Handed {
    const tag = this.#nextTag()
    this.#outstanding.set(tag, { stored, consumer })
    if (stored.message.lane !== undefined) this.#busyLanes.add(stored.message.lane)
    return { tag, message: stored.message, deliveryCount: stored.unsettled + 1 }
  }

  /** Delivers messages to consumers in turn. */
  dispatch(): void {
    // A consumer may settle while it receives a message; the running loop handles that too.
    if (this.#isDispatching) return
    this.#isDispatching = true
    this.#releaseDue()
    for (;;) {
      const consumer = this.#consumers.find((one) => one.wantsMore())
      const stored = consumer === undefined ? undefined : this.#nextReady()
      if (consumer === undefined || stored === undefined) break
      this.#takeTurns(consumer)
      consumer.hand(this.#handOut(stored, consumer))
    }
    this.#isDispatching = false
  }

  #takeTurns(consumer: Consumer): void {
    if (this.#consumers.length < 2) return
    this.#consumers.splice(this.#consumers.indexOf(consumer), 1)
    this.#consumers.push(consumer)
  }

  #releaseDue(): void {
    const now = this.#clock.now()
    while (this.#delayed.first !== undefined && this.#delayed.first.dueAt <= now) {
      const stored = this.#delayed.pop()
      if (stored !== undefined) this.#makeReady(stored)
    }
    this.#wakeAt(this.#delayed.first?.dueAt, now)
  }

  #wakeAt(at: number | undefined, now: number): void {
    if (this.#wake?.at === at) return
    this.#wake?.cancel()
    this.#wake = undefined
    if (at === undefined) return
    const cancel = this.#clock.after(at - now, () => {
      this.#wake = undefined
      this.dispatch()
    })
    this.#wake = { at, cancel }
  }

  close(): void {
    this.#wake?.cancel()
    this.#wake = undefined
  }
}
