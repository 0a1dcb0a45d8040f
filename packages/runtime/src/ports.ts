import type {
  DeadLetter,
  Decision,
  Delivery,
  Failure,
  FailureClass,
  FailureCycle,
  Quarantine,
} from '@redrive/core'
import type { Capabilities } from './capabilities.ts'

/** Something that may be there already: the hot path must not pay for a promise it does not need. */
export type Awaitable<T> = T | Promise<T>

/**
 * An adapter that receives deliveries and enacts decisions on one broker.
 *
 * Obligations, checked by `exerciseTransport`:
 * - **Copy, prove, release.** A hand-off (retry, dead letter, quarantine) stores a copy, waits for
 *   the broker's proof, and only then releases the original. When the proof is unknown, the
 *   original stays and the answer is `unknown`.
 * - **Enacting twice has one effect.** After `unknown` the runtime enacts the same decision for the
 *   same delivery again; a copy that was proven is not made twice.
 * - **Never early.** A retry is not delivered before its `dueAt`, measured by the broker's clock from
 *   the moment of the hand-off.
 * - **Replays are confirmed.** Settling or dropping a delivery with a replay id stores a confirmation
 *   first and waits for the broker's proof, as a hand-off does.
 * - **Untouched.** Bytes and the producer's headers travel as they came.
 * - **One owner.** A delivery stays with its receiver while the transport lives, however long the handler
 *   runs: a transport with leases renews them. A stale owner changes nothing: its enactments return `lost`.
 * - **No rule lives here.** What to do was decided; how to do it is all a transport knows.
 *
 * Order of calls. The runtime calls `open` once, then `limit` or `pause`, then `receive` once. After
 * that it calls `enact`, `limit`, `pause` and `resume` in any order, also while an earlier `enact` or
 * `pause` is unfinished. `close` is the last call. It may come first when `open` rejected, and twice.
 *
 * | call      | before it        | effect                                                             |
 * |-----------|------------------|--------------------------------------------------------------------|
 * | `open`    | nothing          | connects; delivers nothing yet                                     |
 * | `limit`   | `open`           | before `receive`: holds from the first delivery on; later: soon    |
 * | `pause`   | `open`           | before `receive`: nothing is delivered until `resume`              |
 * | `receive` | `open`, `limit`  | deliveries begin, unless paused; no `resume` is needed             |
 * | `resume`  | `pause`          | deliveries begin or continue                                       |
 * | `enact`   | its delivery     | at most one at a time for each delivery                            |
 * | `close`   | anything         | resolves; no delivery arrives afterwards                           |
 */
export interface Transport<D extends Delivery = Delivery> {
  /** The queue, topic, subject or table, as people know it. */
  readonly source: string
  readonly capabilities: Capabilities

  /** Connects, and declares or verifies what it needs. Rejects with a sentence that says what to do. */
  open(needs?: TransportNeeds): Promise<void>

  /** Starts handing deliveries to the receiver. Called once, after `open` and the first `limit` or `pause`. */
  receive(receiver: Receiver<D>): Awaitable<void>

  /** Does what was decided and says what was really done. Must not throw for broker trouble: that is `unknown`. */
  enact(delivery: D, decision: Decision): Awaitable<Enactment>

  /**
   * Sets the maximum number of unsettled deliveries. Called before `receive`, it holds from the first
   * delivery on. A later change takes effect soon: a few more may already be on their way.
   */
  limit(count: number): void

  /**
   * Stops new deliveries without giving up the connection; those in flight stay valid. Waits for the read
   * in progress: after it resolved, no delivery arrives until `resume`.
   */
  pause(): Awaitable<void>
  resume(): void

  /**
   * Releases everything. Deliveries that are not settled return to the source, uncounted where the broker
   * can. Resolves also when `open` was never called or rejected, and when called again.
   */
  close(options: { readonly drainMs: number }): Promise<void>
}

/** What the policy asks of the broker itself. */
export interface TransportNeeds {
  /** How long a dead letter is kept, where the broker can be told. */
  readonly deadLetterRetentionMs: number
}

/** Where a transport puts what it receives. */
export interface Receiver<D extends Delivery = Delivery> {
  deliver(delivery: D): void
  /**
   * Reports that the broker took this delivery back: the connection was lost, the partition revoked or the
   * lease ended. Called once for each such delivery, as soon as the transport notices.
   */
  lost(delivery: D): void
}

/** What a transport really did about a decision. */
export type Enactment =
  | {
      readonly kind: 'done'
      readonly place: Place
      /** Attempts left out of the history to fit the header budget. */
      readonly truncated: number
    }
  /** It may or may not have happened; the original is still ours. */
  | { readonly kind: 'unknown'; readonly error: unknown }
  /** The delivery is no longer ours; the broker hands it out again. */
  | { readonly kind: 'lost' }

export type Place = 'settled' | 'retry' | 'returned' | 'dead_letter' | 'quarantine' | 'dropped'

