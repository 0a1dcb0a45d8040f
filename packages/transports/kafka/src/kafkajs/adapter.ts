import { type Decision, RedriveError } from '@redrive/core'
import {
  type Awaitable,
  type Capabilities,
  type Enactment,
  LOST,
  movedTo,
  type Receiver,
  SETTLED,
  type Transport,
  type TransportGroup,
  type TransportNeeds,
} from '@redrive/runtime'
import { withTimeout } from '@redrive/runtime/internal'
import { capabilitiesOf } from '../capabilities.ts'
import { formsOf, type HandOff, type HandOffDecision, isEnding, unfinished } from '../enact.ts'
import { appendTimeOf, type Copy, type KafkaDelivery, TIME_RECORD } from '../delivery.ts'
import { BrokerClock } from '../consume/broker-clock.ts'
import { Dispatcher } from '../consume/dispatcher.ts'
import type { TopicPartition } from '../protocol/topic-partition.ts'
import { type Topology, topologyOf } from '../topology.ts'
import { Assignment } from './assignment.ts'
import type {
  BatchPayload,
  KafkaJsAdmin,
  KafkaJsConsumer,
  KafkaJsProducer,
  SentRecord,
} from './client.ts'
import { Committer } from './committer.ts'
import { makeMissing } from './declare.ts'
import { messageOf, recordsIn } from './records.ts'

export interface AdapterOptions {
  readonly topic: string
  readonly group: string
  readonly consumer: KafkaJsConsumer
  readonly producer: KafkaJsProducer
  readonly admin: KafkaJsAdmin | undefined
  readonly order: 'none' | 'lane'
  readonly confirmTimeoutMs: number
}

/** 5 s for the last commit: a broker that does not answer must not block closing. */
const CLOSE_MS = 5_000

/**
 * A transport that uses the consumer and producer of the application. These join the group, send heartbeats
 * and read. `eachBatch` passes the records to the same `Partition` class as Redrive's consumer. It returns
 * immediately, so that a slow handler blocks neither the heartbeats nor other partitions.
 */
export class Adapter implements Transport<KafkaDelivery> {
  readonly source: string
  readonly system = 'kafka'
  readonly capabilities: Capabilities
  readonly group: TransportGroup
  readonly topics: readonly string[]
  readonly #options: AdapterOptions
  readonly #committer: Committer
  readonly #assignment: Assignment
  readonly #dispatcher: Dispatcher
  /** Copies that were sent and may be stored. Enacting again waits for them instead of sending a second one. */
  readonly #sent = new WeakMap<KafkaDelivery, Promise<HandOff>>()
  #handler: string | undefined

