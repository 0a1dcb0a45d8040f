/**
 * The used parts of the consumer, producer and admin client of kafkajs, and of the Confluent client, which
 * has the same API. The types are structural: neither client is imported.
 */
export interface KafkaJsConsumer {
  commitOffsets(offsets: OffsetToCommit[]): Promise<void>
  pause(topics: TopicPartitions[]): unknown
  resume(topics: TopicPartitions[]): void
  /** Subscribes to events. For a client without these events, call `revoked` instead. */
  on?: {
    (event: 'consumer.group_join', listener: (event: GroupJoined) => void): unknown
    (event: 'consumer.rebalancing', listener: () => void): unknown
    (event: 'consumer.stop', listener: () => void): unknown
  }
}

export interface OffsetToCommit {
  topic: string
  partition: number
  offset: string
  metadata?: string | null
}

export interface TopicPartitions {
  topic: string
  partitions: number[]
}

export interface GroupJoined {
  readonly payload: {
    readonly memberId: string
    readonly memberAssignment: { readonly [topic: string]: number[] }
  }
}

export interface KafkaJsProducer {
  send(record: { topic: string; messages: MessageToSend[] }): Promise<unknown>
}

export interface MessageToSend {
  key?: Buffer | string | null
  value: Buffer | string | null
  partition?: number
  headers?: MessageHeaders
}

export interface MessageHeaders {
  [name: string]: Buffer | string | (Buffer | string)[] | undefined
}

export interface KafkaJsAdmin {
  /** The Confluent client returns the list of topics itself. */
  fetchTopicMetadata(options: {
    topics: string[]
  }): Promise<{ topics: FoundTopic[] } | readonly FoundTopic[]>
  listTopics(): Promise<string[]>
  createTopics(options: { topics: TopicToMake[] }): Promise<boolean>
  fetchOffsets(options: { groupId: string; topics: string[] }): Promise<FoundOffsets[]>
}

export interface FoundTopic {
  name: string
  partitions: { replicas: readonly unknown[] }[]
}

export interface TopicToMake {
  topic: string
  numPartitions: number
  replicationFactor: number
  configEntries: { name: string; value: string }[]
}

export interface FoundOffsets {
  topic: string
  partitions: { partition: number; offset: string; metadata: string | null }[]
}

/** A part of what `send` of kafkajs resolves with. Other clients resolve with other values. */
export interface SentRecord {
  /** Milliseconds as text. */
  readonly logAppendTime?: string
}

/** The argument of `eachBatch`. */
export interface BatchPayload {
  readonly batch: {
    readonly topic: string
    readonly partition: number
    readonly highWatermark: string
    readonly messages: readonly ReceivedMessage[]
    lastOffset(): string
  }
  readonly resolveOffset: (offset: string) => void
}

export interface ReceivedMessage {
  readonly key?: Buffer | string | null
  readonly value: Buffer | string | null
  readonly timestamp: string
  readonly offset: string
  readonly headers?: MessageHeaders | undefined
}
