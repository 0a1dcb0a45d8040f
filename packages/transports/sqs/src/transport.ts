import type { Decision } from '@redrive/core'
import {
  type Capabilities,
  type Enactment,
  LOST,
  publishEvent,
  type Receiver,
  systemClock,
  type Transport,
  type TransportGroup,
  type TransportNeeds,
} from '@redrive/runtime'
import { isUnfinished, withTimeout } from '@redrive/runtime/internal'
import { sizeOf } from './attributes.ts'
import { Batcher } from './batcher.ts'
import { capabilitiesOf } from './capabilities.ts'
import { type DeclaredQueues, declareQueues } from './declare.ts'
import { contentOf, type Outgoing, type ReceivedMessage, type SqsDelivery } from './delivery.ts'
import { HandOffs } from './enact.ts'
import { Lanes } from './lanes.ts'
import { Leases, type Renewal } from './leases.ts'
import { type ResolvedOptions, resolveOptions, type SqsOptions } from './options.ts'
import { Reader } from './reader.ts'
import { type EntryResult, MAX_ENTRIES, Requests } from './requests.ts'
import { type Topology, topologyOf } from './topology.ts'

/** 2 s to return messages: SQS that does not respond must not block closing. */
const CLOSE_MS = 2_000

/** A transport that receives the messages of a queue. The client of the caller is shared, and never closed. */
export class SqsTransport implements Transport<SqsDelivery> {
  readonly source: string
  readonly system = 'aws.sqs'
  readonly capabilities: Capabilities
  readonly group: TransportGroup
  readonly #options: ResolvedOptions
  readonly #topology: Topology
  readonly #requests: Requests
  readonly #leases: Leases<SqsDelivery>
  readonly #reader: Reader
  /** Messages of a FIFO queue. In a standard queue, each message is a separate lane. */
  readonly #lanes = new Lanes()
  readonly #sending = new Map<string, Batcher<Outgoing>>()
  readonly #enacting = new Map<SqsDelivery, Promise<Enactment>>()
  #queues: DeclaredQueues | undefined
  #handOffs: HandOffs | undefined
  #receiver: Receiver<SqsDelivery> | undefined
  #limit = 1
  #isPaused = false
  #isClosed = false
  #isConnectionLost = false

