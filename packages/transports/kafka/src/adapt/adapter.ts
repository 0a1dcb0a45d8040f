import { type Decision, RedriveError } from '@redrive/core'
import {
  type Awaitable,
  type Capabilities,
  type Enactment,
  LOST,
  placed,
  type Receiver,
  SETTLED,
  type Transport,
  type TransportNeeds,
  withTimeout,
} from '@redrive/runtime'
import { capabilitiesOf } from '../capabilities.ts'
import { Deaths, decodeCommit } from '../deaths.ts'
import { type HandOff, type HandOffDecision, handOffOf, isEnding } from '../enact.ts'
import type { KafkaDelivery } from '../headers.ts'
import { HandOut } from '../hand-out.ts'
import { Partition } from '../partition.ts'
import { nameOf, type TopicPartition } from '../topic-partition.ts'
import { type Topology, topologyOf } from '../topology.ts'
import type {
  BatchPayload,
  GroupJoined,
  KafkaJsAdmin,
  KafkaJsConsumer,
  KafkaJsProducer,
} from './client.ts'
import { makeMissing } from './declare.ts'
import { messageOf, recordsIn } from './records.ts'

export interface AdapterParts {
  readonly topic: string
  readonly group: string
  readonly consumer: KafkaJsConsumer
  readonly producer: KafkaJsProducer
  readonly admin: KafkaJsAdmin | undefined
  readonly order: 'none' | 'lane'
  readonly confirmTimeoutMs: number
}

/** 100 ms: what was finished since is handed out again after a crash. */
const COMMIT_MS = 100
/** 5 s for the last commit: a broker that does not answer must not keep us from closing. */
const CLOSE_MS = 5_000
/** What the clients say where a group has committed nothing. */
const NOTHING_COMMITTED = -1

/**
 * A transport on someone else's consumer and producer. They read, join and beat; `eachBatch` gives what
 * was read to the same partitions as our own consumer's, and returns at once, so that a slow handler
 * holds up neither the heartbeats nor the other partitions.
 */
