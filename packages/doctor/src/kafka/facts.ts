import type { Unreadable } from '../finding.ts'
import type { KafkaSource } from './names.ts'

export interface PartitionFacts {
  /** Undefined: nobody leads it. */
  readonly leader: number | undefined
  readonly replicas: readonly number[]
  readonly inSync: readonly number[]
}

export interface TopicFacts {
  readonly name: string
  readonly partitions: readonly PartitionFacts[]
  /** Empty when it could not be read. */
  readonly config: Readonly<Record<string, string>>
}

/** What is looked at: a topic, and the group that consumes it. */
export interface KafkaSourceFacts extends KafkaSource {
  /** Partitions of the topic for which the group has committed something; undefined when not readable. */
  readonly committed: number | undefined
}

/** What was read of a Kafka cluster. A part is undefined when it could not be read; `unreadable` says why. */
export interface KafkaFacts {
  readonly brokers: readonly {
    readonly id: number
    readonly config: Readonly<Record<string, string>>
  }[]
  /** The highest version of each request that the broker knows, by name. */
  readonly apis: Readonly<Record<string, number>> | undefined
  /** Of the sources, what belongs to them, and the internal ones. */
  readonly topics: readonly TopicFacts[] | undefined
  readonly sources: readonly KafkaSourceFacts[]
  /** How long dead letters must be kept, in ms. */
  readonly deadLetterRetentionMs: number
  readonly unreadable: readonly Unreadable[]
}
