/** Exports for packages of this repository. They can change in any version. */
export { shell } from './quote.ts'
export { certificateHint } from './tls.ts'
export { ALL_CHECKS, type CheckInfo } from './table.ts'
export {
  asMermaid,
  asTree,
  kafkaTopology,
  natsTopology,
  type TopologyNode,
  type TopologyNodeRole,
  type Route,
  rabbitmqTopology,
  type TopologyFacts,
} from './topology.ts'
