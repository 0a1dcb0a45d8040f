import type { Decision, Pause } from '@redrive/core'
import { type Place, writeConfirmation } from '@redrive/runtime'
import { copyOf, type Copy, type KafkaDelivery } from './headers.ts'
import type { TopicPartition } from './topic-partition.ts'
import { deadLetterTopic, replayedTopic, retryTopic, tierFor } from './topology.ts'

/** Decisions that leave something behind before the original goes: a copy, or the confirmation of a replay. */
export type HandOffDecision = Exclude<Decision, Pause>

/** Those that end a delivery, and leave nothing behind unless it is a replay. */
type Ending = Extract<Decision, { kind: 'settle' | 'drop' }>

export const isEnding = (decision: Decision): decision is Ending =>
  decision.kind === 'settle' || decision.kind === 'drop'

/** What is produced, and where it goes. */
export interface HandOff {
  readonly to: TopicPartition
  readonly copy: Copy
  readonly place: Place
  /** Attempts left out of the history to fit the budget. */
  readonly truncated: number
}

const PLACES = {
  settle: 'settled',
  drop: 'dropped',
  retryAt: 'retry',
  deadLetter: 'dead_letter',
  quarantine: 'quarantine',
} as const

export interface HandOffSettings {
  readonly group: string
  readonly order: 'none' | 'lane'
  readonly budgetBytes: number
}

/** What to produce for a decision. A record keeps its partition number wherever it goes. */
export function handOffOf(
  delivery: KafkaDelivery,
  decision: HandOffDecision,
  { group, order, budgetBytes }: HandOffSettings,
): HandOff {
  if (isEnding(decision)) return confirmationOf(delivery, decision, group)
  const { kind, cycle, reason } = decision
  const stack = kind === 'retryAt' ? undefined : decision.failure.stack
  const { copy, truncated } = copyOf(delivery, { cycle, reason, stack, order, budgetBytes })
  const { source, raw } = delivery
  const topic =
    kind === 'retryAt'
      ? retryTopic(source, group, tierFor(decision.delayMs))
      : deadLetterTopic(source, group)
  return { to: { topic, partition: raw.partition }, copy, place: PLACES[kind], truncated }
}

function confirmationOf(delivery: KafkaDelivery, decision: Ending, group: string): HandOff {
  const { source, raw } = delivery
  const value = writeConfirmation(delivery, decision, Date.now())
  return {
    to: { topic: replayedTopic(source, group), partition: raw.partition },
    copy: { key: null, value, headers: [] },
    place: PLACES[decision.kind],
    truncated: 0,
  }
}