export const SETTLED: Enactment = Object.freeze({ kind: 'done', place: 'settled', truncated: 0 })
export const LOST: Enactment = Object.freeze({ kind: 'lost' })

export function placed(place: Place, truncated = 0): Enactment {
  return { kind: 'done', place, truncated }
}

/** A dead letter as the control plane reads it from a broker, ours or foreign. */
export interface DrainedDeadLetter {
  readonly delivery: Delivery
  /** The queue or topic it first came from; a replay goes back there. */
  readonly origin: string
  /**
   * What only the transport can read, as text that anyone can keep: give it back with the replay, and
   * the message goes out as it came in.
   */
  readonly envelope: Readonly<Record<string, string>>
  readonly quarantined: boolean
  readonly class: FailureClass
  readonly reason: string
  /**
   * Whether it can be told from others. `'named'`: `delivery.id` is the same whenever it is drained.
   * Without a name the id is made anew each time: `'unnamed'` was never drained before,
   * `'unnamed_again'` may have been, and was not released then.
   */
  readonly naming: 'named' | 'unnamed' | 'unnamed_again'
  /** The stack of the last failure, when the policy of the consumer carries it and it fits. */
  readonly stack?: string
}

/** What the consumer says about a replay that it is done with. */
export interface ReplayConfirmation {
  readonly replayId: string
  /** `'already_handled'`: its inbox knew the key, so nothing was done again. `'dropped'`: the policy said so. */
  readonly outcome: 'handled' | 'already_handled' | 'dropped'
  /** By the consumer's clock. */
  readonly at: number
}

/**
 * The control plane's view of a broker's dead letters.
 *
 * - `drain` hands out a batch and keeps every message in the broker until `release` is called for
 *   it: a crash in between drains it again, it never loses it.
 * - Drains are exclusive. While a batch is open, no other batch of this or another control plane holds its
 *   dead letters. The broker may move them to another control plane (rebalance, end of a lease). Then at
 *   most one batch releases each of them: the release of the other rejects with `DELIVERY_LOST`, or
 *   changes nothing that it does not hold.
 * - `publish` resolves only when the broker has proven that the replay is stored. Publishing the same
 *   replay id again is allowed. `duplicateReplays` of the capabilities states whether the broker discards
 *   the second copy; where it does not, both carry the same key and the inbox makes one effect of them.
 * - `confirmations` hands out what consumers said about replays, and keeps it until it is released.
 */
export interface DeadLetterSource {
  readonly source: string
  /**
   * What `publish` does. `'copy'`: a copy goes out and the dead letter stays until it is released.
   * `'in_place'`: the dead letter itself goes back, and releasing it afterwards changes nothing.
   */
  readonly replay: 'copy' | 'in_place'
  drain(options: { readonly most: number }): Promise<DrainedBatch>
  publish(replay: ReplayMessage): Promise<void>
  /** Those that wait, at most so many; none: an empty batch, soon. The same may come twice. */
  confirmations(options: { readonly most: number }): Promise<ConfirmationBatch>
  /** Dead letters waiting, quarantine included. */
  depth(): Promise<number>
  /**
   * Counts the messages of the source that consumers could handle now and have not finished. Dead letters
   * and retries that wait for their time do not count. Deliveries in flight may count, where the broker
   * cannot distinguish them; with no consumer the number is exact. Absent: the broker cannot count them.
   */
  lag?(): Promise<number>
  close(): Promise<void>
}

export interface DrainedBatch {
  readonly deadLetters: readonly DrainedDeadLetter[]
  /** The catalog has them: take them off the broker. */
  release(): Promise<void>
  /** Leave them where they are. */
  abandon(): Promise<void>
}

export interface ConfirmationBatch {
  readonly confirmations: readonly ReplayConfirmation[]
  /** They are written down: forget them. */
  release(): Promise<void>
  abandon(): Promise<void>
}

/**
 * One dead letter on its way back; the replay id names this replay. Key and bytes are as they came,
 * unless a person edited it: then `delivery.bytes`, `delivery.key` and `delivery.replaces` say so.
 */
export interface ReplayMessage {
  readonly deadLetter: DrainedDeadLetter
  readonly replayId: string
}

/** Why an event is in a store: what was decided about it, or what came before any decision. */
export type StoredReason =
  | DeadLetter['reason']
  | Quarantine['reason']
  /** Over the emitter's rate, and too important to be dropped. */
  | 'rate_limited'
  /** The sink's queue had no room. */
  | 'queue_full'
  /** The emitter was closed before the sink had it. */
  | 'closed'
  /** Its data does not match the schema of its type. */
  | 'invalid'

/** An event that one sink has not got. */
export interface StoredDeadLetter {
  /** One for each event and sink: saving the same again replaces it. */
  readonly id: string
  readonly sink: string
  readonly event: OutboundEvent
  readonly reason: StoredReason
  readonly failure: Failure
  readonly cycle: FailureCycle
  /** The job in which it was emitted, when that has a name. */
  readonly job: string | undefined
  readonly savedAt: number
}