  constructor(options: AdapterOptions) {
    const { topic, group, consumer, admin, order } = options
    const { retries } = topologyOf(topic, group, 0)
    this.source = topic
    this.group = { name: topic, owner: consumer }
    this.capabilities = {
      ...capabilitiesOf({ order, isTransactional: false }),
      deliveryCount: 'none',
    }
    this.topics = [topic, ...retries.map(({ name }) => name)]
    this.#options = options
    this.#dispatcher = new Dispatcher({
      source: topic,
      clock: new BrokerClock((to) => this.#storeTimeRecord(to)),
      isHeldBack: () => false,
      onRoom: (partition) => {
        if (!partition.isClosing) this.#assignment.pauseOrResume(partition)
      },
      onLeft: () => this.#committer.changed(),
    })
    this.#committer = new Committer({
      consumer,
      partitions: () => this.#assignment.partitions,
      isStable: () => this.#assignment.isStable,
    })
    this.#assignment = new Assignment({
      consumer,
      admin,
      group,
      committer: this.#committer,
      tiers: new Map(retries.map(({ name, tierMs }) => [name, tierMs])),
      isOrdered: (name) => order === 'lane' && name === topic,
      onTaken: (partition) => {
        this.#committer.changed()
        this.#dispatcher.ready(partition)
      },
      onForgotten: (partitions) => this.#dispatcher.forget(partitions),
    })
  }

  async open(needs?: TransportNeeds): Promise<void> {
    const { admin, topic, group } = this.#options
    const retentionMs = needs?.deadLetterRetentionMs ?? Number.POSITIVE_INFINITY
    this.#handler = needs?.handler
    const topology: Topology = topologyOf(topic, group, retentionMs)
    if (admin !== undefined) await makeMissing(admin, topology)
  }

  receive(receiver: Receiver<KafkaDelivery>): void {
    this.#dispatcher.start(receiver)
  }

  async eachBatch({ batch, resolveOffset }: BatchPayload): Promise<void> {
    const { topic, partition } = batch
    const first = Number(batch.messages[0]?.offset ?? batch.lastOffset())
    if (this.#assignment.isClosed) return this.#assignment.pause({ topic, partition })
    const ours = await this.#assignment.partition({ topic, partition }, first)
    // The partition was revoked after the read, or during the lookup: its next owner reads the batch again.
    if (ours === undefined || ours.isClosing || this.#assignment.isClosed) return
    const next = Number(batch.lastOffset()) + 1
    // After a rebalance, a client reads again from the committed offset.
    const records = recordsIn(batch).filter(({ offset }) => offset >= ours.position)
    if (next > ours.position) ours.take(records, next, Number(batch.highWatermark))
    resolveOffset(batch.lastOffset())
    this.#assignment.pauseOrResume(ours)
  }

  /** Releases partitions, for clients without rebalance events. Resolves when their finished records are committed. */
  revoked(topicPartitions: readonly TopicPartition[]): Promise<void> {
    return this.#assignment.revoked(topicPartitions)
  }

  limit(count: number): void {
    this.#dispatcher.limit = count
    this.#dispatcher.pump()
  }

  pause(): void {
    this.#dispatcher.isPaused = true
  }

  resume(): void {
    this.#dispatcher.isPaused = false
    this.#dispatcher.pump()
  }

  enact(delivery: KafkaDelivery, decision: Decision): Awaitable<Enactment> {
    if (isEnding(decision) && delivery.replayId === undefined) {
      const done = decision.kind === 'settle' ? SETTLED : movedTo('dropped')
      return this.#dispatcher.finish(delivery) ? done : LOST
    }
    if (decision.kind !== 'pause') return this.#handOff(delivery, decision)
    return this.#dispatcher.returnToPartition(delivery) ? movedTo('returned') : LOST
  }

  /** Sends a copy, waits for its acknowledgement, then finishes the original. */
  async #handOff(delivery: KafkaDelivery, decision: HandOffDecision): Promise<Enactment> {
    if (this.#dispatcher.partitionOf(delivery) === undefined) return LOST
    const { group, order } = this.#options
    const budgetBytes = this.capabilities.headerBudgetBytes
    const settings = { group, order, budgetBytes, handler: this.#handler }
    let result: Enactment = LOST
    for (const form of formsOf(delivery, decision, settings)) {
      result = await this.#store(delivery, form)
      if (this.#dispatcher.partitionOf(delivery) === undefined) return LOST
      if (result.kind !== 'refused' || !result.isTooLarge) break
    }
    if (result.kind !== 'done') return result
    if (!this.#dispatcher.finish(delivery)) return LOST
    await this.committed()
    return result
  }

  async #store(delivery: KafkaDelivery, form: HandOff): Promise<Enactment> {
    try {
      const sent = this.#sentOnce(delivery, form)
      const { done } = await inTime(sent, this.#options.confirmTimeoutMs)
      return done
    } catch (error) {
      return unfinished(error, form.to)
    }
  }

  #sentOnce(delivery: KafkaDelivery, form: HandOff): Promise<HandOff> {
    const known = this.#sent.get(delivery)
    if (known !== undefined) return known
    const sent = this.#send(form.to, form.copy).then(() => form)
    this.#sent.set(delivery, sent)
    // The broker rejected it, or the outcome is unknown: the next call sends it again.
    sent.catch(() => this.#sent.delete(delivery))
    return sent
  }

  /** Resolves when all replicas in sync have it: the default of both clients, and one of them does not accept the option here. */
  async #send({ topic, partition }: TopicPartition, copy: Copy): Promise<unknown> {
    return this.#options.producer.send({ topic, messages: [messageOf(partition, copy)] })
  }

  async #storeTimeRecord(to: TopicPartition): Promise<number | undefined> {
    const [stored] = ((await this.#send(to, TIME_RECORD)) ?? []) as readonly SentRecord[]
    return appendTimeOf(Number(stored?.logAppendTime))
  }

  /** Resolves when all finished records are committed, or when the commit failed. */
  committed(): Promise<void> {
    return this.#committer.commit()
  }

  /** Commits finished records and stops. The consumer must still be connected. */
  async close(): Promise<void> {
    if (this.#assignment.isClosed) return
    this.pause()
    // An error is ignored: uncommitted records are consumed again.
    await withTimeout(Promise.allSettled([this.committed()]), CLOSE_MS, () => undefined)
    this.#committer.stop()
    this.#assignment.close()
    this.#dispatcher.close()
  }
}

/** Waits for the answer; rejects after `withinMs`. The answer may still arrive later. */
const inTime = <T>(answer: Promise<T>, withinMs: number): Promise<T> =>
  withTimeout(answer, withinMs, () => {
    throw unconfirmed(withinMs)
  })

const unconfirmed = (ms: number) =>
  new RedriveError(
    'OUTCOME_UNKNOWN',
    `Kafka did not acknowledge a copy within ${ms} ms, so it may or may not be stored. Redrive writes it again. Check the brokers if this repeats.`,
  )
