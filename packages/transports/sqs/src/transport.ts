import type { Decision } from '@redrive/core'
import {
  type Capabilities,
  type Enactment,
  LOST,
  publishEvent,
  type Receiver,
  systemClock,
  type Transport,
  type TransportNeeds,
} from '@redrive/runtime'
import { isUnfinished, Leases, withTimeout } from '@redrive/runtime/internal'
import { sizeOf } from './attributes.ts'
import { Batcher } from './batcher.ts'
import { capabilitiesOf } from './capabilities.ts'
import { type DeclaredQueues, declareQueues } from './declare.ts'
import { contentOf, type Outgoing, type ReceivedMessage, type SqsDelivery } from './delivery.ts'
import { HandOffs } from './enact.ts'
import { Lanes } from './lanes.ts'
import { type ResolvedOptions, resolveOptions, type SqsOptions } from './options.ts'
import { isNotOwned, MAX_ENTRIES, Requests } from './requests.ts'
import { type Topology, topologyOf } from './topology.ts'

/** 2 s to return messages: SQS that does not respond must not block closing. */
const CLOSE_MS = 2_000
/** 1 s before the next request after an error: SQS throttles, or is unreachable. */
const PROBLEM_MS = 1_000
/** 4 requests for messages at the same time, while each returns as many as it may: one consumer reads thousands per second. */
const MAX_READERS = 4

/** A transport that receives the messages of a queue. The client of the caller is shared, and never closed. */
export class SqsTransport implements Transport<SqsDelivery> {
  readonly source: string
  readonly system = 'aws.sqs'
  readonly capabilities: Capabilities
  readonly #options: ResolvedOptions
  readonly #topology: Topology
  readonly #requests: Requests
  readonly #leases: Leases<SqsDelivery>
  /** When the lease of a delivery ends, by the clock of this process: never later than at SQS. */
  readonly #endsAt = new WeakMap<SqsDelivery, number>()
  /** Messages of a FIFO queue. In a standard queue, each message is a lane of its own. */
  readonly #lanes = new Lanes()
  readonly #sending = new Map<string, Batcher<Outgoing>>()
  readonly #enacting = new Map<SqsDelivery, Promise<Enactment>>()
  #queues: DeclaredQueues | undefined
  #handOffs: HandOffs | undefined
  #receiver: Receiver<SqsDelivery> | undefined
  #limit = 1
  #isPaused = false
  #isClosed = false
  readonly #reading = new Set<Promise<void>>()
  /** Messages that requests in progress may still return. */
  #expected = 0
  #cancelPause: (() => void) | undefined
  #isConnectionLost = false