export class Adapter implements Transport<KafkaDelivery> {
  readonly source: string
  readonly capabilities: Capabilities
  readonly topics: readonly string[]
  readonly #parts: AdapterParts
  readonly #tiers: ReadonlyMap<string, number>
  readonly #partitions = new Map<string, Partition>()
  /** Being begun: what the group has committed is being looked up. */
  readonly #beginning = new Map<string, Promise<Partition | undefined>>()
  readonly #paused = new Set<Partition>()
  readonly #handOut: HandOut
  /** A copy on its way, or stored: enacting again waits for it instead of making a second one. */
  readonly #sent = new WeakMap<KafkaDelivery, Promise<void>>()
  #member: string | undefined
  /** Undefined: the client does not say. */
  #assigned: ReadonlySet<string> | undefined
  /** False while the group changes: who has what is being decided. */
  #isStable = true
  #commitTimer: NodeJS.Timeout | undefined
  #lastCommit: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(parts: AdapterParts) {
    const { topic, group, consumer, order } = parts
    const { retries } = topologyOf(topic, group, 0)
    this.source = topic
    this.capabilities = {
      ...capabilitiesOf({ order, isTransactional: false }),
      deliveryCount: 'none',
    }
    this.topics = [topic, ...retries.map(({ name }) => name)]
    this.#parts = parts
    this.#handOut = new HandOut({
      source: topic,
      isHeldBack: () => false,
      onRoom: (partition) => {
        if (!partition.isClosing) this.#restrain(partition)
      },
      onLeft: () => this.#changed(),
    })
    this.#tiers = new Map(retries.map(({ name, tierMs }) => [name, tierMs]))
    consumer.on?.('consumer.group_join', (event) => this.#joined(event))
    consumer.on?.('consumer.rebalancing', () => this.#rebalancing())
    consumer.on?.('consumer.stop', () => this.#lose([...this.#partitions.values()]))
  }

  async open(needs?: TransportNeeds): Promise<void> {
    const { admin, topic, group } = this.#parts
    const retentionMs = needs?.deadLetterRetentionMs ?? Number.POSITIVE_INFINITY
    const topology: Topology = topologyOf(topic, group, retentionMs)
    if (admin !== undefined) await makeMissing(admin, topology)
  }

  receive(receiver: Receiver<KafkaDelivery>): void {
    this.#handOut.start(receiver)
  }

  // ---- what the client reads --------------------------------------------------------------------

  async eachBatch({ batch, resolveOffset }: BatchPayload): Promise<void> {
    const { topic, partition } = batch
    const first = Number(batch.messages[0]?.offset ?? batch.lastOffset())
    if (this.#isClosed) return this.#hold({ topic, partition })
    const ours = await this.#partition({ topic, partition }, first)
    // Read before it was taken away, or taken away while we looked: whoever has it next reads it again.
    if (ours === undefined || ours.isClosing || this.#isClosed) return
    const next = Number(batch.lastOffset()) + 1
    // After the group changed, a client reads again from what is committed.
    const records = recordsIn(batch).filter(({ offset }) => offset >= ours.position)
    if (next > ours.position) ours.take(records, next, Number(batch.highWatermark))
    resolveOffset(batch.lastOffset())
    this.#restrain(ours)
  }

  async #partition(place: TopicPartition, first: number): Promise<Partition | undefined> {
    const name = nameOf(place)
    const known = this.#partitions.get(name)
    if (known !== undefined || !this.#isOurs(place)) return known
    const begun = this.#beginning.get(name) ?? this.#begin(place, first)
    this.#beginning.set(name, begun)
    try {
      return await begun
    } finally {
      this.#beginning.delete(name)
    }
  }

  #isOurs(place: TopicPartition): boolean {
    return this.#assigned?.has(nameOf(place)) ?? true
  }

  async #begin(place: TopicPartition, first: number): Promise<Partition | undefined> {
    const member = this.#member
    const { offset, metadata } = await this.#committed(place)
    if (this.#member !== member || !this.#isOurs(place) || this.#isClosed) return undefined
    // The client begins there: at what is committed, or where it was told to.
    const isCommitted = offset >= 0 && offset <= first
    const mark = isCommitted ? offset : first
    const partition = new Partition({
      place,
      progress: decodeCommit(mark, isCommitted ? metadata : null).progress,
      deaths: new Deaths(),
      tierMs: this.#tiers.get(place.topic) ?? 0,
      position: mark,
      isOrdered: this.#parts.order === 'lane' && place.topic === this.source,
      onTaken: (taken) => this.#taken(taken),
      onOutOfRange: () => Promise.resolve(),
    })
    this.#partitions.set(nameOf(place), partition)
    return partition
  }

  async #committed({
    topic,
    partition,
  }: TopicPartition): Promise<{ offset: number; metadata: string | null }> {
    const { admin, group } = this.#parts
    const found = (await admin?.fetchOffsets({ groupId: group, topics: [topic] })) ?? []
    const of = found
      .find((one) => one.topic === topic)
      ?.partitions.find((one) => one.partition === partition)
    return { offset: Number(of?.offset ?? NOTHING_COMMITTED), metadata: of?.metadata ?? null }
  }

  /** What is read ahead is memory: the client leaves the partition alone until there is room. */
  #restrain(partition: Partition): void {
    const isPaused = this.#paused.has(partition)
    if (partition.wantsMore === !isPaused || this.#isClosed) return
    const { topic, partition: number } = partition
    const which = [{ topic, partitions: [number] }]
    if (isPaused) {
      this.#paused.delete(partition)
      this.#parts.consumer.resume(which)
    } else {
      this.#paused.add(partition)
      this.#parts.consumer.pause(which)
    }
  }

  #hold({ topic, partition }: TopicPartition): void {
    this.#parts.consumer.pause([{ topic, partitions: [partition] }])
  }

  // ---- the group changes ------------------------------------------------------------------------

  /** The last moment to say what is finished; the client does not wait for us. */
  #rebalancing(): void {
    this.#isStable = false
    void this.#commit(true)
  }

  #joined({ payload: { memberId, memberAssignment } }: GroupJoined): void {
    // A member of another name was away: someone else may have had all of them in between.
    const isOther = this.#member !== undefined && this.#member !== memberId
    this.#member = memberId
    this.#isStable = true
    this.#assigned = new Set(
      Object.entries(memberAssignment).flatMap(([topic, partitions]) =>
        partitions.map((partition) => nameOf({ topic, partition })),
      ),
    )
    const owned = [...this.#partitions.values()]
    this.#lose(isOther ? owned : owned.filter((partition) => !this.#isOurs(partition)))
    for (const [topic, partitions] of Object.entries(memberAssignment)) {
      // The client remembers what was paused before it was taken away.
      const free = partitions.filter((partition) => {
        const ours = this.#partitions.get(nameOf({ topic, partition }))
        return ours === undefined || !this.#paused.has(ours)
      })
      if (free.length > 0) this.#parts.consumer.resume([{ topic, partitions: free }])
    }
    this.#changed()
  }

  /** For clients that have no event: these go to someone else. Resolves when what is finished is committed. */
  async revoked(places: readonly TopicPartition[]): Promise<void> {
    const going = places.flatMap((place) => this.#partitions.get(nameOf(place)) ?? [])
    for (const partition of going) partition.isClosing = true
    await this.#commit()
    this.#lose(going)
  }

  #lose(going: readonly Partition[]): void {
    for (const partition of going) {
      partition.isClosing = true
      this.#partitions.delete(nameOf(partition))
      this.#paused.delete(partition)
    }
    this.#handOut.forget(going)
  }

  // ---- handing out ------------------------------------------------------------------------------

  #taken(partition: Partition): void {
    this.#changed()
    this.#handOut.ready(partition)
  }

  limit(count: number): void {
    this.#handOut.limit = count
    this.#handOut.pump()
  }

  pause(): void {
    this.#handOut.isPaused = true
  }

  resume(): void {
    this.#handOut.isPaused = false
    this.#handOut.pump()
  }

  // ---- what becomes of a delivery -----------------------------------------------------------------

  enact(delivery: KafkaDelivery, decision: Decision): Awaitable<Enactment> {
    if (isEnding(decision) && delivery.replayId === undefined) {
      const done = decision.kind === 'settle' ? SETTLED : placed('dropped')
      return this.#handOut.finish(delivery) ? done : LOST
    }
    if (decision.kind !== 'pause') return this.#handOff(delivery, decision)
    return this.#handOut.giveBack(delivery) ? placed('returned') : LOST
  }

  /** Copy, prove, release. */
  async #handOff(delivery: KafkaDelivery, decision: HandOffDecision): Promise<Enactment> {
    if (this.#handOut.partitionOf(delivery) === undefined) return LOST
    const { group, order, confirmTimeoutMs } = this.#parts
    const budgetBytes = this.capabilities.headerBudgetBytes
    const handOff = handOffOf(delivery, decision, { group, order, budgetBytes })
    try {
      await inTime(this.#sentOnce(delivery, handOff), confirmTimeoutMs)
    } catch (error) {
      const isOurs = this.#handOut.partitionOf(delivery) !== undefined
      return isOurs ? { kind: 'unknown', error } : LOST
    }
    if (!this.#handOut.finish(delivery)) return LOST
    await this.committed()
    return placed(handOff.place, handOff.truncated)
  }

  #sentOnce(delivery: KafkaDelivery, { to, copy }: HandOff): Promise<void> {
    const known = this.#sent.get(delivery)
    if (known !== undefined) return known
    const messages = [messageOf(to.partition, copy)]
    // Acknowledged by all replicas in sync: both clients' default, and one of them refuses to be told here.
    const sent = this.#parts.producer.send({ topic: to.topic, messages }).then(() => undefined)
    this.#sent.set(delivery, sent)
    // The broker said no, or can no longer say: the next time it is sent anew.
    sent.catch(() => this.#sent.delete(delivery))
    return sent
  }

  // ---- committing -------------------------------------------------------------------------------

  #changed(): void {
    if (this.#commitTimer !== undefined || this.#isClosed) return
    this.#commitTimer = setTimeout(() => {
      this.#commitTimer = undefined
      void this.#commit()
    }, COMMIT_MS)
  }

  /** Resolves when all that is finished is committed, or it turned out that it cannot be. */
  committed(): Promise<void> {
    return this.#commit()
  }

  /** One after the other, or an older one could undo a newer one. */
  #commit(isLast = false): Promise<void> {
    this.#lastCommit = this.#lastCommit.then(() => this.#commitNow(isLast))
    return this.#lastCommit
  }

  async #commitNow(isLast: boolean): Promise<void> {
    const changed = [...this.#partitions.values()].filter((partition) => partition.isChanged)
    if (changed.length === 0 || !(this.#isStable || isLast)) return
    const versions = changed.map(({ version }) => version)
    try {
      await this.#parts.consumer.commitOffsets(
        changed.map(({ topic, partition, progress }) => ({
          topic,
          partition,
          offset: String(progress.mark),
          metadata: progress.encode().text,
        })),
      )
      changed.forEach((partition, index) => {
        partition.committedVersion = versions[index] as number
      })
    } catch {
      // Refused or unanswered: nothing is lost by it, and what it said is said again.
      this.#changed()
    }
  }

  /** The consumer must still be connected: what is finished is committed with it. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.pause()
    // An error is ignored: what is not committed is consumed again.
    await withTimeout(Promise.allSettled([this.#commit()]), CLOSE_MS, () => undefined)
    this.#isClosed = true
    clearTimeout(this.#commitTimer)
    for (const partition of this.#partitions.values()) this.#hold(partition)
    this.#handOut.close()
  }
}

/** The answer, if it comes in time; it may still come later. */
const inTime = <T>(answer: Promise<T>, withinMs: number): Promise<T> =>
  withTimeout(answer, withinMs, () => {
    throw unconfirmed(withinMs)
  })

const unconfirmed = (ms: number) =>
  new RedriveError('OUTCOME_UNKNOWN', `Kafka has not answered within ${ms} ms.`)
