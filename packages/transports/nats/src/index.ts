export { connectionOptions } from './address.ts'
export {
  type AppliedPart,
  applyTopology,
  type ApplyTopologyOptions,
  type PlannedPart,
  planTopology,
} from './apply-topology.ts'
export type { NatsDelivery, StoredPlace } from './delivery.ts'
export type {
  Connect,
  NatsOptions,
  NatsSinkOptions,
  NatsSourceOptions,
  TopologyMode,
} from './options.ts'
export { type NatsPeek, natsPeek } from './peek.ts'
export { type NatsSink, natsSink } from './sink.ts'
export { type NatsSource, natsSource } from './source.ts'
export { type DeadTopology, type RetryTopology, type Topology, topologyOf } from './topology.ts'
export { type NatsTransport, nats } from './transport.ts'
