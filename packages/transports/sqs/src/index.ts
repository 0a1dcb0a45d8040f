export type { Attribute } from './attributes.ts'
export type { ReceivedMessage, SqsDelivery } from './delivery.ts'
export type {
  SqsClient,
  SqsOptions,
  SqsSinkOptions,
  SqsSourceOptions,
  TopologyMode,
} from './options.ts'
export { type SqsSink, sqsSink } from './sink.ts'
export { type SqsSource, sqsSource } from './source.ts'
export { type Topology, topologyOf } from './topology.ts'
export { type SqsTransport, sqs } from './transport.ts'