  /** @internal */
  constructor(options: ResolvedOptions) {
    this.#options = options
    this.#topology = topologyOf(options.queue)
    this.source = this.#topology.queue
    // Ids of SQS are unique, also in another region.
    this.group = { name: `sqs ${options.queue}` }
    this.capabilities = capabilitiesOf(this.#topology.isFifo)
    this.#requests = new Requests(options.client, options.timeoutMs)
    this.#leases = new Leases({
      leaseMs: options.leaseMs,
      renew: (some, timeoutMs) => this.#renew(some, timeoutMs),
      onEnded: (delivery) => this.#reportLoss(delivery),
      onError: (error) => this.#setConnectionState(error),
    })
    const { waitMs, leaseMs } = options
    this.#reader = new Reader({
      receive: (most) => this.#requests.receive(this.#url, { most, waitMs, leaseMs }),
      room: () => this.#room,
      deliver: (message, sentAt) => this.#deliver(message, sentAt),
      onResult: (error) => this.#setConnectionState(error),
    })
  }

  async open(needs?: TransportNeeds): Promise<void> {
    const queues = await declareQueues(this.#requests, {
      ...this.#options,
      deadLetterRetentionMs: needs?.deadLetterRetentionMs ?? Number.POSITIVE_INFINITY,
      mustExist: true,
    })
    const { url, maxReceives } = queues
    if (needs?.crashLimit !== undefined && this.capabilities.deliveryCount === 'exact')
      warnOfMoves(this.source, maxReceives, needs.crashLimit)
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
      isOwned: (delivery) => this.#leases.has(delivery),
      send: (to, message) => this.#send(to, message),
      release: ({ message }) => deleting.add(message.receiptHandle),
      show: async ({ message }) => {
        const [error] = await this.#requests.show(url, [message.receiptHandle])
        if (error !== undefined) throw error
      },
    })
  }

  receive(receiver: Receiver<SqsDelivery>): void {
    this.#receiver = receiver
    this.#reader.read()
  }

  async enact(delivery: SqsDelivery, decision: Decision): Promise<Enactment> {
    if (this.#handOffs === undefined || !this.#leases.has(delivery)) return LOST
    const enacting = this.#enactOn(this.#handOffs, delivery, decision)
    this.#enacting.set(delivery, enacting)
    const enactment = await enacting.finally(() => this.#enacting.delete(delivery))
    if (!isUnfinished(enactment) && this.#leases.delete(delivery)) this.#runNext(delivery)
    this.#reader.read()
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
    if (next !== undefined && this.#leases.has(next)) this.#receiver?.deliver(next)
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
    this.#reader.read()
  }

  async pause(): Promise<void> {
    this.#isPaused = true
    await this.#reader.settled()
    await this.#return(this.#lanes.stop())
  }

  resume(): void {
    this.#isPaused = false
    this.#reader.read()
  }

  // ---- receiving ------------------------------------------------------------------------------

  get #room(): number {
    if (this.#isPaused || this.#receiver === undefined) return 0
    return this.#limit - this.#leases.size
  }

  #deliver(message: ReceivedMessage, sentAt: number): void {
    const delivery = contentOf(message, {
      ...this.#options,
      ...this.#topology,
      source: this.source,
    })
    // SQS delivers it again, so the earlier delivery in this process is lost.
    if (message.receives > 1) this.#loseEarlier(message)
    if (!this.#leases.add(delivery, sentAt)) return
    if (this.#lanes.add(delivery)) this.#receiver?.deliver(delivery)
  }

  #loseEarlier({ messageId }: ReceivedMessage): void {
    for (const one of this.#leases.all())
      if (one.message.messageId === messageId) this.#leases.end(one)
  }

  // ---- leases ---------------------------------------------------------------------------------

  #reportLoss(delivery: SqsDelivery): void {
    void this.#return(this.#lanes.lose(delivery))
    this.#receiver?.lost(delivery)
    // Its slot is free.
    this.#reader.read()
  }

  #renew(
    some: readonly Renewal<SqsDelivery>[],
    timeoutMs: number,
  ): Promise<readonly EntryResult[]> {
    const hidden = some.map(({ one, forMs }) => ({
      receiptHandle: one.message.receiptHandle,
      forMs,
    }))
    return this.#requests.hide(this.#url, hidden, timeoutMs)
  }

  get #url(): string {
    return this.#queues?.url ?? ''
  }

  /** Makes messages that have not run available again. */
  async #return(some: readonly SqsDelivery[]): Promise<void> {
    for (const one of some) this.#leases.delete(one)
    await Promise.all(
      batchesOf(some).map(async (batch) => {
        const handles = batch.map(({ message }) => message.receiptHandle)
        try {
          await this.#requests.show(this.#url, handles)
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
    this.#reader.stop()
    const readMs = this.#options.waitMs + CLOSE_MS
    await withTimeout(this.#reader.settled(), readMs, () => undefined)
    const returning = this.#leases
      .all()
      .map((one) => this.#enacting.get(one) ?? this.enact(one, RETURN))
    // Messages that are not returned by then become available when their lease ends.
    await withTimeout(Promise.allSettled(returning), CLOSE_MS, () => undefined)
    this.#leases.clear()
    this.#receiver = undefined
    this.#options.closeClient()
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

/** SQS moves a message when it is delivered once more than `maxReceiveCount`. */
function warnOfMoves(queue: string, maxReceives: number | undefined, crashLimit: number): void {
  if (maxReceives === undefined || maxReceives >= crashLimit) return
  process.emitWarning(
    `The redrive policy of the queue "${queue}" has maxReceiveCount ${maxReceives}: SQS moves a message that crashes its consumer before Redrive can quarantine it. Set it to at least ${crashLimit}.`,
    'RedriveSqs',
  )
}

const RETURN: Decision = { kind: 'pause', reason: 'stopping', until: 0, failure: undefined }

/** Creates a transport for a queue of Amazon SQS, standard or FIFO. */
export function sqs(options: SqsOptions): SqsTransport {
  return new SqsTransport(resolveOptions(options))
}
