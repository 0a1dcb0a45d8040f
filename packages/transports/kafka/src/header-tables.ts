/**
 * Headers that only Kafka consumers add to copies. They are removed from the message that a handler receives.
 *
 * The first sentence of each comment is the format of the value; docs/reference/headers.md prints it.
 */
export interface KafkaHeaderTable {
  /** Text. `lane` when the consumer keeps the order of keys: a replay must go to the topic with the other records of its key. */
  readonly 'redrive-order': string
  /**
   * JSON. Position of the original record: `[topic, partition, offset, timestamp]`. Only on a dead letter without
   * content, because the record was too large to copy.
   */
  readonly 'redrive-original': string
  /**
   * Text. `1` on a time record: a record without content in a retry topic, whose timestamp shows the time of the broker.
   * Consumers skip it.
   */
  readonly 'redrive-time': string
}

/** Headers of producers that Kafka consumers read and the Kafka sink writes. CloudEvents in binary mode has these names. */
export interface EventHeaderTable {
  /** Text. Content type of the body. */
  readonly 'content-type': string
  /** Text. Content type of the body, if `content-type` is absent. Only read. */
  readonly ce_datacontenttype: string
  /** Text. Type of the event. */
  readonly ce_type: string
  /** Text. Id of the event. With `ce_source` it is the key of a message without `redrive-key`. Only read. */
  readonly ce_id: string
  /** Text. Origin of the event. Only read. */
  readonly ce_source: string
  /** Time. Time of the event, ISO 8601. Only written. */
  readonly ce_time: string
}

/** Headers of dead letters of Spring for Apache Kafka. Kafka sources read them. */
export interface SpringHeaderTable {
  /** Text. Topic of the failed record. */
  readonly 'kafka_dlt-original-topic': string
  /** Four bytes. Partition of the failed record. */
  readonly 'kafka_dlt-original-partition': Buffer
  /** Text. Type of the original exception. */
  readonly 'kafka_dlt-exception-cause-fqcn': string
  /** Text. Type of the exception, if it has no cause. */
  readonly 'kafka_dlt-exception-fqcn': string
  /** Text. Message of the exception. */
  readonly 'kafka_dlt-exception-message': string
  /** Text. Stack trace of the exception. */
  readonly 'kafka_dlt-exception-stacktrace': string
  /** Four bytes. Number of attempts. */
  readonly 'retry_topic-attempts': Buffer
}

/** Headers of dead letters of Kafka Connect. Kafka sources read them. */
export interface ConnectHeaderTable {
  /** Text. Topic of the failed record. */
  readonly '__connect.errors.topic': string
  /** Whole number. Partition of the failed record. */
  readonly '__connect.errors.partition': string
  /** Text. Step that failed, such as `VALUE_CONVERTER`. */
  readonly '__connect.errors.stage': string
  /** Text. Type of the exception. */
  readonly '__connect.errors.exception.class.name': string
  /** Text. Message of the exception. */
  readonly '__connect.errors.exception.message': string
  /** Text. Stack trace of the exception. */
  readonly '__connect.errors.exception.stacktrace': string
}
