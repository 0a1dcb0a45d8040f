import { type Decision, isRedriveError, RedriveError } from '@redrive/core'
import {
  type Awaitable,
  type Capabilities,
  type Enactment,
  LOST,
  movedTo,
  publishEvent,
  type Receiver,
  SETTLED,
  type Transport,
  type TransportNeeds,
} from '@redrive/runtime'
import { withTimeout } from '@redrive/runtime/internal'
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import { capabilitiesOf } from './capabilities.ts'
import { AckCheck } from './consume/ack-check.ts'
import { Subscription } from './consume/subscription.ts'
import { declare, isThere, verify } from './declare.ts'
import { type FinalDecision, HandOffs } from './enact.ts'
import { type RabbitMqDelivery, toDelivery } from './delivery.ts'
import { ManagedConnection, messageOf } from './connection/connection.ts'
import { headerTypesOf, readWireHeaders } from './connection/wire-headers.ts'
import { type RabbitMqOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import { Publisher } from './publish.ts'
import { refuseStream } from './refuse-stream.ts'
import { type Topology, topologyOf } from './topology.ts'
import { UnackedDeliveries } from './unacked.ts'

/**
 * 10 concurrent returns. The channel of a quorum queue holds acknowledgements back when the queue has not yet
 * written 32 of them. These are lost with the connection, and the broker would count an additional crash for
 * the message. A confirmed copy shows that the earlier acknowledgements are written.
 */
const CONCURRENT_RETURNS = 10

/** 2 s for hand-offs in flight to finish: a broker that does not answer must not block closing. */
const CLOSE_MS = 2_000

/** A transport with separate connections for consuming and publishing. */
export class RabbitMqTransport implements Transport<RabbitMqDelivery> {
  readonly source: string
  readonly capabilities: Capabilities
  readonly #options: ResolvedOptions
  readonly #topology: Topology
  readonly #publisher: Publisher
  readonly #connection: ManagedConnection<Channel>
  readonly #subscription: Subscription
  readonly #ackCheck: AckCheck
  #handOffs: HandOffs | undefined
  readonly #inFlight = new Set<Promise<Enactment>>()
  readonly #limitReturns = limitConcurrency(CONCURRENT_RETURNS)
  #unsettled: UnackedDeliveries | undefined
  #receiver: Receiver<RabbitMqDelivery> | undefined
  #isReturnCounted = true
  /** Whether this process has declared the topology. Then it is only checked, which works in a cluster that cannot write. */
  #isDeclared = false

  /** @internal */
  constructor(options: ResolvedOptions) {
    const { urls, queue, queueType, prefix, connect, confirmTimeoutMs } = options
    this.source = queue
    this.capabilities = capabilitiesOf(queueType)
    this.#options = options
    this.#topology = topologyOf(queue, queueType, prefix)
    this.#publisher = new Publisher({
      urls,
      connect,
      confirmTimeoutMs,
      onBlocked: (reason) => this.#report({ type: 'broker_blocked', reason }),
    })
    this.#connection = new ManagedConnection<Channel>({
      urls,
      connect: async (url) => readWireHeaders(await connect(url, 'consume')),
      prepare: (connection) => this.#prepare(connection),
      onReady: (channel) => this.#ready(channel),
      onLost: (error) => this.#lost(error),
    })
    const flush = () => this.#unsettled?.flush()
    this.#subscription = new Subscription({
      queue,
      connection: this.#connection,
      acceptor: (channel) => this.#acceptor(channel),
      flush,
    })
    this.#ackCheck = new AckCheck({
      connection: this.#connection,
      prefetch: () => this.#subscription.limit,
      flush,
    })
  }

  async open(needs?: TransportNeeds): Promise<void> {
    this.#handOffs = new HandOffs({
      publisher: this.#publisher,
      topology: this.#topology,
      mode: this.#options.topology,
      budgetBytes: this.capabilities.headerBudgetBytes,
      deadLetterRetentionMs: needs?.deadLetterRetentionMs ?? Number.POSITIVE_INFINITY,
      handler: needs?.handler,
    })
    await this.#connection.open()
    await this.#publisher.open()
    try {
      await this.#publisher.checkPermission()
    } catch (error) {
      // Otherwise the connection was lost, and the permission is not known.
      if (isRedriveError(error, 'REFUSED')) throw cannotPublish(this.source, error)
    }
  }

  async #prepare(connection: ChannelModel): Promise<Channel> {
    const { topology: mode } = this.#options
    if (mode === 'verify') {
      await verify(connection, this.#topology)
      if (!this.#isDeclared) await refuseStream(connection, this.source)
      this.#isDeclared = true
    } else if (!this.#isDeclared || !(await isThere(connection, this.#topology, mode))) {
      await declare(connection, this.#topology, mode)
      this.#isDeclared = true
    }
    this.#isReturnCounted = this.#options.queueType === 'quorum' && countsReturns(connection)
    return connection.createChannel()
  }

  #ready(channel: Channel): void {
    this.#unsettled = new UnackedDeliveries(channel)
    if (this.#receiver === undefined) return
    this.#report({ type: 'connection_restored' })
    void this.#subscription.update()
  }

  #lost(error: unknown): void {
    const lost = this.#unsettled?.abandon() ?? []
    this.#unsettled = undefined
    this.#subscription.lost()
    this.#report({ type: 'connection_lost', error })
    for (const delivery of lost) this.#receiver?.lost(delivery)
  }

  async receive(receiver: Receiver<RabbitMqDelivery>): Promise<void> {
    this.#receiver = receiver
    await this.#subscription.update()
    const { refusal } = this.#subscription
    if (refusal !== undefined) throw cannotConsume(this.source, refusal)
  }

  /** Returns the function that accepts messages of the current channel. */
  #acceptor(channel: Channel): ((raw: ConsumeMessage) => void) | undefined {
    const unsettled = this.#unsettled
    if (unsettled === undefined || this.#receiver === undefined) return undefined
    return (raw) => {
      const delivery = toDelivery(this.source, raw, headerTypesOf(channel, raw))
      unsettled.add(delivery)
      this.#receiver?.deliver(delivery)
    }
  }

  limit(count: number): void {
    this.#subscription.setLimit(count)
  }

  pause(): Promise<void> {
    return this.#subscription.pause()
  }

  resume(): void {
    this.#subscription.resume()
  }

  enact(delivery: RabbitMqDelivery, decision: Decision): Awaitable<Enactment> {
    const unsettled = this.#unsettled
    if (unsettled === undefined || this.#handOffs === undefined) return LOST
    switch (decision.kind) {
      case 'settle':
      case 'drop':
        if (delivery.replayId !== undefined) return this.#track(this.#handOff(delivery, decision))
        return unsettled.settle(delivery) ? ended(decision) : LOST
      case 'pause':
        // A copy is used if the broker counts a plain return as a failure of the message.
        if (this.#isReturnCounted) {
          return this.#track(this.#limitReturns(() => this.#handOff(delivery, decision)))
        }
        return unsettled.returnToQueue(delivery) ? movedTo('returned') : LOST
      default:
        return this.#track(this.#handOff(delivery, decision))
    }
  }

  #track(handOff: Promise<Enactment>): Promise<Enactment> {
    this.#inFlight.add(handOff)
    return handOff.finally(() => this.#inFlight.delete(handOff))
  }

  /**
   * Hands off a delivery. It is done only when the broker has received the acknowledgement: the caller may
   * stop next, or run a message that crashes this process.
   */
  async #handOff(delivery: RabbitMqDelivery, decision: Decision): Promise<Enactment> {
    // A returned message must not be delivered to this consumer again immediately.
    if (decision.kind === 'pause') await this.#subscription.lastChange
    const unsettled = this.#unsettled
    if (unsettled === undefined || this.#handOffs === undefined) return LOST
    if (!unsettled.has(delivery)) return LOST
    const enactment = await this.#handOffs.enact(delivery, decision, unsettled)
    if (enactment.kind !== 'done') return enactment
    return (await this.#ackCheck.areReceived()) ? enactment : LOST
  }

  async close(): Promise<void> {
    // If the channel closed before a copy is confirmed, the original would return and exist twice.
    // Errors are ignored here: the caller of `enact` receives them.
    const ending = [this.#subscription.stop(), ...this.#inFlight]
    await withTimeout(Promise.allSettled(ending), CLOSE_MS, () => undefined)
    this.#receiver = undefined
    this.#unsettled?.flush()
    this.#unsettled = undefined
    // Deliveries still in flight return to the queue when the channel closes.
    await Promise.all([this.#connection.close(), this.#publisher.close()])
  }

  #report(event: TransportEvent): void {
    publishEvent({ ...event, at: Date.now(), source: this.source }, this)
  }
}

const ended = ({ kind }: FinalDecision) => (kind === 'settle' ? SETTLED : movedTo('dropped'))

const cannotConsume = (queue: string, cause: unknown) =>
  new RedriveError(
    'REFUSED',
    `RabbitMQ does not let this consumer read the queue ${queue}: ${messageOf(cause)}. Stop an exclusive consumer of the queue, or give the user the permission to read it.`,
    { cause },
  )

const cannotPublish = (queue: string, cause: unknown) =>
  new RedriveError(
    'REFUSED',
    `RabbitMQ does not let this consumer of ${queue} publish retries and dead letters: ${messageOf(cause)} Give the user the permission to write to the default exchange (amq.default).`,
    { cause },
  )

type TransportEvent =
  | { readonly type: 'broker_blocked'; readonly reason: string | undefined }
  | { readonly type: 'connection_lost'; readonly error: unknown }
  | { readonly type: 'connection_restored' }

/** Returns a function that runs at most `count` tasks concurrently; further tasks wait. */
function limitConcurrency(count: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0
  return async (work) => {
    if (running < count) running += 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next === undefined) running -= 1
      else next()
    }
  }
}

/** Returns whether the broker counts returns as failures. Since 4.3, a return that the consumer requests is not counted. */
function countsReturns({ connection }: ChannelModel): boolean {
  const [major = 0, minor = 0] = connection.serverProperties.version.split('.').map(Number)
  return major < 4 || (major === 4 && minor < 3)
}

/** Creates a transport for a RabbitMQ queue. */
export function rabbitmq(options: RabbitMqOptions): RabbitMqTransport {
  return new RabbitMqTransport(resolveOptions(options))
}
