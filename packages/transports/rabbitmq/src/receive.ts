import type { Decision } from '@redrive/core'
import {
  type Awaitable,
  type Capabilities,
  type Enactment,
  LOST,
  placed,
  publishEvent,
  type Receiver,
  SETTLED,
  type Transport,
  type TransportNeeds,
  withTimeout,
} from '@redrive/runtime'
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import { capabilitiesOf } from './capabilities.ts'
import { declare, isThere, verify } from './declare.ts'
import { type Ending, HandOffs } from './enact.ts'
import { type RabbitMqDelivery, toDelivery } from './headers.ts'
import { answered, Link } from './link.ts'
import { type RabbitMqOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import { Publisher } from './publish.ts'
import { type Topology, topologyOf } from './topology.ts'
import { Unsettled } from './unsettled.ts'

/** A consumer at the broker. Its prefetch cannot be changed, only replaced. */
interface Subscription {
  readonly tag: string
  readonly prefetch: number
}

/** 250 ms between two changes of prefetch: the adaptive limit moves with every message, the broker need not. */
const CHANGE_MS = 250

/**
 * 10 returns at once. A quorum queue's channel holds acknowledgements back when 32 of them are not yet
 * written by the queue, and those are lost with the connection: the message would count one more
 * death that was not its own. A confirmed copy shows that what was acknowledged before is written.
 */
const RETURNS_AT_ONCE = 10

/** 2 ms between two questions whether the broker has heard: under load one is for many, alone it is asked at once. */
const HEARD_MS = 2

/** 2 s for what is under way to end: a broker that does not answer must not keep us from closing. */
const CLOSE_MS = 2_000

/** The transport: one connection that only consumes, one that only publishes. */
export class RabbitMqTransport implements Transport<RabbitMqDelivery> {
  readonly source: string
  readonly capabilities: Capabilities
  readonly #options: ResolvedOptions
  readonly #topology: Topology
  readonly #publisher: Publisher
  readonly #link: Link<Channel>
  #handOffs: HandOffs | undefined
  readonly #inFlight = new Set<Promise<Enactment>>()
  readonly #returning = atMost(RETURNS_AT_ONCE)
  #unsettled: Unsettled | undefined
  #receiver: Receiver<RabbitMqDelivery> | undefined
  #subscription: Subscription | undefined
  /** The last change of subscription; nothing new comes in before it is through. */
  #changing: Promise<void> = Promise.resolve()
  #hearing: Promise<boolean> | undefined
  #heardAt = 0
  #changeTimer: NodeJS.Timeout | undefined
  #changedAt = 0
  #limit = 1
  #isPaused = false
  #isReturnCounted = true
  /** Once, by us: from then on it is only looked for, which a cluster can answer when it cannot write. */
  #isDeclared = false

  constructor(options: ResolvedOptions) {
    const { urls, queue, queueType, connect, confirmTimeoutMs } = options
    this.source = queue
    this.capabilities = capabilitiesOf(queueType)
    this.#options = options
    this.#topology = topologyOf(queue, queueType)
    this.#publisher = new Publisher({
      urls,
      connect,
      confirmTimeoutMs,
      onBlocked: (reason) => this.#report({ type: 'broker_blocked', reason }),
    })
    this.#link = new Link<Channel>({
      urls,
      connect: (url) => connect(url, 'consume'),
      prepare: (connection) => this.#prepare(connection),
      onReady: (channel) => this.#ready(channel),
      onLost: (error) => this.#lost(error),
    })
  }

  async open(needs?: TransportNeeds): Promise<void> {
    this.#handOffs = new HandOffs({
      publisher: this.#publisher,
      topology: this.#topology,
      isDeclaring: this.#options.isDeclaring,
      budgetBytes: this.capabilities.headerBudgetBytes,
      deadLetterRetentionMs: needs?.deadLetterRetentionMs ?? Number.POSITIVE_INFINITY,
    })
    await this.#link.open()
    await this.#publisher.open()
  }

  async #prepare(connection: ChannelModel): Promise<Channel> {
    if (!this.#options.isDeclaring) await verify(connection, this.#topology)
    else if (!this.#isDeclared || !(await isThere(connection, this.#topology))) {
      await declare(connection, this.#topology)
      this.#isDeclared = true
    }
    this.#isReturnCounted = this.#options.queueType === 'quorum' && countsReturns(connection)
    return connection.createChannel()
  }

  #ready(channel: Channel): void {
    this.#unsettled = new Unsettled(channel)
    if (this.#receiver === undefined) return
    this.#report({ type: 'connection_restored' })
    void this.#adjust()
  }

  #lost(error: unknown): void {
    const lost = this.#unsettled?.abandon() ?? []
    this.#unsettled = undefined
    this.#subscription = undefined
    this.#report({ type: 'connection_lost', error })
    for (const delivery of lost) this.#receiver?.lost(delivery)
  }

  async receive(receiver: Receiver<RabbitMqDelivery>): Promise<void> {
    this.#receiver = receiver
    await this.#adjust()
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
        // By a copy where the broker takes a plain return for one more failure of the message.
        if (this.#isReturnCounted) {
          return this.#track(this.#returning(() => this.#handOff(delivery, decision)))
        }
        return unsettled.giveBack(delivery) ? placed('returned') : LOST
      default:
        return this.#track(this.#handOff(delivery, decision))
    }
  }

  #track(handOff: Promise<Enactment>): Promise<Enactment> {
    this.#inFlight.add(handOff)
    return handOff.finally(() => this.#inFlight.delete(handOff))
  }

  /**
   * A hand-off is done when the broker has heard of it: whoever asked may be about to stop, or to run
   * a message that kills this process.
   */
  async #handOff(delivery: RabbitMqDelivery, decision: Decision): Promise<Enactment> {
    // What is given back must not come straight back to us.
    if (decision.kind === 'pause') await this.#changing
    const unsettled = this.#unsettled
    if (unsettled === undefined || this.#handOffs === undefined) return LOST
    if (!unsettled.has(delivery)) return LOST
    const enactment = await this.#handOffs.enact(delivery, decision, unsettled)
    if (enactment.kind !== 'done') return enactment
    return (await this.#isHeard()) ? enactment : LOST
  }

  /** Whether the broker has read every acknowledgement so far; one question for all who ask at once. */
  #isHeard(): Promise<boolean> {
    this.#hearing ??= this.#ask()
    return this.#hearing
  }

  async #ask(): Promise<boolean> {
    const waitMs = this.#heardAt + HEARD_MS - performance.now()
    await new Promise((resolve) => {
      if (waitMs > 0) setTimeout(resolve, waitMs)
      else setImmediate(resolve)
    })
    this.#hearing = undefined
    this.#heardAt = performance.now()
    const channel = this.#link.channel
    if (channel === undefined) return false
    this.#unsettled?.flush()
    try {
      // Any request would do: they are answered in order.
      await answered(channel.prefetch(this.#limit))
      return true
    } catch (error) {
      this.#link.reset(channel, error)
      return false
    }
  }

  // ---- subscribing ----------------------------------------------------------------------------

  limit(count: number): void {
    this.#limit = count
    if (this.#isMisfit()) this.#adjustSoon()
  }

  #adjustSoon(): void {
    if (this.#changeTimer !== undefined) return
    const waitMs = Math.max(0, this.#changedAt + CHANGE_MS - performance.now())
    this.#changeTimer = setTimeout(() => {
      this.#changeTimer = undefined
      void this.#adjust()
    }, waitMs)
  }

  pause(): Promise<void> {
    this.#isPaused = true
    return this.#adjust()
  }

  resume(): void {
    this.#isPaused = false
    void this.#adjust()
  }

  /** More may come in than does, or less than half as much: worth a new subscription. */
  #isMisfit(): boolean {
    const { prefetch } = this.#subscription ?? { prefetch: this.#limit }
    return this.#limit > prefetch || this.#limit < prefetch / 2
  }

  /** Makes the subscription what it should be; one change after the other. */
  #adjust(): Promise<void> {
    this.#changing = this.#changing.then(async () => {
      const channel = this.#link.channel
      if (channel === undefined) return
      try {
        await answered(this.#change(channel))
      } catch (error) {
        // The channel broke or hangs, and the link makes a new one: `#ready` asks again then.
        this.#link.reset(channel, error)
      }
    })
    return this.#changing
  }

  /**
   * The new subscription before the end of the old one. When a node dies, a quorum queue takes back what
   * it handed out to channels there; but where a channel has only subscriptions that are cancelled, what
   * they have in hand stays theirs until the queue gets another leader, and nobody is given it.
   */
  async #change(channel: Channel): Promise<void> {
    const old = this.#subscription
    if (this.#isPaused) return this.#cancel(channel, old)
    if (old !== undefined && !this.#isMisfit()) return
    await this.#subscribe(channel)
    await this.#cancel(channel, old)
  }

  async #cancel(channel: Channel, subscription: Subscription | undefined): Promise<void> {
    if (subscription === undefined) return
    // Answered in order: the broker has heard of all that is settled, and all that was on its way to
    // us has arrived.
    this.#unsettled?.flush()
    await channel.cancel(subscription.tag)
    if (this.#subscription === subscription) this.#subscription = undefined
  }

  async #subscribe(channel: Channel): Promise<void> {
    const unsettled = this.#unsettled
    if (unsettled === undefined || this.#receiver === undefined) return
    const prefetch = this.#limit
    this.#changedAt = performance.now()
    await channel.prefetch(prefetch)
    let isEnded = false
    let own = ''
    const { consumerTag: tag } = await channel.consume(this.source, (raw) => {
      if (raw !== null) return this.#accept(raw, unsettled)
      isEnded = true
      // Of one that has been replaced it does not matter any more.
      const isOld = own !== '' && own !== this.#subscription?.tag
      if (!isOld) this.#endedByBroker(channel)
    })
    // It may have ended in the same packet as it began.
    if (isEnded || this.#link.channel !== channel) return
    own = tag
    this.#subscription = { tag, prefetch }
    if (this.#isMisfit()) this.#adjustSoon()
  }

  /** The queue was deleted, or its node went away. What is in hand stays ours. */
  #endedByBroker(channel: Channel): void {
    if (this.#link.channel !== channel) return
    this.#subscription = undefined
    this.#adjustSoon()
  }

  #accept(raw: ConsumeMessage, unsettled: Unsettled): void {
    const delivery = toDelivery(this.source, raw)
    unsettled.add(delivery)
    this.#receiver?.deliver(delivery)
  }

  // ---- closing --------------------------------------------------------------------------------

  async close(): Promise<void> {
    clearTimeout(this.#changeTimer)
    this.#isPaused = true
    // A copy that is sent but not proven would be there twice, once the channel's end returns the original.
    // Errors are ignored here: the caller of `enact` has them.
    const ending = [this.#adjust(), ...this.#inFlight]
    await withTimeout(Promise.allSettled(ending), CLOSE_MS, () => undefined)
    this.#receiver = undefined
    this.#unsettled?.flush()
    this.#unsettled = undefined
    // What is still in hand returns when its channel ends.
    await Promise.all([this.#link.close(), this.#publisher.close()])
  }

  #report(event: TransportEvent): void {
    publishEvent({ ...event, at: Date.now(), source: this.source })
  }
}

const ended = ({ kind }: Ending) => (kind === 'settle' ? SETTLED : placed('dropped'))

type TransportEvent =
  | { readonly type: 'broker_blocked'; readonly reason: string | undefined }
  | { readonly type: 'connection_lost'; readonly error: unknown }
  | { readonly type: 'connection_restored' }

/** Runs what it is given, so many at once; the rest waits its turn. */
function atMost(count: number): <T>(work: () => Promise<T>) => Promise<T> {
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

/** Since 4.3 a return that the consumer asks for is not counted as a failure of the message. */
function countsReturns({ connection }: ChannelModel): boolean {
  const [major = 0, minor = 0] = connection.serverProperties.version.split('.').map(Number)
  return major < 4 || (major === 4 && minor < 3)
}

/** A transport on a RabbitMQ queue. */
export function rabbitmq(options: RabbitMqOptions): RabbitMqTransport {
  return new RabbitMqTransport(resolveOptions(options))
}
