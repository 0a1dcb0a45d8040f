import { formatDuration } from '@redrive/core'

/** Returns the name of a retry topic of a topic and its group. The functions below name their other topics. */
export const retryTopic = (topic: string, group: string, tierMs: number): string =>
  `${topic}.${group}.retry.${formatDuration(tierMs)}`
/** Returns the name of the topic for replay confirmations, which the control plane reads. */
export const replayedTopic = (topic: string, group: string): string => `${topic}.${group}.replayed`
export const deadLetterTopic = (topic: string, group: string): string =>
  `${topic}.${group}${DEAD_LETTERS}`

const DEAD_LETTERS = '.dlq'

/** Returns the group of a dead-letter topic, or undefined when Redrive did not create the topic. */
export function groupIn(deadLetters: string, topic: string): string | undefined {
  if (!deadLetters.startsWith(`${topic}.`) || !deadLetters.endsWith(DEAD_LETTERS)) return undefined
  return deadLetters.slice(topic.length + 1, -DEAD_LETTERS.length) || undefined
}

/**
 * The delay tiers: one topic each. All records of a topic have the same delay, so the first one is always due
 * next. The number is small because each topic has as many partitions as the source. The runtime splits a delay
 * between two tiers into steps.
 */
export const TIERS_MS: readonly number[] = [250, 1_000, 5_000, 30_000, 300_000, 3_600_000]
export const LONGEST_TIER_MS = 3_600_000

/** Returns the shortest tier that is long enough. */
export const tierFor = (delayMs: number): number =>
  TIERS_MS.find((tierMs) => tierMs >= delayMs) ?? LONGEST_TIER_MS

/** The required settings of a topic. */
export interface TopicSpec {
  readonly name: string
  /** Delay of a retry topic in milliseconds; 0 for other topics. */
  readonly tierMs: number
  readonly retentionMs: number
}

export interface Topology {
  readonly topic: string
  readonly group: string
  readonly retries: readonly TopicSpec[]
  readonly deadLetters: TopicSpec
  /** Confirmations of replays. */
  readonly replayed: TopicSpec
}

/** 7 days: the time that all consumers of a group can be down before a waiting retry is deleted. */
const MAX_DOWNTIME_MS = 604_800_000

/**
 * 14 days: a control plane that was stopped for longer gets the outcome from the inbox or an operator.
 * Without a control plane, confirmations must not accumulate.
 */
const REPLAYED_MS = 1_209_600_000

/** Returns the retry, dead-letter and confirmation topics of a topic and its group. */
export function topologyOf(topic: string, group: string, deadLetterRetentionMs: number): Topology {
  return {
    topic,
    group,
    retries: TIERS_MS.map((tierMs) => ({
      name: retryTopic(topic, group, tierMs),
      tierMs,
      retentionMs: LONGEST_TIER_MS + MAX_DOWNTIME_MS,
    })),
    deadLetters: {
      name: deadLetterTopic(topic, group),
      tierMs: 0,
      retentionMs: deadLetterRetentionMs,
    },
    replayed: { name: replayedTopic(topic, group), tierMs: 0, retentionMs: REPLAYED_MS },
  }
}
