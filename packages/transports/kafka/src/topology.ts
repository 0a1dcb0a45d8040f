import { formatDuration } from '@redrive/core'

/** Names of what belongs to a topic and the group that consumes it. */
export const retryTopic = (topic: string, group: string, tierMs: number): string =>
  `${topic}.${group}.retry.${formatDuration(tierMs)}`
export const deadLetterTopic = (topic: string, group: string): string => `${topic}.${group}.dlq`

/**
 * The delay tiers: one topic each, and everything in it waits equally long, so that the first is
 * always the next. Few, because each is as many partitions as the source; the runtime takes a delay
 * between two of them in legs.
 */
export const TIERS_MS: readonly number[] = [250, 1_000, 5_000, 30_000, 300_000, 3_600_000]
export const LONGEST_TIER_MS = 3_600_000

/** The tier that is long enough. */
export const tierFor = (delayMs: number): number =>
  TIERS_MS.find((tierMs) => tierMs >= delayMs) ?? LONGEST_TIER_MS

/** A topic as it must be. */
export interface TopicSpec {
  readonly name: string
  /** Retried after that long; 0 for dead letters. */
  readonly tierMs: number
  readonly retentionMs: number
}

export interface Topology {
  readonly topic: string
  readonly retries: readonly TopicSpec[]
  readonly deadLetters: TopicSpec
}

/** A week: how long all consumers of a group may be down before a waiting retry is deleted. */
const DOWN_MS = 604_800_000

/** Everything a topic and its group need beside them. */
export function topologyOf(topic: string, group: string, deadLetterRetentionMs: number): Topology {
  return {
    topic,
    retries: TIERS_MS.map((tierMs) => ({
      name: retryTopic(topic, group, tierMs),
      tierMs,
      retentionMs: LONGEST_TIER_MS + DOWN_MS,
    })),
    deadLetters: {
      name: deadLetterTopic(topic, group),
      tierMs: 0,
      retentionMs: deadLetterRetentionMs,
    },
  }
}
