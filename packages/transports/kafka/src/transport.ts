import type { Decision } from '@redrive/core'
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
import { capabilitiesOf } from './capabilities.ts'
import { Consumption } from './consume/consumption.ts'
import { missingTopic, prepare } from './declare.ts'
import { formsOf, type HandOff, type HandOffDecision, isEnding, unfinished } from './enact.ts'
import type { KafkaDelivery } from './delivery.ts'
import { nameOf, type TopicPartition } from './protocol/topic-partition.ts'
import { type KafkaOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import type { Partition } from './consume/partition.ts'
import { Publisher } from './publish.ts'
import { topologyOf } from './topology.ts'
import { Transactions } from './transactions.ts'

/** 10 s: longer than a broker waits for the first members of a group, and than most hand-overs. */
const JOIN_MS = 10_000

/** 2 s for hand-offs in flight to finish: a broker that does not answer must not block closing. */
const CLOSE_MS = 2_000

/** A transport that consumes a topic and its retry topics, and produces copies to retry and dead-letter topics. */
export class KafkaTransport implements Transport<KafkaDelivery> {
  readonly source: string
  readonly system = 'kafka'
  readonly capabilities: Capabilities
  readonly group: TransportGroup
  readonly #options: ResolvedOptions
  readonly #consumption: Consumption
  readonly #publisher: Publisher
  readonly #transactions: Transactions | undefined
  /** Copies that were sent and may be stored. Enacting again waits for them instead of sending a second one. */
  readonly #sent = new WeakMap<KafkaDelivery, Promise<HandOff>>()
  readonly #inFlight = new Set<Promise<Enactment>>()
  #isClosed = false
  /** Partitions of the topic at the last rebalance; undefined before the first. */
  #assigned: number | undefined
  #needs: TransportNeeds | undefined
  /** Number of partitions for which the other topics are prepared. */
  #partitions = 0
  /** Brokers and coordinators that do not answer. */
  readonly #unreachable = new Set<string>()

  /** @internal */
  constructor(options: ResolvedOptions) {
    const { topic, group, client, order, from, sessionMs, drainMs, confirmTimeoutMs } = options
    this.source = topic
    this.group = { name: `kafka ${addressesOf(client.bootstrapBrokers)} ${topic} ${group}` }
    this.capabilities = capabilitiesOf(options)
    this.#options = options
    this.#publisher = new Publisher({ client, confirmTimeoutMs })
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
      onResult: (where, error) => this.#setReachable(where, error),
      onMissing: (name, isMissing) => this.#reportMissing(name, isMissing),
      onAssigned: (assigned) => {
        if (assigned !== this.#assigned) this.#report({ type: 'assignment_changed', assigned })
        this.#assigned = assigned
      },
      needsPreparation: (topicPartition) => this.#isAdded(topicPartition),
      prepare: (topicPartitions) => this.#prepareAdded(topicPartitions),
      onExpired: (topicPartition, count) =>
        this.#report({ type: 'messages_expired', where: nameOf(topicPartition), count }),
      onRecreated: (topicPartition) =>
        this.#report({ type: 'topic_recreated', where: nameOf(topicPartition) }),
    })
    this.#transactions = options.isTransactional
      ? new Transactions(options, this.#consumption)
      : undefined
  }

  async open(needs?: TransportNeeds): Promise<void> {
    this.#needs = needs
    await this.#prepare(true)
  }

  async #prepare(isFirst: boolean): Promise<void> {
    const { topic, group, client, isDeclaring } = this.#options
    const retentionMs = this.#needs?.deadLetterRetentionMs ?? Number.POSITIVE_INFINITY
    const topology = topologyOf(topic, group, retentionMs)
    this.#partitions = await prepare(client, topology, { isDeclaring, isFirst })
  }

  /** Whether the partition was added since the topics were prepared. */
  #isAdded({ topic, partition }: TopicPartition): boolean {
    return topic === this.source && partition >= this.#partitions
  }

  /** Gives the retry and dead-letter topics as many partitions as the source. A copy keeps its partition number. */
  async #prepareAdded(topicPartitions: readonly TopicPartition[]): Promise<void> {
    await this.#prepare(false)
    const missing = topicPartitions.find((one) => this.#isAdded(one))
    if (missing !== undefined)
      throw new Error(`The broker does not report ${nameOf(missing)} yet, although it is assigned.`)
  }

  /** Joins the group. Resolves when it is joined, or after 10 s with a report that it is not. */
  async receive(receiver: Receiver<KafkaDelivery>): Promise<void> {
    this.#consumption.start(receiver)
    await withTimeout(this.#consumption.joined, JOIN_MS, () => {
      this.#setReachable('the group', notJoined(this.#options.group))
    })
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
      const done = decision.kind === 'settle' ? SETTLED : movedTo('dropped')
      return this.#consumption.finish(delivery) ? done : LOST
    }
    if (decision.kind !== 'pause') return this.#track(this.#handOff(delivery, decision))
    return this.#consumption.returnToPartition(delivery) ? movedTo('returned') : LOST
  }

  #track(handOff: Promise<Enactment>): Promise<Enactment> {
    this.#inFlight.add(handOff)
    return handOff.finally(() => this.#inFlight.delete(handOff))
  }

  /** Sends a copy, waits for its acknowledgement, then finishes the original. With transactions, the three are one step. */
  async #handOff(delivery: KafkaDelivery, decision: HandOffDecision): Promise<Enactment> {
    const partition = this.#consumption.partitionOf(delivery)
    if (partition === undefined) return LOST
    const { group, order } = this.#options
    const budgetBytes = this.capabilities.headerBudgetBytes
    const settings = { group, order, budgetBytes, handler: this.#needs?.handler }
    let result: Enactment = LOST
    for (const form of formsOf(delivery, decision, settings)) {
      result = await this.#store(delivery, partition, form)
      if (this.#consumption.partitionOf(delivery) === undefined) return LOST
      if (result.kind !== 'refused' || !result.isTooLarge) break
    }
    if (result.kind !== 'done') return result
    if (!this.#consumption.finish(delivery)) return LOST
    // Committed before returning: the caller may stop next, or run a record that crashes this process.
    await this.#consumption.committed()
    return result
  }

  async #store(delivery: KafkaDelivery, partition: Partition, form: HandOff): Promise<Enactment> {
    try {
      const sent = this.#sentOnce(delivery, partition, form)
      const { done } = await this.#publisher.inTime(sent)
      return done
    } catch (error) {
      return unfinished(error, form.to)
    }
  }

  #sentOnce(delivery: KafkaDelivery, partition: Partition, form: HandOff): Promise<HandOff> {
    const known = this.#sent.get(delivery)
    if (known !== undefined) return known
    const sending =
      this.#transactions?.send(partition, delivery.raw, form) ??
      this.#publisher.send(form.to, form.copy)
    const sent = sending.then(() => form)
    this.#sent.set(delivery, sent)
    // The broker rejected it, or the outcome is unknown: the next call sends it again.
    sent.catch(() => this.#sent.delete(delivery))
    return sent
  }

  /** Returns the number of records of the assigned partitions that are not committed; undefined before they are read. */
  lag(): number | undefined {
    return this.#consumption.lag
  }

  /** Commits all settled records now and resolves afterwards. Without a call, this happens every 100 ms. */
  committed(): Promise<void> {
    return this.#consumption.committed()
  }

  async close(): Promise<void> {
    void this.#consumption.pause()
    // Errors are ignored: the caller of `enact` receives them, and a client that fails to close is no longer used.
    await withTimeout(Promise.allSettled(this.#inFlight), CLOSE_MS, () => undefined)
    this.#isClosed = true
    await this.#consumption.close()
    const closing = [this.#publisher, this.#transactions].flatMap((one) => one?.close() ?? [])
    await withTimeout(Promise.allSettled(closing), CLOSE_MS, () => undefined)
  }

  /** Reports the connection as lost when the first broker does not answer, and as restored when all answer again. */
  #setReachable(where: string, error: unknown): void {
    const before = this.#unreachable.size
    if (error === undefined) this.#unreachable.delete(where)
    else this.#unreachable.add(where)
    const { size } = this.#unreachable
    if (this.#isClosed || (before === 0) === (size === 0)) return
    this.#report(size > 0 ? { type: 'connection_lost', error } : { type: 'connection_restored' })
  }

  #reportMissing(where: string, isMissing: boolean): void {
    const { topic, group, isDeclaring } = this.#options
    const spec = topologyOf(topic, group, 0).retries.find(({ name }) => name === where)
    const problem = isMissing ? missingTopic(where, spec, isDeclaring) : undefined
    if (!this.#isClosed) this.#report({ type: 'topic_missing', where, problem })
  }

  #report(event: TransportEvent): void {
    publishEvent({ ...event, at: Date.now(), source: this.source }, this)
  }
}

const notJoined = (group: string) =>
  new Error(
    `The consumer has not joined the group "${group}" after ${JOIN_MS / 1_000} s. It continues to try. Other members may still hand over their partitions, or the coordinator does not respond.`,
  )

type TransportEvent =
  | { readonly type: 'connection_lost'; readonly error: unknown }
  | { readonly type: 'connection_restored' }
  | { readonly type: 'assignment_changed'; readonly assigned: number }
  | { readonly type: 'messages_expired'; readonly where: string; readonly count: number }
  | { readonly type: 'topic_missing'; readonly where: string; readonly problem: string | undefined }
  | { readonly type: 'topic_recreated'; readonly where: string }

/** Creates a transport for a Kafka topic. */
export function kafka(options: KafkaOptions): KafkaTransport {
  return new KafkaTransport(resolveOptions(options))
}

/** Returns the addresses in one order, so that two lists of the same brokers are equal. */
function addressesOf(brokers: ResolvedOptions['client']['bootstrapBrokers']): string {
  const addresses = brokers.map((one) =>
    typeof one === 'string' ? one : `${one.host}:${one.port}`,
  )
  return addresses.toSorted((a, b) => a.localeCompare(b)).join()
}
