import type { Awaitable, DeadLetterStore } from '@redrive/runtime'

/**
 * One location of dead letters: a folder, a key prefix, a table. Each scenario gets a new, empty
 * one.
 */
export interface StoreFixture {
  /**
   * Opens a new store on the location, as another process would: with a separate connection and separate
   * memory. Where only one can exist, skip the scenarios of two processes with a reason.
   */
  store(): Awaitable<DeadLetterStore>
  /** Removes everything it created, including stores that are still open or crashed. */
  close(): Promise<void>
}
