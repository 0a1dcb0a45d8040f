import type { Policy, Random } from '@redrive/core'
import type { Clock } from '../clock.ts'
import type { Sink } from '../ports/sink.ts'
import type { QueuedEvent, Undelivered } from './result.ts'

export interface SinkQueueOptions {
  readonly name: string
  readonly sink: Sink
  readonly policy: Policy
  readonly clock: Clock
  readonly random: Random
  /** Maximum events in flight. */
  readonly maxEvents: number
  /** Called when an event does not reach the sink. `mayDrop`: the policy prefers to drop it. */
  readonly onGivenUp: (queuedEvent: QueuedEvent, why: Undelivered, mayDrop: boolean) => void
}