  /** @internal */
  constructor(options: ResolvedOptions) {
    this.#options = options
    this.#topology = topologyOf(options.queue)
    this.source = this.#topology.queue
    this.capabilities = capabilitiesOf(this.#topology.isFifo)
    this.#requests = new Requests(options.client, options.timeoutMs)
    this.#leases = new Leases({
      leaseMs: options.leaseMs,
      renew: (deliveries) => this.#renew(deliveries),
      onLost: (delivery) => this.#reportLoss(delivery),
      onError: (error) => this.#setConnectionState(error),
    })
  }

  async open(needs?: TransportNeeds): Promise<void> {
    const queues = await declareQueues(this.#requests, {
      ...this.#options,
      deadLetterRetentionMs: needs?.deadLetterRetentionMs ?? Number.POSITIVE_INFINITY,
      mustExist: true,
    })
    const { url } = queues
    const deleting = new Batcher<string>({
      send: (handles) => this.#requests.delete(url, handles),
      isComplete: (waiting) => waiting >= this.#leases.size,
    })
    this.#queues = queues
    this.#handOffs = new HandOffs({
      queues,
      topology: this.#topology,
      // A copy would lose its position.
      isReturnedInPlace: this.#topology.isFifo,
      handler: needs?.handler,
      isOwned: (delivery) => this.#isOwned(delivery),
      send: (to, message) => this.#send(to, message),
      release: ({ message }) => deleting.add(message.receiptHandle),
      show: async ({ message }) => {
        const [error] = await this.#requests.hide(url, [message.receiptHandle], 0)
        if (error !== undefined) throw error
      },
    })
  }

  receive(receiver: Receiver<SqsDelivery>): void {
    this.#receiver = receiver
    this.#leases.start()
    this.#read()
  }

  async enact(delivery: SqsDelivery, decision: Decision): Promise<Enactment> {
    if (this.#handOffs === undefined || !this.#isOwned(delivery)) return LOST
    const enacting = this.#enactOn(this.#handOffs, delivery, decision)
    this.#enacting.set(delivery, enacting)
    const enactment = await enacting.finally(() => this.#enacting.delete(delivery))
    if (!isUnfinished(enactment) && this.#leases.delete(delivery)) this.#runNext(delivery)
    this.#read()
    return enactment
  }

  async #enactOn(
    handOffs: HandOffs,
    delivery: SqsDelivery,
    decision: Decision,
  ): Promise<Enactment> {
    // A returned message comes again before the others of its group.
    if (decision.kind === 'pause') await this.#return(this.#lanes.lose(delivery))
    return handOffs.enact(delivery, decision)
  }

  #runNext(delivery: SqsDelivery): void {
    const next = this.#lanes.finish(delivery)
    if (next !== undefined) this.#receiver?.deliver(next)
  }

  #send(url: string, message: Outgoing): Promise<void> {
    let batcher = this.#sending.get(url)
    if (batcher === undefined) {
      batcher = new Batcher({
        send: (messages) => this.#requests.send(url, messages),
        sizeOf: ({ body, attributes }) => sizeOf(body, attributes),
      })
      this.#sending.set(url, batcher)
    }
    return batcher.add(message)
  }

  limit(count: number): void {
    this.#limit = count
    this.#read()
  }

  async pause(): Promise<void> {
    this.#isPaused = true
    await Promise.all(this.#reading)
    await this.#return(this.#lanes.stop())
  }

  resume(): void {
    this.#isPaused = false
    this.#read()
  }

  // ---- reading --------------------------------------------------------------------------------

  #read(): void {
    if (this.#reading.size === 0 && this.#cancelPause === undefined) this.#readMore()
  }

  /** Starts a request for the free slots. Returns false when none is free. */
  #readMore(): boolean {
    const most = Math.min(MAX_ENTRIES, this.#room)
    if (most <= 0 || this.#queues === undefined) return false
    const reading = this.#readSome(this.#queues.url, most).then((isFull) => {
      this.#reading.delete(reading)
      // More messages may wait than one request returns.
      const wanted = isFull ? Math.min(MAX_READERS, this.#reading.size + 2) : 0
      while (this.#reading.size < wanted && this.#readMore());
      this.#read()
    })
    this.#reading.add(reading)
    return true
  }

  /** Returns whether the request returned as many messages as it may. */
  async #readSome(url: string, most: number): Promise<boolean> {
    const { waitMs, leaseMs } = this.#options
    const sentAt = systemClock.now()
    this.#expected += most
    try {
      const messages = await this.#requests.receive(url, { most, waitMs, leaseMs })
      this.#expected -= most
      this.#setConnectionState(undefined)
      for (const message of messages) this.#deliver(message, sentAt)
      return messages.length === most
    } catch (error) {
      this.#expected -= most
      this.#setConnectionState(error)
      this.#readLater()
      return false
    }
  }

  #readLater(): void {
    if (this.#isClosed) return
    this.#cancelPause ??= systemClock.after(PROBLEM_MS, () => {
      this.#cancelPause = undefined
      this.#read()
    })
  }

  get #room(): number {
    if (this.#isPaused || this.#receiver === undefined) return 0
    return this.#limit - this.#leases.size - this.#expected
  }

  #deliver(message: ReceivedMessage, sentAt: number): void {
    const delivery = contentOf(message, {
      ...this.#options,
      ...this.#topology,
      source: this.source,
    })
    // SQS delivers it again, so the earlier delivery in this process is lost.
    if (message.receives > 1) this.#loseEarlier(message)
    this.#endsAt.set(delivery, sentAt + this.#options.leaseMs)
    this.#leases.add(delivery, sentAt)
    if (this.#lanes.add(delivery)) this.#receiver?.deliver(delivery)
  }

  #loseEarlier({ messageId }: ReceivedMessage): void {
    for (const one of this.#leases.all()) if (one.message.messageId === messageId) this.#lose(one)
  }

  // ---- leases ---------------------------------------------------------------------------------

  /** Returns whether this process owns the message. SQS may accept the handle of a former owner. */
  #isOwned(delivery: SqsDelivery): boolean {
    if (!this.#leases.has(delivery)) return false
    if (!this.#isEnded(delivery)) return true
    this.#lose(delivery)
    return false
  }

  #isEnded(delivery: SqsDelivery): boolean {
    return (this.#endsAt.get(delivery) ?? 0) <= systemClock.now()
  }

  #lose(delivery: SqsDelivery): void {
    if (this.#leases.delete(delivery)) this.#reportLoss(delivery)
  }

  #reportLoss(delivery: SqsDelivery): void {
    void this.#return(this.#lanes.lose(delivery))
    this.#receiver?.lost(delivery)
    // Its slot is free.
    this.#read()
  }

  /** Renews leases in batches. Returns the deliveries whose lease has ended. */
  async #renew(deliveries: readonly SqsDelivery[]): Promise<readonly SqsDelivery[]> {
    const owned = deliveries.filter((delivery) => !this.#isEnded(delivery))
    const lost = await Promise.all(batchesOf(owned).map((batch) => this.#renewSome(batch)))
    return [...deliveries.filter((delivery) => this.#isEnded(delivery)), ...lost.flat()]
  }

  async #renewSome(some: readonly SqsDelivery[]): Promise<readonly SqsDelivery[]> {
    const { leaseMs } = this.#options
    const handles = some.map(({ message }) => message.receiptHandle)
    const sentAt = systemClock.now()
    try {
      const results = await this.#requests.hide(this.#queues?.url ?? '', handles, leaseMs)
      some.forEach((delivery, index) => {
        if (results[index] === undefined) this.#endsAt.set(delivery, sentAt + leaseMs)
      })
      return some.filter((_, index) => isNotOwned(results[index]))
    } catch (error) {
      // Repeated after a third of the lease. When none is confirmed, the lease ends, and that is reported.
      this.#setConnectionState(error)
      return []
    }
  }

  /** Makes messages that have not run available again. */
  async #return(some: readonly SqsDelivery[]): Promise<void> {
    for (const one of some) this.#leases.delete(one)
    await Promise.all(
      batchesOf(some).map(async (batch) => {
        const handles = batch.map(({ message }) => message.receiptHandle)
        try {
          await this.#requests.hide(this.#queues?.url ?? '', handles, 0)
        } catch (error) {
          // They become available when their leases end.
          this.#setConnectionState(error)
        }
      }),
    )
  }

  // ---- closing and reporting --------------------------------------------------------------------

  async close(): Promise<void> {
    this.#isPaused = true
    this.#isClosed = true
    this.#cancelPause?.()
    const readMs = this.#options.waitMs + CLOSE_MS
    await withTimeout(Promise.all(this.#reading), readMs, () => undefined)
    const returning = this.#leases
      .all()
      .map((one) => this.#enacting.get(one) ?? this.enact(one, RETURN))
    // Messages that are not returned by then become available when their lease ends.
    await withTimeout(Promise.allSettled(returning), CLOSE_MS, () => undefined)
    this.#leases.stop()
    this.#receiver = undefined
  }

  #setConnectionState(error: unknown): void {
    const isLost = error !== undefined
    if (isLost === this.#isConnectionLost || (this.#isClosed && isLost)) return
    this.#isConnectionLost = isLost
    const at = systemClock.now()
    const { source } = this
    if (isLost) publishEvent({ type: 'connection_lost', at, source, error }, this)
    else publishEvent({ type: 'connection_restored', at, source }, this)
  }
}

const batchesOf = (some: readonly SqsDelivery[]) =>
  Array.from({ length: Math.ceil(some.length / MAX_ENTRIES) }, (_, index) =>
    some.slice(index * MAX_ENTRIES, (index + 1) * MAX_ENTRIES),
  )

const RETURN: Decision = { kind: 'pause', reason: 'stopping', until: 0, failure: undefined }

/** Creates a transport for a queue of Amazon SQS, standard or FIFO. */
export function sqs(options: SqsOptions): SqsTransport {
  return new SqsTransport(resolveOptions(options))
}
