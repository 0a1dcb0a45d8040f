import type { FailureClass } from '@redrive/core'

/** Names of the queues that belong to a source. */
export const deadLetterQueue = (source: string): string => `${source}.dlq`
export const quarantinePrefix = (source: string): string => `${source}.dlq.quarantine.`
export const quarantineQueue = (source: string, failureClass: FailureClass): string =>
  `${quarantinePrefix(source)}${failureClass}`
/** Name of the queue for the confirmations of replays. */
export const replayedQueue = (source: string): string => `${source}.replayed`
