import { formatDuration } from '@redrive/core'

/** Names of what belongs to a topic and the group that consumes it. */
export const retryTopic = (topic: string, group: string, tierMs: number): string =>
  `${topic}.${group}.retry.${formatDuration(tierMs)}`
/** What the group says about replays, until the control plane reads it. */
export const replayedTopic = (topic: string, group: string): string => `${topic}.${group}.replayed`
export const deadLetterTopic = (topic: string, group: string): string =>
  `${topic}.${group}${DEAD_LETTERS}`

const DEAD_LETTERS = '.dlq'

/** The group whose dead letters of that topic these are, when it is one of ours. */
export function groupIn(deadLetters: string, topic: string): string | undefined {
  if (!deadLetters.startsWith(`${topic}.`) || !deadLetters.endsWith(DEAD_LETTERS)) return undefined
  return deadLetters.slice(topic.length + 1, -DEAD_LETTERS.length) || undefined
}

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
  /** Retried after that long; 0 for what is not retried. */
  readonly tierMs: number
  readonly retentionMs: number
}

export interface Topology {
  readonly topic: string
  readonly retries: readonly TopicSpec[]
  readonly deadLetters: TopicSpec
  /** Confirmations of replays. */
  readonly replayed: TopicSpec
}

/** A week: how long all consumers of a group may be down before a waiting retry is deleted. */
const DOWN_MS = 604_800_000

/**
 * 14 days: a control plane that was away for longer has asked the inbox or a person meanwhile. Where
 * nobody reads them at all, they must not pile up.
 */
const REPLAYED_MS = 1_209_600_000

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
    replayed: { name: replayedTopic(topic, group), tierMs: 0, retentionMs: REPLAYED_MS },
  }
}
