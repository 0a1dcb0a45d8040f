import { formatDuration } from '@redrive/core'

/** The tiers of `@redrive/kafka`, in ms; a test compares them. */
const TIERS_MS: readonly number[] = [250, 1_000, 5_000, 30_000, 300_000, 3_600_000]

/** A topic, and the group that consumes it. */
export interface KafkaSource {
  readonly topic: string
  readonly group: string
  /** Topics with its dead letters. Default: the topic that Redrive creates, `{topic}.{group}.dlq`. */
  readonly deadLetterTopics?: readonly string[]
}

export const deadLetterTopic = ({ topic, group }: KafkaSource): string => `${topic}.${group}.dlq`
export const deadLetterTopics = (source: KafkaSource): readonly string[] =>
  source.deadLetterTopics ?? [deadLetterTopic(source)]
export const replayedTopic = ({ topic, group }: KafkaSource): string => `${topic}.${group}.replayed`
export const retryTopics = ({ topic, group }: KafkaSource): readonly string[] =>
  TIERS_MS.map((tierMs) => `${topic}.${group}.retry.${formatDuration(tierMs)}`)

/** Returns whether a topic is the source or belongs to it; retry topics of other tiers are included. */
export const belongsTo = (source: KafkaSource, name: string): boolean =>
  name === source.topic ||
  name === deadLetterTopic(source) ||
  deadLetterTopics(source).includes(name) ||
  name === replayedTopic(source) ||
  name.startsWith(`${source.topic}.${source.group}.retry.`)

/** Returns the topics that must exist. With dead letters of another library, Redrive's topics are not needed. */
export const neededTopics = (source: KafkaSource): readonly string[] =>
  deadLetterTopics(source).includes(deadLetterTopic(source))
    ? [source.topic, ...retryTopics(source), ...deadLetterTopics(source), replayedTopic(source)]
    : [source.topic, ...deadLetterTopics(source)]

/** Derives the sources from the names: `{topic}.{group}.dlq`, if the topic exists. */
export function sourcesIn(names: readonly string[]): readonly KafkaSource[] {
  const all = new Set(names)
  return names
    .filter((name) => name.endsWith('.dlq'))
    .flatMap((name) => {
      const parts = name.slice(0, -'.dlq'.length).split('.')
      // Both may contain dots: the longest existing topic name is used.
      for (let end = parts.length - 1; end > 0; end--) {
        const topic = parts.slice(0, end).join('.')
        if (all.has(topic)) return [{ topic, group: parts.slice(end).join('.') }]
      }
      return []
    })
}
