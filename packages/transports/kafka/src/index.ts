import {
  type KafkaOptions,
  type KafkaSinkOptions,
  type KafkaSourceOptions,
  resolveOptions,
  resolveSinkOptions,
  resolveSourceOptions,
} from './options.ts'
import { KafkaTransport } from './receive.ts'
import { KafkaSink } from './sink.ts'
import { KafkaSource } from './source.ts'

export { CAPABILITIES, capabilitiesOf } from './capabilities.ts'
export type { Header, KafkaDelivery, KafkaRecord } from './headers.ts'
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
export type { KafkaSink, KafkaSource, KafkaTransport }

/** A transport on a Kafka topic. */
export function kafka(options: KafkaOptions): KafkaTransport {
  return new KafkaTransport(resolveOptions(options))
}

/** The control plane's side of a topic and its group: their dead letters, or those of any topics you name. */
export function kafkaSource(options: KafkaSourceOptions): KafkaSource {
  return new KafkaSource(resolveSourceOptions(options))
}

/** Produces events with proof that the brokers have stored them: for `relay` of the runtime. */
export function kafkaSink(options: KafkaSinkOptions): KafkaSink {
  return new KafkaSink(resolveSinkOptions(options))
}
