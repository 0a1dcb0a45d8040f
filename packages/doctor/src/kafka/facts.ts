import type { Unreadable } from '../finding.ts'
import type { KafkaSource } from './names.ts'

export interface PartitionFacts {
  /** The leader; undefined when the partition has none. */
  readonly leader: number | undefined
  readonly replicas: readonly number[]
  readonly inSync: readonly number[]
}

export interface TopicFacts {
  readonly name: string
  readonly partitions: readonly PartitionFacts[]
  /** The configuration; empty when it could not be read. */
  readonly config: Readonly<Record<string, string>>
}

/** A topic to check, and the group that consumes it. */
export interface KafkaSourceFacts extends KafkaSource {
  /** Number of partitions for which the group has committed an offset; undefined when not readable. */
  readonly committed: number | undefined
}

/** The facts of a Kafka cluster. A part is undefined when it could not be read; `unreadable` contains the reason. */
export interface KafkaFacts {
  readonly brokers: readonly {
    readonly id: number
    readonly config: Readonly<Record<string, string>>
  }[]
  /** The highest supported version of each request, by name. */
  readonly apis: Readonly<Record<string, number>> | undefined
  /** The source topics, the topics that belong to them, and internal topics. */
  readonly topics: readonly TopicFacts[] | undefined
  readonly sources: readonly KafkaSourceFacts[]
  /** Required retention of dead letters, in ms. */
  readonly deadLetterRetentionMs: number
  readonly unreadable: readonly Unreadable[]
}
