export type { Header, KafkaDelivery, KafkaRecord } from './delivery.ts'
export type {
  ClientOptions,
  KafkaOptions,
  KafkaSinkOptions,
  KafkaSourceOptions,
} from './options.ts'
export {
  deadLetterTopic,
  replayedTopic,
  retryTopic,
  TIERS_MS,
  type Topology,
  type TopicSpec,
  topologyOf,
} from './topology.ts'
export { kafka, type KafkaTransport } from './transport.ts'
export { type KafkaSink, kafkaSink } from './sink.ts'
export { type KafkaSource, kafkaSource } from './source.ts'
