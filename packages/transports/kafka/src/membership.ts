import {
  type BaseOptions,
  type ConsumerGroupJoinPayload,
  Consumer,
  COOPERATIVE_STICKY_ASSIGNOR,
  type GroupAssignment,
} from '@platformatic/kafka'
import { assignEvenly } from './assign.ts'
import { missingNoBroker } from './client.ts'
import type { OnTrouble } from './fetch.ts'
import { nameOf, type TopicPartition } from './topic-partition.ts'

/** Who we are to the group, and since which of its rounds. What is committed says it, and the broker checks. */
export interface Epoch {
  readonly member: string
  readonly generation: number
}

export interface MembershipParts {
  readonly client: BaseOptions
  readonly group: string
  readonly topics: readonly string[]
  readonly sessionMs: number
  readonly drainMs: number
  readonly onJoined: () => void
  readonly onAssigned: (places: readonly TopicPartition[]) => void
  /** They go to someone else when this resolves: until then they are ours. */
  readonly onRevoked: (places: readonly TopicPartition[]) => Promise<void>
  /** They are someone else's already. */
  readonly onLost: (places: readonly TopicPartition[]) => void
  readonly onTrouble: OnTrouble
}

/** 200 ms between two tries to join or to be heard. */
const RETRY_MS = 200
/** 3 s at most between two heartbeats, or a rebalance waits for us. */
const HEARTBEAT_MS = 3_000
/** A join is answered when all others have joined, too. */
const ANSWER_MS = 5_000
const WHERE = 'the group'
const NO_USER_DATA = Buffer.alloc(0)

/**
 * Our place in the group. The client library joins, beats and joins again on its own, independent of
 * handlers; cooperatively, so that a partition that stays ours is never taken away. Its one hook comes
 * before each join: there we finish what is about to go to someone else.
 */
export class Membership {
  readonly #parts: MembershipParts
  readonly #consumer: Consumer<Buffer, Buffer, Buffer, Buffer>
  readonly #owned = new Map<string, TopicPartition>()
  #epoch: Epoch | undefined
  #isLeaving = false

  constructor(parts: MembershipParts) {
    this.#parts = parts
    const { client, group, sessionMs, drainMs, topics } = parts
    const rebalanceMs = sessionMs + drainMs
    const consumer = new Consumer({
      ...client,
      groupId: group,
      sessionTimeout: sessionMs,
      rebalanceTimeout: rebalanceMs,
      heartbeatInterval: Math.min(HEARTBEAT_MS, sessionMs / 3),
      requestTimeout: rebalanceMs + ANSWER_MS,
      protocols: [{ name: COOPERATIVE_STICKY_ASSIGNOR, version: 3 }],
      partitionAssigner: assignEvenly,
      protocolsMetadata: async () => {
        await this.#beforeJoin()
        return NO_USER_DATA
      },
      autocommit: false,
      retries: true,
      retryDelay: RETRY_MS,
    })
    this.#consumer = missingNoBroker(consumer)
    this.#consumer.topics.trackAll(...topics)
    this.#consumer.on('consumer:group:join', (joined) => this.#joined(joined))
    this.#consumer.on('consumer:heartbeat:error', ({ error }) => parts.onTrouble(WHERE, error))
    this.#consumer.on('consumer:heartbeat:end', () => parts.onTrouble(WHERE, undefined))
    this.#consumer.on('error', (error: unknown) => void this.#again(error))
  }

  /** Undefined before the group has first taken us in. */
  get epoch(): Epoch | undefined {
    return this.#epoch
  }

  join(): void {
    this.#consumer.joinGroup({}).catch((error: unknown) => this.#again(error))
  }

  /** The client library gave up, for a reason that no repetition cures: it may have been cured by someone. */
  async #again(error: unknown): Promise<void> {
    if (this.#isLeaving) return
    this.#parts.onTrouble(WHERE, error)
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS * 5).unref())
    if (!this.#isLeaving) this.join()
  }

  async #beforeJoin(): Promise<void> {
    const { memberId, generationId } = this.#consumer
    const kept = new Set(placesIn(this.#consumer.assignments ?? []).map(nameOf))
    const going = [...this.#owned].filter(([name]) => !kept.has(name)).map(([, place]) => place)
    if (going.length === 0) return
    // In a later round than the one we know, and still a member: the group asks us to let go of them.
    const isAsked = memberId === this.#epoch?.member && generationId > this.#epoch.generation
    if (isAsked) {
      this.#epoch = { member: memberId, generation: generationId }
      await this.#parts.onRevoked(going)
    } else {
      this.#parts.onLost(going)
    }
    for (const place of going) this.#owned.delete(nameOf(place))
  }

  #joined({ memberId, generationId = 0, assignments = [] }: ConsumerGroupJoinPayload): void {
    const places = placesIn(assignments)
    const names = new Set(places.map(nameOf))
    const gone = [...this.#owned.values()].filter((place) => !names.has(nameOf(place)))
    for (const place of gone) this.#owned.delete(nameOf(place))
    if (gone.length > 0) this.#parts.onLost(gone)
    this.#epoch = { member: memberId, generation: generationId }
    this.#parts.onTrouble(WHERE, undefined)
    const added = places.filter((place) => !this.#owned.has(nameOf(place)))
    for (const place of added) this.#owned.set(nameOf(place), place)
    if (added.length > 0) this.#parts.onAssigned(added)
    this.#parts.onJoined()
  }

  /** By identity: one that went and came back is another, and someone else may have had it in between. */
  owns(place: TopicPartition): boolean {
    return this.#owned.get(nameOf(place)) === place
  }

  async leave(): Promise<void> {
    this.#isLeaving = true
    await this.#consumer.close(true)
  }
}

const placesIn = (assignments: readonly GroupAssignment[]): readonly TopicPartition[] =>
  assignments.flatMap(({ topic, partitions }) =>
    partitions.map((partition) => ({ topic, partition })),
  )
