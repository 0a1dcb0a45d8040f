export { applyTopology, type ApplyTopologyOptions } from './apply-topology.ts'
export type { DeclaredPart } from './declare.ts'
export type { RabbitMqDelivery } from './delivery.ts'
export type {
  Connect,
  Purpose,
  RabbitMqOptions,
  RabbitMqSinkOptions,
  RabbitMqSourceOptions,
  TopologyMode,
} from './options.ts'
export {
  adoptedPrefix,
  deadLetterExchange,
  deadLetterQueue,
  delayQueue,
  type QueueSpec,
  type QueueType,
  quarantineQueue,
  replayedQueue,
  STEPS_MS,
  type Topology,
  topologyOf,
} from './topology.ts'
export { rabbitmq, type RabbitMqTransport } from './transport.ts'
export { type RabbitMqSink, rabbitmqSink } from './sink.ts'
export { type RabbitMqSource, rabbitmqSource } from './source.ts'
