import { FAILURE_CLASSES } from '@redrive/core'
import {
  deadLetterQueue,
  type MemoryBroker,
  type MemoryMessage,
  quarantineQueue,
} from '@redrive/memory'
import type { VirtualTime } from '@redrive/storm/internal'

/**
 * How the failing message fails. During the outage every message fails like this. A call that does not
 * settle fails when the dependency is back.
 */
export type FailureKind =
  | 'dead host'
  | 'generic error'
  | 'short wait'
  | 'client timeout'
  | 'never settles'
  | 'business'

export const SECOND = 1_000
export const MINUTE = 60_000
export const HOUR = 3_600_000
export const DAY = 86_400_000

export const QUEUE = 'orders'

class Rejected extends Error {
  readonly status = 422
}

/** An answer that requests the next try after one second, each time. */
class Unavailable extends Error {
  readonly status = 503
  readonly headers = { 'retry-after': '1' }
}

/** A client that waits for a second, much shorter than the timeout of the policy. */
const CLIENT_TIMEOUT_MS = SECOND

/** Fails as this kind of message does. */
export function fail(kind: FailureKind, time: VirtualTime): Promise<never> {
  switch (kind) {
    case 'dead host':
      throw Object.assign(new Error('getaddrinfo ENOTFOUND crm.internal'), { code: 'ENOTFOUND' })
    case 'generic error':
      throw new Error('Could not load customer')
    case 'short wait':
      throw new Unavailable('The service is in maintenance')
    case 'client timeout':
      return new Promise((_, reject) => {
        const error = new DOMException('The operation was aborted due to timeout', 'TimeoutError')
        time.after(CLIENT_TIMEOUT_MS, () => reject(error))
      })
    case 'never settles':
      return new Promise(() => undefined)
    case 'business':
      throw new Rejected('The customer is blocked')
  }
}

/** Returns the dead letters and the quarantined messages. */
export function givenUp(broker: MemoryBroker): readonly MemoryMessage[] {
  const queues = [
    deadLetterQueue(QUEUE),
    ...FAILURE_CLASSES.map((name) => quarantineQueue(QUEUE, name)),
  ]
  return queues.flatMap((queue) => broker.contents(queue))
}

/** Returns a duration as text. */
export function timeText(ms: number | undefined): string {
  if (ms === undefined || ms === Number.POSITIVE_INFINITY) return 'never'
  return ms < 2 * MINUTE ? `${Math.round(ms / SECOND)} s` : `${(ms / MINUTE).toFixed(1)} min`
}

/** Returns the cells as a line of a table with these widths. */
export function lineOf(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, index) => cell.padEnd(widths[index] ?? 0))
    .join('')
    .trimEnd()
}
