import type { DrainedDeadLetter } from '@redrive/runtime'

/** Bounds the bytes that one ingest holds in memory, over all its batches. */
export interface ByteBudget {
  /** Whether the next message may exceed the budget, so that a batch must be finished first. */
  readonly isFull: boolean
  /** Returns the number of messages to drain next (1 to the batch size). */
  limit(): number
  /** Counts a drained batch. Call the returned function when the batch is no longer in memory. */
  hold(batch: readonly DrainedDeadLetter[]): () => void
}

export interface ByteBudgetOptions {
  readonly maxBytes: number
  readonly batch: number
}

/** 10 messages at first: sizes are unknown, and brokers accept at most 16 MiB by default. */
const FIRST_LIMIT = 10
/** Eightfold growth from one batch to the next: two batches later, the limit is the usual batch size. */
const GROWTH = 8
/** 2,048 bytes for headers and objects of each message, next to its body. */
const OVERHEAD_BYTES = 2_048

/**
 * Brokers limit a batch by the number of messages, and not by bytes. So the number follows from the average size in
 * the last batch. It grows in steps, because the next messages may be larger.
 */
export function createByteBudget({ maxBytes, batch }: ByteBudgetOptions): ByteBudget {
  let held = 0
  let average = 0
  let growingLimit = FIRST_LIMIT
  return {
    get isFull() {
      return held > 0 && held + average > maxBytes
    },
    limit() {
      const fitting = average === 0 ? growingLimit : Math.floor((maxBytes - held) / average)
      return Math.max(1, Math.min(batch, growingLimit, fitting))
    },
    hold(deadLetters) {
      const bytes = bytesOf(deadLetters)
      held += bytes
      if (deadLetters.length > 0) {
        average = bytes / deadLetters.length
        growingLimit = deadLetters.length * GROWTH
      }
      return () => {
        held -= bytes
      }
    },
  }
}

const bytesOf = (deadLetters: readonly DrainedDeadLetter[]) =>
  deadLetters.reduce((sum, { delivery }) => sum + delivery.bytes.length + OVERHEAD_BYTES, 0)
