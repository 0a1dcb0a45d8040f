import { systemClock } from '@redrive/runtime'

/**
 * The difference between the clock of the database and the clock of this process. The process decides with its
 * clock, and the database stores times of the other clock. The transport converts them.
 */
export class DatabaseClock {
  /** Milliseconds to add to a time of this process. */
  aheadMs = 0

  /** Compares the clocks: the database returned its time between the two given times of this process. */
  observe(sentAt: number, databaseTime: number, receivedAt: number): void {
    // Within the duration of the query, the clocks cannot be distinguished.
    if (databaseTime >= sentAt && databaseTime <= receivedAt + 1) this.aheadMs = 0
    else this.aheadMs = Math.round(databaseTime - (sentAt + receivedAt) / 2)
  }
}

/** Returns the time of this process, by the clock that decisions use. */
export const processTime = (): number => systemClock.now()
