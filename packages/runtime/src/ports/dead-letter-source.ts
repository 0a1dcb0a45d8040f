import type { Delivery, FailureClass } from '@redrive/core'

/** A dead letter as the control plane reads it from a broker, written by Redrive or another library. */
export interface DrainedDeadLetter {
  readonly delivery: Delivery
  /** The queue or topic it first came from. A replay publishes it there. */
  readonly origin: string
  /**
   * Data that only the transport understands, as text that can be stored. Pass it with the replay, and the
   * message is published as it arrived.
   */
  readonly envelope: Readonly<Record<string, string>>
  readonly quarantined: boolean
  readonly class: FailureClass
  readonly reason: string
  /**
   * Whether the message has a stable id. `'stable'`: `delivery.id` is the same whenever it is drained.
   * Otherwise each drain creates a new id: `'generated'` was never drained before, `'generated_redelivered'` may
   * have been drained before without a release.
   */
  readonly identity: 'stable' | 'generated' | 'generated_redelivered'
  /** Name of the consumer whose handler failed. Absent: it has none, or another library or an older release wrote the dead letter. */
  readonly handler?: string
  /** The stack of the last failure, when the policy of the consumer includes it and it fits. */
  readonly stack?: string
  /**
   * Why it cannot be a dead letter like others: a reader failed on its headers, or a replay with these headers could
   * not be published. The headers are complete, and the other fields may be incomplete. The control plane sets it aside.
   */
  readonly problem?: DrainProblem
}

export interface DrainProblem {
  readonly code: 'unreadable' | 'headers_not_publishable'
  /** What is wrong, as a sentence. */
  readonly message: string
}

/** A consumer's confirmation that a replay is done. */
export interface ReplayConfirmation {
  readonly replayId: string
  /** `'already_handled'`: the key was in its inbox, so nothing was done again. `'dropped'`: the policy dropped it. */
  readonly outcome: 'handled' | 'already_handled' | 'dropped'
  /** Time by the consumer's clock. */
  readonly at: number
}

/**
 * The control plane's view of a broker's dead letters.
 *
 * - `drain` returns a batch and keeps every message in the broker until `release` is called for
 *   it. After a crash in between the messages are drained again; none is lost.
 * - Drains are exclusive. While a batch is open, no other batch of this or another control plane holds its
 *   dead letters. The broker may move them to another control plane (rebalance, end of a lease). Then at
 *   most one batch releases each of them: the release of the other rejects with `DELIVERY_LOST`, or
 *   changes nothing that it does not hold.
 * - `publish` resolves only when the broker has confirmed that the replay is stored. Publishing the same
 *   replay id again is allowed. `duplicateReplays` of the capabilities states whether the broker discards
 *   the second copy; where it does not, both carry the same key and the inbox makes one effect of them.
 * - `confirmations` returns the consumers' confirmations of replays, and keeps them until they are released.
 */
export interface DeadLetterSource {
  readonly source: string
  /**
   * What `publish` does. `'copy'`: it publishes a copy and the dead letter stays until it is released.
   * `'in_place'`: it moves the dead letter itself, and a later release changes nothing.
   */
  readonly replay: 'copy' | 'in_place'
  drain(options: { readonly limit: number }): Promise<DrainedBatch>
  publish(replay: ReplayMessage): Promise<void>
  /**
   * Stores drained dead letters in their dead-letter queues again, with the bytes and headers that they had there.
   * Resolves when the broker has confirmed all of them. If it rejects, some may be stored. Absent: the transport
   * cannot do it.
   */
  putBack?(deadLetters: readonly DrainedDeadLetter[]): Promise<void>
  /** Returns waiting confirmations, at most `limit`. With none, it soon returns an empty batch. One may be returned twice. */
  confirmations(options: { readonly limit: number }): Promise<ConfirmationBatch>
  /** Counts the waiting dead letters, including quarantine. */
  depth(): Promise<number>
  /**
   * Returns each queue or topic that `drain` reads. One that consumers create later is left out until it exists.
   * Absent: the broker has no separate queues.
   */
  queues?(): Promise<readonly DrainedQueue[]>
  /**
   * Counts the messages of the source that consumers could handle now and have not finished. Dead letters
   * and retries that wait for their time do not count. Deliveries in flight may count, where the broker
   * cannot distinguish them; with no consumer the number is exact. Absent: the broker cannot count them.
   */
  lag?(): Promise<number>
  close(): Promise<void>
}

/** A queue or topic that `drain` reads. */
export interface DrainedQueue {
  readonly name: string
  /** Number of waiting dead letters; undefined: the queue or topic does not exist. */
  readonly depth: number | undefined
}

export interface DrainedBatch {
  readonly deadLetters: readonly DrainedDeadLetter[]
  /** Removes the messages from the broker, because the catalog has stored them. */
  release(): Promise<void>
  /** Leaves the messages in the broker. */
  abandon(): Promise<void>
}

export interface ConfirmationBatch {
  readonly confirmations: readonly ReplayConfirmation[]
  /** Deletes the confirmations, because they have been stored. */
  release(): Promise<void>
  abandon(): Promise<void>
}

/**
 * One dead letter to replay; the replay id identifies this replay. Key and bytes are unchanged, unless a
 * user edited it: then `delivery.bytes`, `delivery.key` and `delivery.replaces` contain the edit.
 */
export interface ReplayMessage {
  readonly deadLetter: DrainedDeadLetter
  readonly replayId: string
}