/** All that is given must hold. */
export interface StoreFilter {
  readonly sink?: string
  readonly type?: string
  readonly class?: FailureClass
  readonly job?: string
  readonly savedAfter?: number
  readonly savedBefore?: number
}

export interface StorePage {
  readonly deadLetters: readonly StoredDeadLetter[]
  /** Pass it to read on; undefined at the end. */
  readonly next: string | undefined
}

export interface StoreStats {
  readonly count: number
  /** What they take where they are kept. */
  readonly bytes: number
  readonly oldestSavedAt: number | undefined
  readonly byClass: Readonly<Partial<Record<FailureClass, number>>>
  readonly bySink: Readonly<Record<string, number>>
}

export interface ListQuery {
  /** Default: all. */
  readonly filter?: StoreFilter
  readonly most: number
  /** `next` of the page before. */
  readonly after?: string
}

export interface ReplayQuery {
  /** Default: all. */
  readonly filter?: StoreFilter
  readonly most: number
  /** So many are sent at a time. Default 1. */
  readonly atOnce?: number
}

export interface ReplayAnswer {
  readonly replayed: number
  /** Those that stay, because they could not be sent. */
  readonly failed: number
}

/** Sends a dead letter to its sink; resolves when the sink has it. */
export type SendAgain = (deadLetter: StoredDeadLetter) => Promise<void>

/**
 * A durable place for what sinks give up, checked by `exerciseStore`.
 *
 * - `save` resolves when the dead letter survives a crash of this process; the same id replaces.
 * - Lists and batches are oldest first. A page never repeats or skips what was there all along,
 *   whatever is saved or deleted between two pages.
 * - `replay` sends one and forgets it only after `send` resolved; when it rejects, so does `replay`,
 *   and the dead letter stays. Asked twice at once, also by two processes, one sends it and the other
 *   answers false. A crash in between leaves it where it is.
 * - After `close` every call rejects with `DLQ_CLOSED`; a full store rejects `save` with `DLQ_FULL`.
 */
export interface DeadLetterStore {
  save(deadLetter: StoredDeadLetter): Promise<void>
  get(id: string): Promise<StoredDeadLetter | undefined>
  list(query: ListQuery): Promise<StorePage>
  /** False: there is no such dead letter, or someone else is sending it. */
  replay(id: string, send: SendAgain): Promise<boolean>
  /** The oldest that fit, one after the other, or so many at once. Those whose `send` rejects stay and are counted. */
  replayBatch(query: ReplayQuery, send: SendAgain): Promise<ReplayAnswer>
  delete(id: string): Promise<boolean>
  stats(): Promise<StoreStats>
  /** Removes what was saved before the moment; answers how many. */
  cleanup(options: { readonly savedBefore: number }): Promise<number>
  close(): Promise<void>
}

/** One event as a sink receives it. */
export interface OutboundEvent {
  readonly id: string
  /** Business idempotency key: the same when the event is sent again. */
  readonly key: string
  readonly type: string
  /** The unit of order it belongs to, where the destination keeps one. */
  readonly lane: string | undefined
  readonly at: number
  readonly bytes: Uint8Array
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * One destination of outbound events. `send` resolves when the destination has accepted the whole
 * batch and rejects otherwise; it retries nothing by itself and honours the signal.
 */
export interface Sink {
  readonly name: string
  /** Most events in one `send`. */
  readonly batch: number
  send(events: readonly OutboundEvent[], options: { readonly signal: AbortSignal }): Promise<void>
  /** Resolves when the destination answers; used only while it is unhealthy. */
  healthCheck(options: { readonly signal: AbortSignal }): Promise<void>
  close(): Promise<void>
}

/** Which delivery is about to take effect. */
export interface InboxEntry {
  readonly consumer: string
  readonly key: string
  /** Hash of the bytes: the same key with another content is an error, not a duplicate. */
  readonly fingerprint: string
  /**
   * The key of the message that this one, edited by a person, stands in for. Both are recorded, and
   * when either was handled before, the answer is `already_handled`: they never both take effect.
   */
  readonly replaces?: string
}

/**
 * Business keys already handled. `handle` opens a transaction, records the entry in it and runs the
 * work in the same transaction: either both take effect or neither does.
 */
export interface Inbox<Tx = unknown> {
  /** How long a key is remembered; absent: for ever. A replay of something older would look new. */
  readonly keepMs?: number
  /** How many may be at work at once; a consumer runs no more than that. Absent: any number. */
  readonly atOnce?: number
  handle(
    entry: InboxEntry,
    work: (tx: Tx) => Promise<void>,
    attempt?: InboxAttempt,
  ): Promise<InboxAnswer>
}

/** The attempt that is being made. */
export interface InboxAttempt {
  /** Fires when it is over without an answer: what it holds must be let go of, or nobody else gets the key. */
  readonly signal: AbortSignal
  /** How long it may take. */
  readonly timeoutMs: number
}

export type InboxAnswer = 'handled' | 'already_handled' | 'conflict'
