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
  type TransportGroup,
  type TransportNeeds,
} from '@redrive/runtime'
import { withTimeout } from '@redrive/runtime/internal'
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import { isBefore } from './broker-version.ts'
import { capabilitiesOf } from './capabilities.ts'
import { AckCheck } from './consume/ack-check.ts'
import { inLane, LANE_PREFETCH, Lanes } from './consume/lanes.ts'
import { Subscription } from './consume/subscription.ts'
import { checkSource, declare, isThere, verify } from './declare.ts'
import { type FinalDecision, HandOffs } from './enact.ts'
import { type RabbitMqDelivery, toDelivery } from './delivery.ts'
import { ManagedConnection, messageOf } from './connection/connection.ts'
import { headerTypesOf, readWireHeaders } from './connection/wire-headers.ts'
import { limitConcurrency } from './limit-concurrency.ts'
import { type RabbitMqOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import { Publisher } from './publish.ts'
import { consumeRefusal } from './queue-refusal.ts'
import { codeOf, FORBIDDEN } from './refusal-codes.ts'
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
  readonly system = 'rabbitmq'
  readonly capabilities: Capabilities
  readonly group: TransportGroup
  readonly #options: ResolvedOptions
  readonly #topology: Topology
  readonly #publisher: Publisher
  readonly #connection: ManagedConnection<Channel>
  readonly #subscription: Subscription
  readonly #ackCheck: AckCheck
  #handOffs: HandOffs | undefined
  readonly #inFlight = new Set<Promise<Enactment>>()
  readonly #limitReturns = limitConcurrency(CONCURRENT_RETURNS)
  /** Lanes: in lane order, they decide which messages are delivered. */
  readonly #lanes: Lanes | undefined
  #unsettled: UnackedDeliveries | undefined
  #receiver: Receiver<RabbitMqDelivery> | undefined
  #isReturnCounted = true
  /** Whether this process has declared the topology. Then it is only checked, which works in a cluster that cannot write. */
  #isDeclared = false

  /** @internal */
  constructor(options: ResolvedOptions) {
    const { urls, queue, queueType, prefix, order, connect, confirmTimeoutMs } = options
    this.source = queue
    const addresses = urls.map((url) => url.replace(/\/\/[^/]*@/, '//'))
    this.group = { name: `${addresses.sort().join()} ${queue}` }
    this.capabilities = capabilitiesOf(queueType, order)
    this.#options = options
    this.#topology = topologyOf(queue, queueType, prefix, order)
    if (order === 'lane') this.#lanes = new Lanes((one) => this.#receiver?.deliver(one))
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
      ...(order === 'lane' ? { lanePrefetch: LANE_PREFETCH } : {}),
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
    // The permissions come first: a refused start declares nothing.
    await this.#publisher.open()
    await this.#requireWrite()
    await this.#connection.open()
  }

  async #requireWrite(): Promise<void> {
    try {
      await this.#publisher.checkPermission()
    } catch (error) {
      // Otherwise the connection was lost, and the permission is not known.
      if (isRedriveError(error, 'REFUSED')) throw cannotPublish(this.source, error)
    }
  }

  async #requireRead(connection: ChannelModel): Promise<void> {
    const refusal = await consumeRefusal(connection, this.source)
    if (codeOf(refusal) === FORBIDDEN) throw cannotConsume(this.source, refusal)
  }

  async #prepare(connection: ChannelModel): Promise<Channel> {
    const { topology: mode } = this.#options
    if (!this.#isDeclared) await this.#requireRead(connection)
    if (mode === 'verify') {
      await verify(connection, this.#topology)
      if (!this.#isDeclared) await checkSource(connection, this.#topology.source)
      this.#isDeclared = true
    } else if (!this.#isDeclared || !(await isThere(connection, this.#topology, mode))) {
      await declare(connection, this.#topology, mode)
      this.#isDeclared = true
    }
    // Since 4.3, the broker does not count a return that the consumer requests as a failure.
    this.#isReturnCounted = this.#options.queueType === 'quorum' && isBefore(connection, 4, 3)
    return connection.createChannel()
  }

  #ready(channel: Channel): void {
    this.#unsettled = new UnackedDeliveries(channel)
    if (this.#receiver === undefined) return
    this.#report({ type: 'connection_restored' })
    void this.#subscription.update()
  }

  #lost(error: unknown): void {
    const unsettled = this.#unsettled?.abandon() ?? []
    const lost = this.#lanes?.clear() ?? unsettled
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
      // Messages of a lost channel can still arrive. They would block their lanes.
      if (this.#unsettled !== unsettled) return
      const received = toDelivery(this.source, raw, headerTypesOf(channel, raw))
      const lanes = this.#lanes
      const delivery = lanes === undefined ? received : inLane(received, this.#options.laneOf)
      unsettled.add(delivery)
      if (lanes === undefined) this.#receiver?.deliver(delivery)
      else lanes.add(delivery)
    }
  }

  limit(count: number): void {
    if (this.#lanes === undefined) this.#subscription.setLimit(count)
    else this.#lanes.setLimit(count)
  }

  pause(): Awaitable<void> {
    return this.#lanes === undefined ? this.#subscription.pause() : this.#lanes.pause()
  }

  resume(): void {
    if (this.#lanes === undefined) this.#subscription.resume()
    else this.#lanes.resume()
  }

  enact(delivery: RabbitMqDelivery, decision: Decision): Awaitable<Enactment> {
    const unsettled = this.#unsettled
    if (unsettled === undefined || this.#handOffs === undefined) return LOST
    switch (decision.kind) {
      case 'settle':
      case 'drop':
        if (delivery.replayId !== undefined) return this.#track(this.#handOff(delivery, decision))
        if (!unsettled.settle(delivery)) return LOST
        this.#lanes?.finish(delivery)
        return ended(decision)
      case 'pause':
        if (this.#lanes !== undefined) return takeBack(this.#lanes, unsettled, delivery)
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
    if (!(await this.#ackCheck.areReceived())) return LOST
    this.#lanes?.finish(delivery)
    return enactment
  }

  async close(): Promise<void> {
    // If the channel closed before a copy is confirmed, the original would return and exist twice.
    // Errors are ignored here: the caller of `enact` receives them.
    if (this.#lanes !== undefined) this.#lanes.pause()
    const stopped = this.#lanes === undefined ? [this.#subscription.stop()] : []
    const ending = [...stopped, ...this.#inFlight]
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

/** Keeps a returned message in its lane. At the broker it would lose its position. */
function takeBack(lanes: Lanes, unsettled: UnackedDeliveries, delivery: RabbitMqDelivery) {
  if (!unsettled.has(delivery)) return LOST
  const again = { ...delivery }
  unsettled.add(again)
  lanes.takeBack(delivery, again)
  return movedTo('returned')
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

/** Creates a transport for a RabbitMQ queue. */
export function rabbitmq(options: RabbitMqOptions): RabbitMqTransport {
  return new RabbitMqTransport(resolveOptions(options))
}
