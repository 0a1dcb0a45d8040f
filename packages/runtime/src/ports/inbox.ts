/** The delivery that is about to take effect. */
export interface InboxEntry {
  readonly consumer: string
  readonly key: string
  /** Hash of the bytes: the same key with different content is an error, not a duplicate. */
  readonly fingerprint: string
  /**
   * The key of the original message, when a user edited it before the replay. Both keys are recorded.
   * When either was handled before, the result is `already_handled`: they never both take effect.
   */
  readonly replaces?: string
}

/**
 * A record of handled business keys. `handle` opens a transaction, records the entry in it and runs the
 * work in the same transaction: either both take effect or neither does.
 */
export interface Inbox<Tx = unknown> {
  /** How long a key is kept; absent: forever. A replay of an older message would look new. */
  readonly retentionMs?: number
  /** Maximum concurrent calls; a consumer runs no more than that. Absent: no limit. */
  readonly maxConcurrency?: number
  /**
   * Calls the work at most once per transaction, before it returns or rejects. Returns or rejects when the work has ended. A
   * work that still runs then keeps its message: the consumer decides only when it has ended, or its timeout and the
   * grace period have passed.
   */
  handle(
    entry: InboxEntry,
    work: (tx: Tx) => Promise<void>,
    attempt?: InboxAttempt,
  ): Promise<InboxResult>
}

/** The current attempt. */
export interface InboxAttempt {
  /** Fires when the attempt ended without a result. Release everything it holds, or no other attempt gets the key. */
  readonly signal: AbortSignal
  /** Maximum duration. */
  readonly timeoutMs: number
  /** True when the message failed before. An inbox that handles several messages together handles it alone. */
  readonly isRetry?: boolean
}

export type InboxResult = 'handled' | 'already_handled' | 'conflict'
