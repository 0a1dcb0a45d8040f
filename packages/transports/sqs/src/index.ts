export type { Attribute } from './attributes.ts'
export type { ReceivedMessage, SqsDelivery } from './delivery.ts'
export { type LargePayload, largePayloadOf } from './large-payload.ts'
export {
  type LambdaContext,
  type SqsBatchResponse,
  type SqsEvent,
  sqsHandler,
  type SqsRecord,
  type SqsRecordAttribute,
} from './lambda.ts'
export type {
  SqsClient,
  SqsHandlerOptions,
  SqsOptions,
  SqsSinkOptions,
  SqsSourceOptions,
  TopologyMode,
} from './options.ts'
export { type SqsSink, sqsSink } from './sink.ts'
export { type SqsSource, sqsSource } from './source.ts'
export { type Topology, topologyOf } from './topology.ts'
export { type SqsTransport, sqs } from './transport.ts'
