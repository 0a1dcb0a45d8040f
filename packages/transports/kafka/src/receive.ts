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
import { capabilitiesOf } from './capabilities.ts'
import { Consumption } from './consuming.ts'
import { prepare } from './declare.ts'
import { type HandOff, type HandOffDecision, handOffOf, isEnding } from './enact.ts'
import type { KafkaDelivery } from './headers.ts'
import { nameOf } from './topic-partition.ts'
import { type KafkaOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import type { Partition } from './partition.ts'
import { Publisher } from './publish.ts'
import { topologyOf } from './topology.ts'
import { Transactions } from './transact.ts'

/** 2 s for what is under way to end: a broker that does not answer must not keep us from closing. */
const CLOSE_MS = 2_000

/** The transport: consumes the topic and its retry topics, and produces copies to those and to the dead letters. */
export class KafkaTransport implements Transport<KafkaDelivery> {
  readonly source: string
  readonly capabilities: Capabilities
  readonly #options: ResolvedOptions
  readonly #consumption: Consumption
  readonly #publisher: Publisher
  readonly #transactions: Transactions | undefined
  /** A copy on its way, or stored: enacting again waits for it instead of making a second one. */
  readonly #sent = new WeakMap<KafkaDelivery, Promise<void>>()
  readonly #inFlight = new Set<Promise<Enactment>>()
  #isClosed = false
  /** Who does not answer. */
  readonly #troubles = new Set<string>()

  constructor(options: ResolvedOptions) {
    const { topic, group, client, order, from, sessionMs, drainMs, confirmTimeoutMs } = options
    this.source = topic
    this.capabilities = capabilitiesOf(options)
    this.#options = options
    this.#publisher = new Publisher(client, confirmTimeoutMs)
    const { retries } = topologyOf(topic, group, 0)
    this.#consumption = new Consumption({
      client,
      group,
      topics: [
        { name: topic, tierMs: 0, isOrdered: order === 'lane', from },
        ...retries.map(
          ({ name, tierMs }) => ({ name, tierMs, isOrdered: false, from: 'earliest' }) as const,
        ),
      ],
      source: topic,
      sessionMs,
      drainMs,
      onTrouble: (where, error) => this.#trouble(where, error),
      onExpired: (place, count) =>
        this.#report({ type: 'messages_expired', where: nameOf(place), count }),
    })
    this.#transactions = options.isTransactional
      ? new Transactions(options, this.#consumption)
      : undefined
  }

  async open(needs?: TransportNeeds): Promise<void> {
    const { topic, group, client, isDeclaring } = this.#options
    const retentionMs = needs?.deadLetterRetentionMs ?? Number.POSITIVE_INFINITY
    await prepare(client, topologyOf(topic, group, retentionMs), isDeclaring)
  }

  receive(receiver: Receiver<KafkaDelivery>): void {
    this.#consumption.start(receiver)
  }

  limit(count: number): void {
    this.#consumption.limit(count)
  }

  pause(): Promise<void> {
    return this.#consumption.pause()
  }

  resume(): void {
    this.#consumption.resume()
  }

  enact(delivery: KafkaDelivery, decision: Decision): Awaitable<Enactment> {
    if (isEnding(decision) && delivery.replayId === undefined) {
      const done = decision.kind === 'settle' ? SETTLED : placed('dropped')
      return this.#consumption.finish(delivery) ? done : LOST
    }
    if (decision.kind !== 'pause') return this.#track(this.#handOff(delivery, decision))
    return this.#consumption.giveBack(delivery) ? placed('returned') : LOST
  }

  #track(handOff: Promise<Enactment>): Promise<Enactment> {
    this.#inFlight.add(handOff)
    return handOff.finally(() => this.#inFlight.delete(handOff))
  }

  /** Copy, prove, release. With transactions the three are one. */
  async #handOff(delivery: KafkaDelivery, decision: HandOffDecision): Promise<Enactment> {
    const partition = this.#consumption.partitionOf(delivery)
    if (partition === undefined) return LOST
    const { group, order } = this.#options
    const budgetBytes = this.capabilities.headerBudgetBytes
    const handOff = handOffOf(delivery, decision, { group, order, budgetBytes })
    try {
      await this.#publisher.inTime(this.#sentOnce(delivery, partition, handOff))
    } catch (error) {
      const isOurs = this.#consumption.partitionOf(delivery) !== undefined
      return isOurs ? { kind: 'unknown', error } : LOST
    }
    if (!this.#consumption.finish(delivery)) return LOST
    // Whoever asked may be about to stop, or to run a record that kills this process.
    await this.#consumption.committed()
    return placed(handOff.place, handOff.truncated)
  }

  #sentOnce(delivery: KafkaDelivery, partition: Partition, handOff: HandOff): Promise<void> {
    const known = this.#sent.get(delivery)
    if (known !== undefined) return known
    const sent =
      this.#transactions?.send(partition, delivery.raw, handOff) ??
      this.#publisher.send(handOff.to, handOff.copy)
    this.#sent.set(delivery, sent)
    // The broker said no, or can no longer say: the next time it is sent anew.
    sent.catch(() => this.#sent.delete(delivery))
    return sent
  }

  /** Resolves when all that is settled by now is committed; it is, every 100 ms, without being asked. */
  committed(): Promise<void> {
    return this.#consumption.committed()
  }

  async close(): Promise<void> {
    void this.#consumption.pause()
    // Errors are ignored: the caller of `enact` has them, and a client that fails to close is gone as well.
    await withTimeout(Promise.allSettled(this.#inFlight), CLOSE_MS, () => undefined)
    this.#isClosed = true
    await this.#consumption.close()
    const closing = [this.#publisher, this.#transactions].flatMap((one) => one?.close() ?? [])
    await withTimeout(Promise.allSettled(closing), CLOSE_MS, () => undefined)
  }

  /** Lost from the first that does not answer until all do again. */
  #trouble(where: string, error: unknown): void {
    const before = this.#troubles.size
    if (error === undefined) this.#troubles.delete(where)
    else this.#troubles.add(where)
    const { size } = this.#troubles
    if (this.#isClosed || (before === 0) === (size === 0)) return
    this.#report(size > 0 ? { type: 'connection_lost', error } : { type: 'connection_restored' })
  }

  #report(event: TransportEvent): void {
    publishEvent({ ...event, at: Date.now(), source: this.source })
  }
}

type TransportEvent =
  | { readonly type: 'connection_lost'; readonly error: unknown }
  | { readonly type: 'connection_restored' }
  | { readonly type: 'messages_expired'; readonly where: string; readonly count: number }

/** A transport on a Kafka topic. */
export function kafka(options: KafkaOptions): KafkaTransport {
  return new KafkaTransport(resolveOptions(options))
}
