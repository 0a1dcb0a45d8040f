import type { Awaitable, DeadLetterStore } from '@redrive/runtime'

/**
 * One place where dead letters are kept: a folder, a key prefix, a table. Each scenario gets a fresh
 * and empty one.
 */
export interface StoreWorld {
  /**
   * A new store on the place, as another process would have it: a connection and a memory of its
   * own. Where only one can exist, skip the scenarios of two processes with a reason.
   */
  store(): Awaitable<DeadLetterStore>
  /** Removes everything it made. Stores that are still open, or crashed, are gone with it. */
  close(): Promise<void>
}
