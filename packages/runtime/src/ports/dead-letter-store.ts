import type { DeadLetter, Failure, FailureClass, FailureCycle, Quarantine } from '@redrive/core'
import type { OutboundEvent } from './sink.ts'

/** Why an event is in a store: the reason of a decision, or a reason before any decision. */
export type StoredReason =
  | DeadLetter['reason']
  | Quarantine['reason']
  /** Over the emitter's rate, and the filter always keeps it. */
  | 'rate_limited'
  /** The sink's queue was full. */
  | 'queue_full'
  /** The sink did not accept it within `maxWait`. */
  | 'overdue'
  /** It was stored before it was sent. It is being sent, or the process ended before. */
  | 'before_send'
  /** The control plane returned it to the store. An emitter sends it. */
  | 'replay_requested'
  /** The emitter was closed before the sink accepted it. */
  | 'closed'
  /** Its data does not match the schema of its type. */
  | 'invalid'

/** An event that one sink did not receive. */
export interface StoredDeadLetter {
  /** One id per event and sink. Saving the same id again replaces the entry. */
  readonly id: string
  readonly sink: string
  readonly event: OutboundEvent
  readonly reason: StoredReason
  readonly failure: Failure
  readonly cycle: FailureCycle
  /** The job that emitted it, when the job has a name. */
  readonly job: string | undefined
  readonly savedAt: number
  /** Id of the replay that returned it to the store. Absent: it was never replayed by the control plane. */
  readonly replayId?: string
}

/** A filter of stored dead letters. All given fields must match. */
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
  /** Cursor of the next page; undefined at the end. */
  readonly nextCursor: string | undefined
}

export interface StoreStats {
  readonly count: number
  /** Bytes used in the store. */
  readonly bytes: number
  readonly oldestSavedAt: number | undefined
  readonly byClass: Readonly<Partial<Record<FailureClass, number>>>
  readonly bySink: Readonly<Record<string, number>>
}

export interface ListQuery {
  /** Default: all. */
  readonly filter?: StoreFilter
  readonly limit: number
  /** `nextCursor` of the previous page. */
  readonly cursor?: string
}

export interface ReplayQuery {
  /** Default: all. */
  readonly filter?: StoreFilter
  readonly limit: number
  /** Maximum concurrent sends. Default 1. */
  readonly concurrency?: number
}

export interface ReplayResult {
  readonly replayed: number
  /** Dead letters that stay, because they could not be sent. */
  readonly failed: number
}

/** Sends a dead letter to its sink; resolves when the sink has accepted it. */
export type SendAgain = (deadLetter: StoredDeadLetter) => Promise<void>

/**
 * A durable store for events that sinks did not accept, checked by `exerciseStore`.
 *
 * - `save` resolves when the dead letter survives a crash of this process; the same id replaces.
 * - Lists and batches are oldest first. A page never repeats or skips an entry that existed all the time,
 *   whatever is saved or deleted between two pages.
 * - `replay` sends one dead letter and deletes it only after `send` resolved. When `send` rejects, so does
 *   `replay`, and the dead letter stays. When it is called twice concurrently, also by two processes, one
 *   call sends it and the other returns false. A crash in between leaves it in the store.
 * - After `close` every call rejects with `DLQ_CLOSED`; a full store rejects `save` with `DLQ_FULL`.
 */
export interface DeadLetterStore {
  save(deadLetter: StoredDeadLetter): Promise<void>
  get(id: string): Promise<StoredDeadLetter | undefined>
  list(query: ListQuery): Promise<StorePage>
  /** Sends one dead letter. Returns false when it does not exist or another process is sending it. */
  replay(id: string, send: SendAgain): Promise<boolean>
  /** Sends the oldest matching dead letters, up to `concurrency` at a time. Failed ones stay and are counted. */
  replayBatch(query: ReplayQuery, send: SendAgain): Promise<ReplayResult>
  delete(id: string): Promise<boolean>
  stats(): Promise<StoreStats>
  /** Removes entries saved before that time; returns how many. */
  cleanup(options: { readonly savedBefore: number }): Promise<number>
  close(): Promise<void>
}
