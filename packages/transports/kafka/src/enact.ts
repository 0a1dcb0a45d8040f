import type { DeadLetter, Decision, Quarantine, RetryAt } from '@redrive/core'
import { copyOf, type Copy, type KafkaDelivery } from './headers.ts'
import type { TopicPartition } from './topic-partition.ts'
import { deadLetterTopic, retryTopic, tierFor } from './topology.ts'

/** Decisions that make a copy. */
export type HandOffDecision = RetryAt | DeadLetter | Quarantine

export const isHandOff = (decision: Decision): decision is HandOffDecision =>
  decision.kind === 'retryAt' || decision.kind === 'deadLetter' || decision.kind === 'quarantine'

/** A copy and where it goes. */
export interface HandOff {
  readonly to: TopicPartition
  readonly copy: Copy
  readonly place: 'retry' | 'dead_letter' | 'quarantine'
  /** Attempts left out of the history to fit the budget. */
  readonly truncated: number
}

const PLACES = { retryAt: 'retry', deadLetter: 'dead_letter', quarantine: 'quarantine' } as const

/** What to produce for a decision. A record keeps its partition number wherever it goes. */
export function handOffOf(
  delivery: KafkaDelivery,
  decision: HandOffDecision,
  { group, budgetBytes }: { readonly group: string; readonly budgetBytes: number },
): HandOff {
  const { kind, cycle, reason } = decision
  const stack = kind === 'retryAt' ? undefined : decision.failure.stack
  const { copy, truncated } = copyOf(delivery, { cycle, reason, stack, budgetBytes })
  const { source, raw } = delivery
  const topic =
    kind === 'retryAt'
      ? retryTopic(source, group, tierFor(decision.delayMs))
      : deadLetterTopic(source, group)
  return { to: { topic, partition: raw.partition }, copy, place: PLACES[kind], truncated }
}
