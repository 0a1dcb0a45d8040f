import { type Decision, type Pause, RedriveError } from '@redrive/core'
import { type Enactment, movedTo, serializeConfirmation } from '@redrive/runtime'
import { copyOf, type Copy, type KafkaDelivery, withoutContent } from './delivery.ts'
import { refusalIn } from './protocol/refusal.ts'
import type { TopicPartition } from './protocol/topic-partition.ts'
import { deadLetterTopic, replayedTopic, retryTopic, tierFor } from './topology.ts'

/** A decision that first produces a copy or the confirmation of a replay, and then finishes the original. */
export type HandOffDecision = Exclude<Decision, Pause>

/** A decision that ends a delivery. It produces a record only for a replay. */
type FinalDecision = Extract<Decision, { kind: 'settle' | 'drop' }>

export const isEnding = (decision: Decision): decision is FinalDecision =>
  decision.kind === 'settle' || decision.kind === 'drop'

/** A record to produce, and its destination. */
export interface HandOff {
  readonly to: TopicPartition
  readonly copy: Copy
  /** The result when it is stored and the original is finished. */
  readonly done: Enactment
}

const DESTINATIONS = {
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
  /** Name of the handler, stored with dead letters. */
  readonly handler: string | undefined
}

/**
 * Returns the record to produce for a decision. If the broker rejects it as too large, the next one is smaller:
 * first with only the last failure and no stack, then without the content of the original. A retry without
 * content is useless, so it has no third form. A record keeps its partition number in every topic.
 */
export function* formsOf(
  delivery: KafkaDelivery,
  decision: HandOffDecision,
  settings: HandOffSettings,
): Generator<HandOff, void> {
  if (isEnding(decision)) {
    yield confirmationOf(delivery, decision, settings.group)
    return
  }
  yield copyFor(delivery, decision, settings)
  yield copyFor(delivery, shortened(decision), settings, decision.cycle.history.length - 1)
  if (decision.kind === 'retryAt') return
  const handOff = copyFor(delivery, decision, settings)
  yield { ...handOff, copy: withoutContent(handOff.copy, delivery.raw) }
}

type CopyDecision = Exclude<HandOffDecision, FinalDecision>

/** Returns the decision with the last failure only, and without its stack. */
function shortened(decision: CopyDecision): CopyDecision {
  const cycle = { ...decision.cycle, history: decision.cycle.history.slice(-1) }
  if (decision.kind === 'retryAt') return { ...decision, cycle }
  return { ...decision, cycle, failure: { ...decision.failure, stack: undefined } }
}

/** Returns the copy for a decision. `omitted`: failures that the decision leaves out of the history. */
function copyFor(
  delivery: KafkaDelivery,
  decision: CopyDecision,
  { group, order, budgetBytes, handler }: HandOffSettings,
  omitted = 0,
): HandOff {
  const { kind, cycle, reason } = decision
  const end = kind === 'retryAt' ? {} : { handler, stack: decision.failure.stack }
  const { copy, truncated } = copyOf(delivery, { cycle, reason, ...end, order, budgetBytes })
  const { source, raw } = delivery
  const topic =
    kind === 'retryAt'
      ? retryTopic(source, group, tierFor(decision.delayMs))
      : deadLetterTopic(source, group)
  const done = movedTo(DESTINATIONS[kind], truncated + Math.max(0, omitted), topic)
  return { to: { topic, partition: raw.partition }, copy, done }
}

function confirmationOf(delivery: KafkaDelivery, decision: FinalDecision, group: string): HandOff {
  const { source, raw } = delivery
  const value = serializeConfirmation(delivery, decision, Date.now())
  return {
    to: { topic: replayedTopic(source, group), partition: raw.partition },
    copy: { key: null, value, headers: [] },
    done: movedTo(DESTINATIONS[decision.kind]),
  }
}

/** Returns the result of a hand-off that the broker rejected, or may not have stored. */
export function unfinished(error: unknown, { topic }: TopicPartition): Enactment {
  const refusal = refusalIn(error)
  if (refusal === undefined) return { kind: 'unknown', error }
  const { words, isTooLarge } = refusal
  const advice = isTooLarge ? ' Raise max.message.bytes of the topic.' : ''
  const message = `Kafka rejected a record for the topic ${topic}: ${words}${advice}`
  return {
    kind: 'refused',
    error: new RedriveError('REFUSED', message, { cause: error }),
    isTooLarge,
  }
}
